"""What is known of heads before anything is learned: which frames they were observed with, or can have.

    s_fv = log p̂(f | v) − log p̂(f)        p̂(f | v) = (n_fv + α p̂(f)) / (n_v + α)

n_fv is how often head v was observed with frame f in training, all forms of a lemma taken together; a pair
that only a lexicon knows counts a little. Encoder and decoder add s, each times a strength that is learned:
by Bayes s_fv is also log p̂(v | f) − log p̂(v). A head of which nothing is known has s = 0: it is free.

In training an event that is observed is not counted for its own head: else it would answer for the network,
and counts would be trusted more than they deserve with new events.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ssdvae.models.mixture import UNSEEN, candidates

MOST = 16
"""Frames of a head that are told apart: its most frequent ones."""

SMOOTHING = 0.5
"""Where α starts."""


class Preference(nn.Module):
    """s_fv, and its strength in encoder and decoder."""

    table: Tensor
    counts: Tensor
    listed: Tensor
    frequency: Tensor

    def __init__(self, words: int, frames: int) -> None:
        super().__init__()
        self.encoder_strength = nn.Parameter(torch.ones(()))
        self.decoder_strength = nn.Parameter(torch.ones(()))
        self.log_smoothing = nn.Parameter(torch.tensor(SMOOTHING).log())
        self.register_buffer("table", torch.full((words, MOST), -1))
        self.register_buffer("counts", torch.zeros(words, MOST))
        self.register_buffer("listed", torch.zeros(words, MOST))
        self.register_buffer("frequency", torch.full((frames,), 1 / frames))

    def initialize_from_data(
        self,
        heads: Int[Tensor, " N"],
        frames: Int[Tensor, " N"],
        unknown: int,
        lexicon: Int[Tensor, "P 2"] | None = None,
        lemmas: Int[Tensor, " V"] | None = None,
    ) -> None:
        """Count pairs. ``lemmas`` numbers the lemma of each word; the ``unknown`` word is many, and free."""
        words = len(self.table)
        lemma = torch.arange(words) if lemmas is None else lemmas
        by_frame = frames.bincount(minlength=len(self.frequency)) + 1.0
        heads, frames = heads[heads != unknown], frames[heads != unknown]
        if lexicon is not None:
            lexicon = torch.stack([lemma[lexicon[:, 0]], lexicon[:, 1]], dim=1)
        table, counts = candidates(lemma[heads], frames, int(lemma.max()) + 1, MOST, lexicon)
        listed = torch.zeros_like(counts)
        if lexicon is not None:
            pairs = set(map(tuple, lexicon.tolist()))
            known = [[(row, frame) in pairs for frame in some] for row, some in enumerate(table.tolist())]
            listed = UNSEEN * torch.tensor(known)
        with torch.no_grad():
            self.table.copy_(table[lemma])
            self.counts.copy_(counts[lemma])
            self.listed.copy_(listed[lemma])
            self.table[unknown] = -1
            self.counts[unknown] = self.listed[unknown] = 0
            self.frequency.copy_(by_frame / by_frame.sum())

    def of(self, heads: Int[Tensor, "*N"], own: Int[Tensor, "*N"] | None = None) -> Float[Tensor, "*N F"]:
        """s of some heads; without the frame that each was observed with itself, where that is ``own``."""
        shape, heads = heads.shape, heads.flatten()
        frames, counts = self.table[heads], self.counts[heads]
        if own is not None:
            less = (frames == own.flatten()[:, None]) & (frames >= 0)
            counts = torch.where(less, torch.maximum(counts - 1, self.listed[heads]), counts)
        smoothing, total = self.log_smoothing.exp(), counts.sum(1, keepdim=True)
        # What is not among the candidates has the smoothing alone: p̂(f | v) / p̂(f) = α / (n_v + α).
        others = (smoothing / (total + smoothing)).log()
        index = frames.where(frames >= 0, len(self.frequency))
        frequency = self.frequency[frames.clamp_min(0)]
        candidates = ((counts / frequency + smoothing) / (total + smoothing)).log()
        rows = others.expand(-1, len(self.frequency) + 1).scatter(1, index, candidates)
        return rows[:, :-1].masked_fill(total == 0, 0).view(*shape, len(self.frequency))

    def for_encoder(
        self, heads: Int[Tensor, "B M"], own: Int[Tensor, "B M"] | None
    ) -> Float[Tensor, "B M F"]:
        return self.encoder_strength * self.of(heads, own)

    def for_decoder(self, weights: Float[Tensor, "*N F"]) -> Float[Tensor, "*N V"]:
        """What each word has to gain as the head of an event, by the weight of each frame."""
        # Most words are no heads, or none that is known: s is 0 there.
        known = (self.counts.sum(1) > 0).nonzero()[:, 0]
        scores = self.decoder_strength * (weights @ self.of(known).to(weights.dtype).T)
        everywhere = scores.new_zeros(*scores.shape[:-1], len(self.table))
        return everywhere.index_copy(-1, known, scores)
