"""The sums over frames of the exact model, without parameters.

Before an event there is a state h, and from it p(f | h) and a language model's p_0(v | h). A frame reweighs
the heads v:

    p(v | f, h) = p_0(v | h) a_fv / ρ_f(h)        ρ_f(h) = Σ_v p_0(v | h) a_fv
    a_fv = exp(b_fv) if f is a candidate of v, else λ_f = exp(−c_f)

which is softmax(s_v(h) + log a_fv) for p_0 = softmax(s). The penalty c_f is finite: nothing has probability
zero. Pairs of a head and a candidate are few, so the sums over all words are sparse:

    ρ_f = λ_f + Σ_{v: f is a candidate of v} p_0(v | h) (exp(b_fv) − λ_f)

p_0 is normalised before it is summed and λ_f stands beside the sum, so that no ρ_f underflows, however
improbable all heads of the frame are beside the likeliest word.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Support:
    """a_fv: the candidates of each head with their weights, and the weight of all others.

    The unknown word stands for many heads: every frame is its candidate, and its row of the table is empty.
    """

    table: Int[Tensor, "V D"]  # candidate frames of each word, from the left; −1 where there are no more
    weights: Float[Tensor, "V D"]  # exp(b)
    others: Float[Tensor, " F"]  # λ
    unknown: int  # the word
    unknown_weights: Float[Tensor, " F"]  # its exp(b)

    @cached_property
    def pairs(self) -> tuple[Int[Tensor, " P"], Int[Tensor, " P"], Float[Tensor, " P"]]:
        """All pairs of a word and a candidate, ordered by frame, and exp(b) − λ of each."""
        words, places = (self.table >= 0).nonzero(as_tuple=True)
        every = torch.arange(len(self.others), device=self.table.device)
        frames = torch.cat([self.table[words, places], every])
        words = torch.cat([words, torch.full_like(every, self.unknown)])
        extra = torch.cat([self.weights[words[: len(places)], places], self.unknown_weights])
        order = frames.argsort(stable=True)
        return words[order], frames[order], (extra - self.others[frames])[order]

    @cached_property
    def words(self) -> Int[Tensor, " U"]:
        """The words that have candidates."""
        words: Tensor = torch.unique(self.pairs[0])
        return words

    def reach(self, p0: Float[Tensor, "N U"]) -> Float[Tensor, "N F"]:
        """Return ρ from the probabilities of ``words``."""
        words, frames, extra = self.pairs
        rows = torch.searchsorted(self.words, words)
        first = torch.searchsorted(frames, torch.arange(len(self.others), device=frames.device))
        # A weighted sum of rows for each frame is a bag of embeddings.
        sums = functional.embedding_bag(
            rows, p0.T.contiguous(), first, mode="sum", per_sample_weights=extra.to(p0.dtype)
        )
        return (self.others[:, None] + sums).clamp_min(torch.finfo(p0.dtype).tiny).T

    def of(self, heads: Int[Tensor, " N"]) -> Float[Tensor, "N F"]:
        """Return a_fv of one head each."""
        frames, count = self.table[heads], len(self.others)
        # Empty places of the table go to an extra column, which is cut off.
        index = frames.where(frames >= 0, count)
        row = functional.pad(self.others, (0, 1)).expand(len(heads), -1)
        known = row.scatter(1, index, self.weights[heads])[:, :count]
        return torch.where((heads == self.unknown)[:, None], self.unknown_weights, known)

    def over_words(self, weights: Float[Tensor, "N F"]) -> Float[Tensor, "N V"]:
        """Return Σ_f weights_f a_fv of every word v."""
        found = self.table.clamp_min(0)
        extra = (self.weights - self.others[found]) * (self.table >= 0)
        sums = (weights @ self.others)[:, None] + (weights[:, found] * extra).sum(-1)
        unknown = torch.arange(len(found), device=found.device) == self.unknown
        return torch.where(unknown, (weights @ self.unknown_weights)[:, None], sums)


@dataclass(frozen=True)
class EventScores:
    """Log-probabilities of N events under each frame that they could have."""

    log_frames: Float[Tensor, "N F"]  # log p(f | h)
    heads: Float[Tensor, "N F"]  # log p(f, v | h)
    arguments: Float[Tensor, "N F A"]  # log p(a_s | f, h, v, a_<s)

    @property
    def joint(self) -> Float[Tensor, "N F"]:
        """log p(f, v, a | h)"""
        return self.heads + self.arguments.sum(-1)

    def marginal(self) -> Float[Tensor, " N"]:
        """Return log p(v, a | h)."""
        return self.joint.logsumexp(-1)

    def joint_or_marginal(
        self, frames: Int[Tensor, "N K"], weights: Float[Tensor, "N K"]
    ) -> Float[Tensor, " N"]:
        """Return Σ_k weight_k log p(f_k, v, a | h) of labels, and log p(v, a | h) where all weights are 0."""
        joint = self.joint
        return expected(joint, frames, weights).where(weights.any(1), joint.logsumexp(-1))

    def posterior(self) -> Float[Tensor, "N F"]:
        """Return log r(f | h, v, a)."""
        return self.joint.log_softmax(-1)

    def words(self, given: Int[Tensor, " N"]) -> Float[Tensor, "N S"]:
        """Return log p of each word after those before it, and given the frame where that is not −1."""
        so_far = torch.cat([self.heads[..., None], self.arguments], dim=-1).cumsum(-1)
        index = given.clamp_min(0)[:, None]
        of_frame = so_far.gather(1, index[..., None].expand(-1, -1, so_far.shape[-1]))[:, 0]
        one = of_frame - self.log_frames.gather(1, index)
        log_p = one.where((given >= 0)[:, None], so_far.logsumexp(1))
        return log_p.diff(dim=-1, prepend=torch.zeros_like(log_p[:, :1]))


def expected(
    log_p: Float[Tensor, "N F"], frames: Int[Tensor, "N K"], weights: Float[Tensor, "N K"]
) -> Float[Tensor, " N"]:
    """Return Σ_k weight_k log p(f_k): the log-probability of a label, hard or soft; 0 without one."""
    return (weights * log_p.gather(1, frames).masked_fill(weights == 0, 0)).sum(1)


UNSEEN = 0.5
"""The count of a pair of head and frame that only a lexicon has."""


def candidates(
    heads: Int[Tensor, " N"],
    frames: Int[Tensor, " N"],
    words: int,
    most: int,
    lexicon: Int[Tensor, "P 2"] | None = None,
) -> tuple[Int[Tensor, "V D"], Float[Tensor, "V D"]]:
    """Return the most frequent frames of each head, from the left, and the count of each pair.

    Pairs that only the lexicon has come last.
    """
    listed = torch.empty(0, 2, dtype=torch.long) if lexicon is None else lexicon
    # One number per pair: torch.unique over columns takes 200 bytes per pair.
    width = 1 + int(torch.cat([frames, listed[:, 1]]).max()) if len(frames) + len(listed) else 1
    numbers = torch.cat([heads * width + frames, torch.unique(listed[:, 0] * width + listed[:, 1])])
    different, index = torch.unique(numbers, return_inverse=True)
    pairs = torch.stack([different // width, different % width])
    counts = index[: len(heads)].bincount(minlength=len(different)).float().clamp_min(UNSEEN)
    order = counts.argsort(descending=True, stable=True)
    order = order[pairs[0, order].argsort(stable=True)]
    (head, frame), count = pairs[:, order], counts[order]
    # The rank of a frame among those of its head.
    place = torch.arange(len(head)) - torch.searchsorted(head, head)
    kept = place < most
    table, together = torch.full((words, most), -1), torch.zeros(words, most)
    table[head[kept], place[kept]] = frame[kept]
    together[head[kept], place[kept]] = count[kept]
    return table, together
