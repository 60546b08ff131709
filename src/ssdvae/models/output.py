"""The output layer and its cross-entropy in one: the logits of all words are never held at once.

    nll_r = −log softmax(W x_r + b)[w_r]        d nll_r / d logits_r = softmax(W x_r + b) − onehot(w_r)

The gradient by the logits is known as soon as they are, so each block of rows is multiplied out at once and
forgotten. Rows may be scaled afterwards, but the gradient of W mixes them: it is kept for rows that weigh the
same, which is how training asks, and computed again for others.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from ssdvae.models.recurrent import full_precision

ROWS = 512
"""Rows whose logits are held at once, V numbers each."""


def linear_cross_entropy(
    rows: Float[Tensor, "N e"],
    weight: Float[Tensor, "V e"],
    bias: Float[Tensor, " V"],
    target: Int[Tensor, " N"],
) -> Float[Tensor, " N"]:
    """−log softmax(weight · row + bias)[target] of each row."""
    nll: Tensor = _LinearCrossEntropy.apply(rows, weight, bias, target)  # type: ignore[no-untyped-call]  # torch's
    return nll


def _log_softmax(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return full_precision(functional.linear(rows, weight, bias)).log_softmax(-1)


def _gradients(
    log_p: Tensor, target: Tensor, rows: Tensor, weight: Tensor, scale: Tensor | None, sums: list[Tensor]
) -> Tensor:
    """Add to the gradients of weight and bias; returns that of the rows. Uses up ``log_p``."""
    logits = log_p.exp_()
    logits[torch.arange(len(target), device=target.device), target] -= 1
    if scale is not None:
        logits *= scale[:, None]
    logits = logits.to(rows.dtype)
    if sums[0].dtype == rows.dtype:
        sums[0].addmm_(logits.T, rows)
    else:  # mixed precision: the product in the smaller type, the sum in the larger
        sums[0].add_(logits.T @ rows)
    sums[1].add_(logits.sum(0))
    return logits @ weight.to(rows.dtype)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
        learning = any(ctx.needs_input_grad)
        sums = [torch.zeros_like(weight), torch.zeros_like(bias)] if learning else []
        by_row = torch.empty_like(rows) if learning else rows
        nll = full_precision(rows.new_empty(len(rows)))
        for start in range(0, len(rows), ROWS):
            some = slice(start, start + ROWS)
            log_p = _log_softmax(rows[some], weight, bias)
            nll[some] = -log_p.gather(1, target[some, None])[:, 0]
            if learning:
                by_row[some] = _gradients(log_p, target[some], rows[some], weight, None, sums)
        if learning:
            ctx.save_for_backward(rows, weight, bias, target, by_row, *sums)
        return nll

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, bias, target, by_row, by_weight, by_bias = ctx.saved_tensors
        if len(upstream) and bool((upstream == upstream[0]).all()):
            return by_row * upstream[0], by_weight * upstream[0], by_bias * upstream[0], None
        sums = [torch.zeros_like(weight), torch.zeros_like(bias)]
        by_row = torch.zeros_like(rows)
        for start in range(0, len(rows), ROWS):
            some = slice(start, start + ROWS)
            log_p = _log_softmax(rows[some], weight, bias)
            by_row[some] = _gradients(log_p, target[some], rows[some], weight, upstream[some], sums)
        return by_row, *sums, None
