"""The output layer and its cross-entropy in one: the logits of all words are never held at once.

    nll_r = log Σ_v exp(W_v x_r + b_v) − (W_w x_r + b_w)        with w = w_r, the word of the row
    d nll_r / d logits_r = softmax(W x_r + b) − onehot(w_r)

A document may add something to the logits of all its words, the same at each of them: ``Offsets``.

The gradient by the logits is known as soon as they are, so each block of rows is multiplied out at once and
forgotten. Rows may be scaled afterwards, but the gradient of W mixes them: it is kept for rows that weigh the
same, which is how training asks, and computed again for others.

A block of rows meets the words in tiles that stay in a processor's cache while they are exponentiated, and
the memory of one block serves the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from ssdvae.models.recurrent import full_precision

ROWS, WORDS = 1024, 2048
"""The shape of a tile of logits."""

KEPT = 2**25
"""Logits that are held at once in training, where those of a row are needed twice (128 MB)."""


@dataclass(frozen=True)
class Offsets:
    """What is added to the logits of each row: ``logits[group]`` of its ``group``."""

    logits: Float[Tensor, "G V"]
    group: Int[Tensor, " N"]

    def of(self, target: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """What the logit of one word of each row gets."""
        return full_precision(self.logits[self.group, target])

    def tile(self, rows: slice, words: slice) -> Float[Tensor, "R W"]:
        return full_precision(self.logits[:, words])[self.group[rows]]


def linear_cross_entropy(
    rows: Float[Tensor, "N e"],
    weight: Float[Tensor, "V e"],
    bias: Float[Tensor, " V"],
    target: Int[Tensor, " N"],
    alike: bool = True,
    offsets: Offsets | None = None,
) -> Float[Tensor, " N"]:
    """−log softmax(weight · row + bias + offset)[target] of each row.

    ``alike``: whether the rows will weigh the same in what is minimised. If they will not, gradients made
    along the way would be for nothing, and are not.
    """
    if not torch.is_grad_enabled():
        return _nll(rows, weight, bias, target, offsets, None)
    parts = (None, None) if offsets is None else (offsets.logits, offsets.group)
    nll: Tensor = _LinearCrossEntropy.apply(rows, weight, bias, target, alike, *parts)  # type: ignore[no-untyped-call]  # torch's
    return nll


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        alike: bool,
        offset_logits: Tensor | None,
        group: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(rows, weight, bias, target, offset_logits, group)
        offsets = _offsets(offset_logits, group)
        ctx.gradients = _Gradients(rows, weight, bias, target, offsets) if alike else None
        return _nll(rows, weight, bias, target, offsets, ctx.gradients)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, bias, target, offset_logits, group = ctx.saved_tensors
        # Given away: they are scaled in place, so a second pass over the same graph makes its own.
        gradients, ctx.gradients = ctx.gradients, None
        if gradients is not None and len(upstream) and bool((upstream == upstream[0]).all()):
            for sums in gradients.sums:
                sums.mul_(upstream[0])
        else:
            offsets = _offsets(offset_logits, group)
            gradients = _Gradients(rows, weight, bias, target, offsets, upstream)
            _nll(rows, weight, bias, target, offsets, gradients)
        return gradients.by_row, gradients.by_weight, gradients.by_bias, None, None, gradients.by_offset, None


def _offsets(logits: Tensor | None, group: Tensor | None) -> Offsets | None:
    return None if logits is None or group is None else Offsets(logits, group)


class _Gradients:
    """Those of Σ_r scale_r · nll_r by rows, weight, bias and offsets, summed tile by tile."""

    def __init__(
        self,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        offsets: Offsets | None,
        scale: Tensor | None = None,
    ) -> None:
        self.scale, self.offsets = scale, offsets
        self.rows, self.weight = rows, weight.to(rows.dtype)
        # What −onehot(target) gives; the words' probabilities are added to it.
        each = rows.new_ones(len(rows)) if scale is None else scale.to(rows.dtype)
        self.by_row = -each[:, None] * self.weight[target]
        self.by_weight = torch.zeros_like(weight).index_add_(0, target, (-each[:, None] * rows).to(weight))
        self.by_bias = torch.zeros_like(bias).index_add_(0, target, -each.to(bias))
        self.by_offset: Tensor | None = None
        if offsets is not None:
            places = (offsets.group, target)
            self.by_offset = torch.zeros_like(offsets.logits)
            self.by_offset.index_put_(places, -each.to(self.by_offset), accumulate=True)

    @property
    def sums(self) -> list[Tensor]:
        sums = (self.by_row, self.by_weight, self.by_bias, self.by_offset)
        return [some for some in sums if some is not None]

    def add(self, some: slice, words: slice, exponentials: Tensor, share: Tensor) -> None:
        """The part of some rows and words; probabilities are ``exponentials`` times the row's ``share``.

        They are never multiplied out, since each row may as well be scaled where it is narrow.
        """
        if self.scale is not None:
            share = share * self.scale[some]
        self.by_bias[words] += exponentials.T @ share
        if self.offsets is not None and self.by_offset is not None:
            probabilities = (exponentials * share[:, None]).to(self.by_offset)
            self.by_offset[:, words].index_add_(0, self.offsets.group[some], probabilities)
        exponentials, share = exponentials.to(self.rows.dtype), share.to(self.rows.dtype)[:, None]
        scaled = share * self.rows[some]
        if self.by_weight.dtype == scaled.dtype:
            self.by_weight[words].addmm_(exponentials.T, scaled)
        else:  # mixed precision: the product in the smaller type, the sum in the larger
            self.by_weight[words] += exponentials.T @ scaled
        self.by_row[some] += share * (exponentials @ self.weight[words])


def _nll(
    rows: Tensor,
    weight: Tensor,
    bias: Tensor,
    target: Tensor,
    offsets: Offsets | None,
    gradients: _Gradients | None,
) -> Tensor:
    count, vocabulary = len(rows), len(weight)
    tiles = [slice(start, min(start + WORDS, vocabulary)) for start in range(0, vocabulary, WORDS)]
    step = min(ROWS, max(1, KEPT // vocabulary), max(1, count))
    nll = full_precision(rows.new_empty(count))
    # In training, the tiles of a block are kept for the gradients.
    memory = nll.new_empty(len(tiles) if gradients else 1, step, min(WORDS, vocabulary))
    for start in range(0, count, step):
        some = slice(start, min(start + step, count))
        x = rows[some]
        # The largest logit so far, not −∞: that would leave ∞ − ∞ where a whole tile is impossible.
        top, total = nll.new_full((len(x),), torch.finfo(nll.dtype).min), nll.new_zeros(len(x))
        kept = []
        for place, words in enumerate(tiles):
            space = memory[place if gradients else 0, : len(x), : words.stop - words.start]
            logits = _logits(x, weight[words], bias[words], space)
            if offsets is not None:
                logits += offsets.tile(some, words)
            higher = torch.maximum(top, logits.amax(-1))
            exponentials = logits.sub_(higher[:, None]).exp_()
            total = total * (top - higher).exp() + exponentials.sum(-1)
            top = higher
            kept.append((words, exponentials, higher))
        log_total = top + total.log()
        nll[some] = log_total - target_logits(x, weight, bias, target[some])
        if gradients:
            for words, exponentials, higher in kept:
                gradients.add(some, words, exponentials, (higher - log_total).exp())
    return nll if offsets is None else nll - offsets.of(target)


def _logits(rows: Tensor, weight: Tensor, bias: Tensor, space: Tensor) -> Tensor:
    if rows.dtype == weight.dtype:
        return torch.addmm(bias, rows, weight.T, out=space)
    return full_precision(functional.linear(rows, weight.to(rows.dtype), bias.to(rows.dtype)))


def target_logits(rows: Tensor, weight: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    return (full_precision(rows) * full_precision(weight[target])).sum(-1) + bias[target]


def log_partition(
    rows: Float[Tensor, "N e"],
    weight: Float[Tensor, "V e"],
    bias: Float[Tensor, " V"],
    some: Int[Tensor, " N"],
) -> Float[Tensor, " N"]:
    """log Σ_v exp(weight_v · row + bias_v); ``some`` is any word of each row.

    Each row has a gradient of its own here, so in training the logits are held: of few rows, the heads.
    """
    if torch.is_grad_enabled():
        return full_precision(functional.linear(rows, weight.to(rows.dtype), bias.to(rows.dtype))).logsumexp(
            -1
        )
    return _nll(rows, weight, bias, some, None, None) + target_logits(rows, weight, bias, some)
