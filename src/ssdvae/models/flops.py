"""The work that a model cannot do without: two floating point operations for each multiplication of matrices.

Elementwise functions, sampling and the optimiser are not counted: time spent on them is time lost. Nor is
what is multiplied twice, or at padding.
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from torch import nn


@runtime_checkable
class Product(Protocol):
    """A layer that multiplies rows by a matrix."""

    in_features: int
    out_features: int


TRAINING = 3
"""How often a forward pass fits in a step: each product has two gradients, of its own size each."""


def linear_flops(layer: Product, rows: int) -> int:
    return 2 * rows * layer.in_features * layer.out_features


def gru_flops(layer: nn.GRU, rows: int) -> int:
    """Three gates, each from the input and from the state before."""
    ways, inputs, flops = 1 + layer.bidirectional, layer.input_size, 0
    for _ in range(layer.num_layers):
        flops += 2 * rows * ways * 3 * layer.hidden_size * (inputs + layer.hidden_size)
        inputs = ways * layer.hidden_size
    return flops


def attention_flops(queries: int, memory: int, width: int) -> int:
    """Scores of ``memory`` places for each query, and the mean that they give."""
    return 2 * 2 * queries * memory * width
