"""Cross-entropy of words, fused with the output layer; what a model minimises is told by its ``forward``.

**All words** (``linear_cross_entropy``). The logits of all words are never held at once:

    nll_r = log Σ_v exp(W_v x_r + b_v) − (W_w x_r + b_w)        with w = w_r, the target of the row
    d nll_r / d logits_r = softmax(W x_r + b) − onehot(w_r)

``Offsets`` are added to the logits of all words of a document. The gradient by the logits is known as soon
as they are, so each block of rows is multiplied out and forgotten. The gradient of W mixes the rows: it is
kept for rows whose weights in the loss are known before, and computed in the backward pass for others. A
block of rows is computed in tiles of words that stay in a processor's cache, and blocks share their memory.

**A sample of the words** (``sampled_cross_entropy``), in training with very large vocabularies. Each word v
is drawn with its own probability π_v (all rows share the drawn set D), the target w is always in, and

    Ẑ = exp(o_w) + Σ_{v ∈ D, v ≠ w} exp(o_v) / π_v,        nll = log Ẑ − o_w

E[Ẑ] = Z exactly. E[log Ẑ] is below log Z (Jensen) by about Var(Ẑ) / 2Z²: the loss is biased downwards, the
less the more words are drawn. With all words both are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from ssdvae.data.batches import Batch
from ssdvae.models.layers import WordOutput, full_precision, to_padded

ROWS, WORDS = 512, 2048
"""The shape of a tile of logits."""

KEPT = 2**25
"""Logits held at once in training, where those of a row are needed twice (128 MB)."""

LOG2_E = 1 / math.log(2)


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
    expected: Float[Tensor, " N"] | None = None,
    offsets: Offsets | None = None,
) -> Float[Tensor, " N"]:
    """Return −log softmax(weight · row + bias + offset)[target] of each row.

    ``expected`` has the weights of the rows in the loss, up to a common factor, NaN where they are not known
    before; by default all are 1. Gradients of rows with a known weight are computed in the forward pass,
    where the logits are at hand, and those of the others in the backward pass. Rows of weight 0 have none.
    """
    if not torch.is_grad_enabled():
        return _nll(_Layer(rows, weight.to(rows.dtype), bias, target, offsets))
    if expected is None:
        expected = bias.new_ones(len(rows))
    parts = (None, None) if offsets is None else (offsets.logits, offsets.group)
    nll: Tensor = _LinearCrossEntropy.apply(rows, weight, bias, target, expected, *parts)  # type: ignore[no-untyped-call]  # torch's
    return nll


@dataclass(frozen=True)
class _Layer:
    """Rows, their targets, and the output layer, whose weights have the type of the rows."""

    rows: Float[Tensor, "N e"]
    weight: Float[Tensor, "V e"]
    bias: Float[Tensor, " V"]
    target: Int[Tensor, " N"]
    offsets: Offsets | None

    def take(self, index: Int[Tensor, " K"]) -> _Layer:
        offsets = self.offsets and Offsets(self.offsets.logits, self.offsets.group[index])
        return _Layer(self.rows[index], self.weight, self.bias, self.target[index], offsets)


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        target: Tensor,
        expected: Tensor,
        offset_logits: Tensor | None,
        group: Tensor | None,
    ) -> Tensor:
        offsets = None if offset_logits is None or group is None else Offsets(offset_logits, group)
        layer = _Layer(rows, weight.to(rows.dtype), bias, target, offsets)
        ctx.save_for_backward(rows, weight, bias, target, expected, offset_logits, group)
        ctx.layer, ctx.gradients = layer, _Gradients(layer)
        graded = (expected > 0).nonzero()[:, 0]  # NaN is not
        nll: Tensor = ctx.gradients.add(graded, expected[graded])
        if len(graded) < len(rows):
            others = (~(expected > 0)).nonzero()[:, 0]
            nll = nll.new_empty(len(rows)).index_copy_(0, graded, nll)
            nll.index_copy_(0, others, _nll(layer.take(others)))
        return nll

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        expected = ctx.saved_tensors[4]  # and check that no tensor was changed in place
        # Scaled in place below, so a second backward pass over the same graph computes them anew.
        gradients, ctx.gradients = ctx.gradients, None
        known, first = ~expected.isnan(), (expected > 0).nonzero()[:1, 0]
        factor = (upstream[first] / expected[first]).sum()  # 0 if no weight is known
        # Up to rounding: the weights of soft labels are not 0 and 1.
        same = (upstream - expected * factor).abs() <= 1e-5 * upstream.abs()
        if gradients is not None and bool(same[known].all()):
            gradients.scale(factor)
            missing = ~known & (upstream != 0)
        else:
            gradients, missing = _Gradients(ctx.layer), upstream != 0
        missing = missing.nonzero()[:, 0]
        gradients.add(missing, upstream[missing])
        return gradients.by_row, gradients.by_weight, gradients.by_bias, None, None, gradients.by_offset, None


class _Gradients:
    """Gradients of Σ_r scale_r · nll_r by rows, weight, bias and offsets, summed tile by tile."""

    def __init__(self, layer: _Layer) -> None:
        self.layer = layer
        self.by_row = torch.zeros_like(layer.rows)
        self.by_weight = torch.zeros_like(layer.weight, dtype=layer.bias.dtype)
        self.by_bias = torch.zeros_like(layer.bias)
        self.by_offset = None if layer.offsets is None else torch.zeros_like(layer.offsets.logits)

    def scale(self, factor: Tensor) -> None:
        for sums in (self.by_row, self.by_weight, self.by_bias, self.by_offset):
            if sums is not None:
                sums.mul_(factor)

    def add(self, index: Tensor, scale: Tensor) -> Tensor:
        """Add the gradients of some rows, and return their loss."""
        if not len(index):
            return self.by_bias.new_empty(0)
        every = len(index) == len(self.layer.rows)
        layer = self.layer if every else self.layer.take(index)
        # Start with the part of −onehot(target); ``_add_tile`` adds that of the probabilities.
        each = scale.to(layer.rows.dtype)[:, None]
        by_row = full_precision(-each * layer.weight[layer.target])
        self.by_weight.index_add_(0, layer.target, (-each * layer.rows).to(self.by_weight))
        self.by_bias.index_add_(0, layer.target, -scale.to(self.by_bias))
        if layer.offsets is not None and self.by_offset is not None:
            places = (layer.offsets.group, layer.target)
            self.by_offset.index_put_(places, -scale.to(self.by_offset), accumulate=True)

        def add_tile(some: slice, words: slice, exponentials: Tensor, share: Tensor) -> None:
            """Add the part of some rows and words, of probability ``exponentials`` times ``share``."""
            share = share * scale[some]
            self.by_bias[words] += exponentials.T @ share
            if layer.offsets is not None and self.by_offset is not None:
                probabilities = (exponentials * share[:, None]).to(self.by_offset)
                self.by_offset[:, words].index_add_(0, layer.offsets.group[some], probabilities)
            scaled = (share[:, None] * layer.rows[some]).to(layer.rows.dtype)
            exponentials = exponentials.to(scaled.dtype)
            if self.by_weight.dtype == scaled.dtype:
                self.by_weight[words].addmm_(exponentials.T, scaled)
            else:  # mixed precision: the product in the smaller type, the sum in the larger
                self.by_weight[words] += exponentials.T @ scaled
            by_row[some].addcmul_(share[:, None], exponentials @ layer.weight[words])

        nll = _nll(layer, add_tile)
        by_row = by_row.to(layer.rows.dtype)
        self.by_row = by_row if every else self.by_row.index_copy_(0, index, by_row)
        return nll


def _nll(layer: _Layer, use: Callable[[slice, slice, Tensor, Tensor], None] | None = None) -> Tensor:
    """Return the loss of each row; ``use`` receives the probabilities of each tile."""
    rows, target, offsets = layer.rows, layer.target, layer.offsets
    count, vocabulary = len(rows), len(layer.weight)
    tiles = [slice(start, min(start + WORDS, vocabulary)) for start in range(0, vocabulary, WORDS)]
    step = min(ROWS, max(1, KEPT // vocabulary), max(1, count))
    nll = full_precision(rows.new_empty(count))
    bias = layer.bias.to(rows.dtype)
    # In training, the tiles of a block are kept for the gradients.
    memory = nll.new_empty(len(tiles) if use else 1, step, min(WORDS, vocabulary))
    for start in range(0, count, step):
        some = slice(start, min(start + step, count))
        x = rows[some]
        # The largest logit so far; −∞ would give ∞ − ∞ where a whole tile is impossible.
        top, total = nll.new_full((len(x),), torch.finfo(nll.dtype).min), nll.new_zeros(len(x))
        kept = []
        for place, words in enumerate(tiles):
            logits = memory[place if use else 0, : len(x), : words.stop - words.start]
            if x.dtype == logits.dtype:
                torch.addmm(bias[words], x, layer.weight[words].T, out=logits)
            else:
                logits.copy_(torch.addmm(bias[words], x, layer.weight[words].T))
            if offsets is not None:
                logits += offsets.tile(some, words)
            higher = torch.maximum(top, logits.amax(-1))
            exponentials = _exp_(logits.sub_(higher[:, None]))
            total = total * (top - higher).exp() + exponentials.sum(-1)
            top = higher
            kept.append((words, exponentials, higher))
        log_total = top + total.log()
        nll[some] = log_total - target_logits(x, layer.weight, layer.bias, target[some])
        if use:
            for words, exponentials, higher in kept:
                use(some, words, exponentials, (higher - log_total).exp())
    return nll if offsets is None else nll - offsets.of(target)


def _exp_(values: Tensor) -> Tensor:
    """Return exp(x) = 2^(x log₂ e), in place: torch's ``exp_`` is MKL's, three times as slow on AMD."""
    return values.mul_(LOG2_E).exp2_()


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
    layer = _Layer(rows, weight.to(rows.dtype), bias, some, None)
    return _nll(layer) + target_logits(rows, weight, bias, some)


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
