"""Cross-entropy of words, fused with the output layer, over all words or a sample of them.

**All words** (``linear_cross_entropy``). The logits of all words are never held at once:

    nll_r = log Σ_v exp(W_v x_r + b_v) − (W_w x_r + b_w)        with w = w_r, the target of the row
    d nll_r / d logits_r = softmax(W x_r + b) − onehot(w_r)

``Offsets`` are added to the logits of all words of a document. The gradient by the logits is known as soon
as they are, so each block of rows is multiplied out and forgotten. The gradient of W mixes the rows: it is
kept for rows of equal weight, as in training, and recomputed for others. A block of rows is computed in tiles
of words that stay in a processor's cache, and blocks share their memory.

**A sample of the words** (``sampled_cross_entropy``), in training with very large vocabularies. Each word v
is drawn with its own probability π_v (all rows share the drawn set D), the target w is always in, and

    Ẑ = exp(o_w) + Σ_{v ∈ D, v ≠ w} exp(o_v) / π_v,        nll = log Ẑ − o_w

E[Ẑ] = Z exactly. E[log Ẑ] is below log Z (Jensen) by about Var(Ẑ) / 2Z²: the loss is biased downwards, the
less the more words are drawn. With all words both are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from ssdvae.data.batches import Batch
from ssdvae.models.layers import WordOutput, full_precision, to_padded

ROWS, WORDS = 1024, 2048
"""The shape of a tile of logits."""

KEPT = 2**25
"""Logits held at once in training, where those of a row are needed twice (128 MB)."""


@dataclass(frozen=True)
class Offsets:
    """Logits that are added to those of each row: ``logits[group]`` of its ``group``."""

    logits: Float[Tensor, "G V"]
    group: Int[Tensor, " N"]

    def of(self, target: Int[Tensor, " N"]) -> Float[Tensor, " N"]:
        """Return what is added to the logit of one word of each row."""
        return full_precision(self.logits[self.group, target])

    def tile(self, rows: slice, words: slice) -> Float[Tensor, "R W"]:
        return full_precision(self.logits[:, words])[self.group[rows]]


# torch 2.13 has functional.linear_cross_entropy, which is slower on a CPU. Forward and backward, V = 40,000,
# e = 512, N = 2,000, fp32, one thread: ours 3.1 s and 190 MB; torch's in chunks 7.5 s and 175 MB for the sum
# of the rows, 9.8 s and 95 MB for the loss of each row, which we need; without chunks 3.5 s and 850 MB.
def linear_cross_entropy(
    rows: Float[Tensor, "N e"],
    weight: Float[Tensor, "V e"],
    bias: Float[Tensor, " V"],
    target: Int[Tensor, " N"],
    uniform_weights: bool = True,
    offsets: Offsets | None = None,
) -> Float[Tensor, " N"]:
    """Return −log softmax(weight · row + bias + offset)[target] of each row.

    ``uniform_weights``: whether all rows have the same weight in the loss. If not, gradients are computed in
    the backward pass only.
    """
    if not torch.is_grad_enabled():
        return _nll(rows, weight, bias, target, offsets, None)
    parts = (None, None) if offsets is None else (offsets.logits, offsets.group)
    nll: Tensor = _LinearCrossEntropy.apply(rows, weight, bias, target, uniform_weights, *parts)  # type: ignore[no-untyped-call]  # torch's
    return nll


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        uniform_weights: bool,
        offset_logits: Tensor | None,
        group: Tensor | None,
    ) -> Tensor:
        ctx.save_for_backward(rows, weight, bias, target, offset_logits, group)
        offsets = _offsets(offset_logits, group)
        ctx.gradients = _Gradients(rows, weight, bias, target, offsets) if uniform_weights else None
        return _nll(rows, weight, bias, target, offsets, ctx.gradients)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight, bias, target, offset_logits, group = ctx.saved_tensors
        # Scaled in place below, so a second backward pass over the same graph recomputes them.
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
    """Gradients of Σ_r scale_r · nll_r by rows, weight, bias and offsets, summed tile by tile."""

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
        # Start with the part of −onehot(target); ``add`` adds that of the probabilities.
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
        """Add the part of some rows and words, whose probabilities are ``exponentials`` times ``share``."""
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
        # The largest logit so far; −∞ would give ∞ − ∞ where a whole tile is impossible.
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
    """Return log Σ_v exp(weight_v · row + bias_v); ``some`` is any word of each row.

    Each row has a gradient of its own here, so in training the logits are held: rows are few, the heads.
    """
    if torch.is_grad_enabled():
        return full_precision(functional.linear(rows, weight.to(rows.dtype), bias.to(rows.dtype))).logsumexp(
            -1
        )
    return _nll(rows, weight, bias, some, None, None) + target_logits(rows, weight, bias, some)


@dataclass(frozen=True)
class Drawn:
    """A sample of the words, and the probability with which each was drawn."""

    words: Int[Tensor, " K"]
    probability: Float[Tensor, " K"]


def inclusion_probabilities(counts: Sequence[int], expected: int) -> Float[Tensor, " V"]:
    """Return π_v = min(1, c · count_v) with c such that Σ_v π_v = ``expected``."""
    weights = torch.tensor(counts, dtype=torch.float64).clamp_min(1)
    certain = torch.zeros(len(weights), dtype=torch.bool)
    while expected < len(weights):
        share = weights * (expected - certain.sum()) / weights[~certain].sum()
        too_likely = (share > 1) & ~certain
        if not too_likely.any():
            return share.where(~certain, 1)
        certain |= too_likely
    return torch.ones_like(weights)


def draw(probability: Float[Tensor, " V"], generator: torch.Generator) -> Drawn:
    """Draw each word with its own probability; processes with the same generator draw the same."""
    uniform = torch.rand(len(probability), generator=generator, dtype=probability.dtype)
    words = (uniform < probability).nonzero()[:, 0]
    return Drawn(words, probability[words])


def sampled_cross_entropy(
    rows: Float[Tensor, "N e"],
    weight: Float[Tensor, "V e"],
    bias: Float[Tensor, " V"],
    target: Int[Tensor, " N"],
    drawn: Drawn,
    offsets: Offsets | None = None,
) -> Float[Tensor, " N"]:
    """Return log Ẑ − o_target of each row."""
    words = drawn.words.to(rows.device)
    logits = full_precision(functional.linear(rows, weight[words].to(rows.dtype)))
    logits = logits + (bias[words] - drawn.probability.log().to(bias))
    own = target_logits(rows, weight, bias, target)
    if offsets is not None:
        logits = logits + full_precision(offsets.logits[:, words])[offsets.group]
        own = own + offsets.of(target)
    # Not −∞: its softmax has no gradient where nothing else was drawn.
    logits = logits.masked_fill(words == target[:, None], torch.finfo(logits.dtype).min)
    return functional.softplus(logits.logsumexp(-1) - own)


def word_log_likelihood(
    output: WordOutput,
    states: Float[Tensor, "B M S h"],
    batch: Batch,
    drawn: Drawn | None = None,
    offsets: Float[Tensor, "B V"] | None = None,
) -> Float[Tensor, "B M S"]:
    """Return log softmax(output(state) + offset)[word] of the real words of documents, 0 at padding.

    With ``drawn``, the sum over all words is estimated from a sample. ``offsets`` are those of the documents.
    """
    words = batch.tokens[batch.mask]
    rows = output.project(states[batch.mask]).flatten(0, 1)
    added = None
    if offsets is not None:
        documents = torch.arange(len(batch), device=words.device).repeat_interleave(batch.mask.sum(1))
        added = Offsets(offsets, documents.repeat_interleave(words.shape[1]))
    if drawn is None:
        nll = linear_cross_entropy(rows, output.weight, output.bias, words.flatten(), offsets=added)
    else:
        nll = sampled_cross_entropy(rows, output.weight, output.bias, words.flatten(), drawn, added)
    return to_padded(-nll.view(words.shape), batch.mask)


def frame_nll(
    log_q: Float[Tensor, "B M F"], observed: Int[Tensor, "B M"], mask: Bool[Tensor, "B M"]
) -> Float[Tensor, " B"]:
    """Return −Σ_m log q(I_m) over the observed events."""
    chosen = log_q.gather(-1, observed.clamp_min(0)[..., None])[..., 0]
    return -(chosen * (mask & (observed >= 0))).sum(1)


def weight_scale(normalize: str, words: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    """Return the factor of the weights of an objective in each document.

    The papers tuned these weights against a mean per word, so ``word`` multiplies them by the number of words
    of the document; ``document`` takes them as printed.
    """
    return words if normalize == "word" else torch.ones_like(words)
