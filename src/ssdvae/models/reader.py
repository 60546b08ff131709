"""The reader q(f_m | document): a small network that names frames and takes no part in the likelihood.

    e_m = relu(W [x_1; …; x_S])                          the word vectors of event m, as constants
    a_m, b_m                                             states of a bidirectional GRU over (e_j, label of j),
                                                         before event m and after it
    q(f_m | w) = softmax(W_out (e_m + tanh(W_c [a_m; b_m])) + σ s_m)

The label of event m itself is in neither state, so a known label of one event informs the others and never
answers for itself. s is the head-frame bias, how often a head was observed with each frame:

    s_fv = log p̂(f | v) − log p̂(f)        p̂(f | v) = (n_fv + α p̂(f)) / (n_v + α)

with the forms of a lemma pooled, and a pair that only a lexicon has counted as half an observation. A head
without counts has s = 0. In training an observed event is not counted for its own head: else it would answer
for the network. The strength σ and the smoothing α are learned.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ssdvae.models.layers import PaddedGRU, full_precision
from ssdvae.models.mixture import UNSEEN, candidates

HIDDEN = 128
"""Hidden units of each direction, at most."""

SMOOTHING = 0.5
"""The initial α."""

LABEL_WIDTH = 32
"""The dimension of the vectors of known labels."""


class HeadFrameCounts(nn.Module):
    """n_fv: how often each head was observed with each of its most frequent frames.

    Kept as integers, which half precision leaves as they are.
    """

    table: Tensor
    counts: Tensor
    listed: Tensor
    frequency: Tensor

    def __init__(self, words: int, frames: int, candidates: int) -> None:
        super().__init__()
        shape = (words, candidates)
        self.register_buffer("table", torch.full(shape, -1, dtype=torch.int32))
        self.register_buffer("counts", torch.zeros(shape, dtype=torch.int32))
        self.register_buffer("listed", torch.zeros(shape, dtype=torch.bool))  # in the lexicon
        self.register_buffer("frequency", torch.full((frames,), 1 / max(1, frames)))

    @torch.no_grad()
    def initialize_from_data(
        self,
        heads: Int[Tensor, " N"],
        frames: Int[Tensor, " N"],
        unknown: int,
        lexicon: Int[Tensor, "P 2"] | None = None,
        lemmas: Int[Tensor, " V"] | None = None,
    ) -> None:
        """Count pairs. ``lemmas`` numbers the lemma of each word; the ``unknown`` word has no counts."""
        lemma = torch.arange(len(self.table)) if lemmas is None else lemmas
        by_frame = frames.bincount(minlength=len(self.frequency)) + 1.0
        heads, frames = heads[heads != unknown], frames[heads != unknown]
        if lexicon is not None:
            lexicon = torch.stack([lemma[lexicon[:, 0]], lexicon[:, 1]], dim=1)
        table, counts = candidates(lemma[heads], frames, int(lemma.max()) + 1, self.table.shape[1], lexicon)
        listed = torch.zeros_like(counts, dtype=torch.bool)
        if lexicon is not None:
            pairs = set(map(tuple, lexicon.tolist()))
            known = [[(row, frame) in pairs for frame in own] for row, own in enumerate(table.tolist())]
            listed = torch.tensor(known)
        self.table.copy_(table[lemma])
        self.counts.copy_(counts.floor()[lemma])  # a pair that only the lexicon has is counted as half
        self.listed.copy_(listed[lemma])
        self.table[unknown] = -1
        self.counts[unknown] = 0
        self.listed[unknown] = False
        self.frequency.copy_(by_frame / by_frame.sum())

    def log_odds(
        self, heads: Int[Tensor, " N"], smoothing: Float[Tensor, ""], own: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "N F"]:
        """Return s of some heads, without counting the frame ``own`` that each is observed with."""
        frames, counts = self.table[heads].long(), self.counts[heads].to(self.frequency.dtype)
        if own is not None:
            counts = counts - ((frames == own[:, None]) & (frames >= 0)).to(counts)
        counts = torch.maximum(counts, UNSEEN * self.listed[heads])
        total = counts.sum(1, keepdim=True)
        # A frame that is no candidate has the smoothing alone: p̂(f | v) / p̂(f) = α / (n_v + α).
        others = (smoothing / (total + smoothing)).log()
        index = frames.where(frames >= 0, len(self.frequency))
        frequency = self.frequency[frames.clamp_min(0)]
        known = ((counts / frequency + smoothing) / (total + smoothing)).log()
        rows = others.expand(-1, len(self.frequency) + 1).scatter(1, index, known)
        return rows[:, :-1].masked_fill(total == 0, 0)


class FrameReader(nn.Module):
    """q(f_m | document), from word vectors, known labels of other events, and the head-frame bias."""

    def __init__(self, width: int, slots: int, hidden: int, frames: int) -> None:
        super().__init__()
        self.event = nn.Linear(slots * width, 2 * hidden)
        self.labels = nn.Embedding(frames + 1, LABEL_WIDTH)  # the last one stands for an unknown label
        self.gru = PaddedGRU(2 * hidden + LABEL_WIDTH, hidden, 1)
        self.context = nn.Linear(2 * hidden, 2 * hidden)
        self.w_out = nn.Linear(2 * hidden, frames)
        self.strength = nn.Parameter(torch.ones(()))
        self.log_smoothing = nn.Parameter(torch.tensor(SMOOTHING).log())

    def forward(
        self,
        words: Float[Tensor, "B M S e"],
        heads: Int[Tensor, "B M"],
        labels: Int[Tensor, "B M"],
        mask: Bool[Tensor, "B M"],
        counts: HeadFrameCounts,
        own: Int[Tensor, "B M"] | None = None,
    ) -> Float[Tensor, "N F"]:
        """Return log q of the real events.

        ``labels`` are those known for other events, −1: unknown; ``own`` the observed frames, in training.
        """
        words = words.masked_fill(~mask[..., None, None], 0)  # NaN * 0 is NaN
        events = self.event(words.flatten(2)).relu()
        known = self.labels(labels.where(labels >= 0, self.labels.num_embeddings - 1))
        ahead, back = self.gru(torch.cat([events, known], dim=-1), mask).chunk(2, dim=-1)
        nothing = torch.zeros_like(ahead[:, :1])
        before, after = torch.cat([nothing, ahead[:, :-1]], 1), torch.cat([back[:, 1:], nothing], 1)
        joined = events[mask] + self.context(torch.cat([before, after], dim=-1)[mask]).tanh()
        smoothing = full_precision(self.log_smoothing).exp()
        bias = counts.log_odds(heads[mask], smoothing, None if own is None else own[mask])
        return (full_precision(self.w_out(joined)) + self.strength * bias).log_softmax(-1)
