"""The cross-entropy of training over some of the words, for vocabularies so large that all take too long.

The softmax of a row needs Z = Σ_v exp(o_v). Here each word v is drawn by itself with the chance π_v (all rows
share what is drawn, the set D), the row's own word w is always in, and

    Ẑ = exp(o_w) + Σ_{v ∈ D, v ≠ w} exp(o_v) / π_v,        nll = log Ẑ − o_w

The mean of Ẑ over D is Z, exactly. That of log Ẑ is below log Z (Jensen), by about Var(Ẑ) / 2Z²: the loss is
too low in the mean, and its gradient biased, the less the more words are drawn. With all, both are exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from ssdvae.models.output import Offsets, target_logits
from ssdvae.models.recurrent import full_precision


@dataclass(frozen=True)
class Drawn:
    """Some words, and the probability with which each was drawn."""

    words: Int[Tensor, " K"]
    probability: Float[Tensor, " K"]


def inclusion_probabilities(counts: Sequence[int], expected: int) -> Float[Tensor, " V"]:
    """π_v = min(1, c · count_v), where c is such that Σ_v π_v = ``expected``: frequent words are certain."""
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
    """Each word by its own probability; the same in all processes, which have the same generator."""
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
    """log Ẑ − o_target of each row."""
    words = drawn.words.to(rows.device)
    logits = full_precision(functional.linear(rows, weight[words].to(rows.dtype)))
    logits = logits + (bias[words] - drawn.probability.log().to(bias))
    own = target_logits(rows, weight, bias, target)
    if offsets is not None:
        logits = logits + full_precision(offsets.logits[:, words])[offsets.group]
        own = own + offsets.of(target)
    # Not −∞, whose softmax has no gradient where nothing else was drawn.
    logits = logits.masked_fill(words == target[:, None], torch.finfo(logits.dtype).min)
    return functional.softplus(logits.logsumexp(-1) - own)
