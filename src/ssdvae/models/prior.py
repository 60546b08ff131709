"""What the frames of a script are before anything is known of its words: p(f) = Π_m p(f_m | before).

One object serves the objective, the bound, scripts without a seed, and the graph of what follows what.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from ssdvae.config import SSDVAESettings
from ssdvae.data.vocabulary import Inventory
from ssdvae.models.recurrent import full_precision

ORDERED = ("Precedes", "Causative_of")
"""Relations of FrameNet in which one frame comes before the other."""

RELATED = (*ORDERED, "Subframe", "Inheritance", "Using")

BACKOFF, ALIKE, KNOWN = 200.0, 0.3, 2.0
"""How often the frequency of a frame counts beside the bigrams; how much of its relatives' counts a frame
gets; and how often an order that FrameNet knows counts as seen."""


class Prior(nn.Module):
    """log p(f_m | before) of all frames, given those that were drawn before, hard or soft."""

    learned = True
    """Whether it has parameters to be fitted."""
    causal = False
    """Whether a frame depends on the words before it, which must then not look at the frame."""
    needs_relations = False
    """Whether it starts from the relations between frames."""

    @classmethod
    @abstractmethod
    def new(cls, settings: SSDVAESettings, frames: int) -> Prior:
        """One for as many frames, with its first weights."""

    @abstractmethod
    def first(self, size: int) -> Float[Tensor, "B F"]:
        """Of the first event of ``size`` scripts."""

    @abstractmethod
    def next(self, before: Float[Tensor, "*B d"]) -> Float[Tensor, "*B F"]:
        """After what the next frame depends on: see ``context``."""

    def context(self, sample: Float[Tensor, "B M F"], ends: Float[Tensor, "B M h"]) -> Float[Tensor, "B M d"]:
        """What the next frame depends on: this frame, or the decoder's state at the end of its event."""
        return sample

    def transitions(self) -> Float[Tensor, "F F"] | None:
        """log p(next | frame), where that is all that the next frame depends on."""
        return None

    def initialize_from_data(
        self, frames: Int[Tensor, "N M"], related: Sequence[tuple[str, int, int]]
    ) -> None:
        """Start from the observed frames (−1: none) of the training split and relations, where it can."""
        return

    def forward(self, sample: Float[Tensor, "B M F"], ends: Float[Tensor, "B M h"]) -> Float[Tensor, "B M F"]:
        """At each event of a chain."""
        first = self.first(len(sample))[:, None]
        return torch.cat([first, self.next(self.context(sample, ends)[:, :-1])], dim=1)


class UniformPrior(Prior):
    """1/F, as in the paper."""

    learned = False

    def __init__(self, frames: int) -> None:
        super().__init__()
        self.uniform: Tensor
        self.register_buffer("uniform", torch.full((frames,), -math.log(frames)), persistent=False)

    @classmethod
    def new(cls, settings: SSDVAESettings, frames: int) -> Prior:
        return cls(frames)

    def first(self, size: int) -> Tensor:
        return self.uniform.expand(size, -1)

    def next(self, before: Tensor) -> Tensor:
        return self.uniform.expand(before.shape)


class MarkovPrior(Prior):
    """softmax(u_f V + b) after frame f, and softmax(s) at the start: of low rank, so that F may be large."""

    def __init__(self, frames: int, rank: int) -> None:
        super().__init__()
        rank = min(rank, frames)
        self.start = nn.Parameter(torch.zeros(frames))
        self.frequency = nn.Parameter(torch.zeros(frames))
        self.leaving = nn.Parameter(torch.randn(frames, rank) / rank)
        self.coming = nn.Parameter(torch.randn(rank, frames) / rank)

    @classmethod
    def new(cls, settings: SSDVAESettings, frames: int) -> Prior:
        return cls(frames, settings.prior_rank)

    def first(self, size: int) -> Tensor:
        return self.start.log_softmax(-1).expand(size, -1)

    def next(self, before: Tensor) -> Tensor:
        return (before.to(self.leaving) @ self.leaving @ self.coming + self.frequency).log_softmax(-1)

    def transitions(self) -> Tensor:
        frames = torch.eye(len(self.start), device=self.start.device)
        return self.next(frames)


class FrameNetPrior(MarkovPrior):
    """A Markov prior that begins with what is known of frames."""

    needs_relations = True

    @torch.no_grad()
    def initialize_from_data(
        self, frames: Int[Tensor, "N M"], related: Sequence[tuple[str, int, int]]
    ) -> None:
        """Begin with the frequencies of observed frames, smoothed along FrameNet's relations."""
        start, frequency, log_odds = bigram_statistics(frames.numpy(), len(self.start), related)
        u, s, v = torch.linalg.svd(torch.from_numpy(log_odds))
        rank, root = len(self.coming), s.sqrt()
        self.start.copy_(torch.from_numpy(start))
        self.frequency.copy_(torch.from_numpy(frequency))
        self.leaving.copy_(u[:, :rank] * root[:rank])
        self.coming.copy_(root[:rank, None] * v[:rank])


class HistoryPrior(Prior):
    """softmax(W z + s′) from the state z of the decoder after the event before.

    Further than the paper's chain: the next frame depends on all frames and words so far. The decoder must
    then not look at frames of later events, since these are drawn after its words.
    """

    causal = True

    def __init__(self, frames: int, hidden: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(frames))
        self.w_next = nn.Linear(hidden, frames)

    @classmethod
    def new(cls, settings: SSDVAESettings, frames: int) -> Prior:
        return cls(frames, settings.hidden)

    def first(self, size: int) -> Tensor:
        return self.start.log_softmax(-1).expand(size, -1)

    def context(self, sample: Tensor, ends: Tensor) -> Tensor:
        return ends

    def next(self, before: Tensor) -> Tensor:
        return full_precision(self.w_next(before)).log_softmax(-1)


PRIORS: dict[str, type[Prior]] = {
    "uniform": UniformPrior,
    "markov": MarkovPrior,
    "framenet": FrameNetPrior,
    "history": HistoryPrior,
}


def bigram_statistics(
    frames: NDArray[Any], count: int, related: Sequence[tuple[str, int, int]]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float32]]:
    """log p of first frames, log p of frames, and log p(g | f) − log p(g), all smoothed.

    A frame shares the bigrams of its relatives, and an order that FrameNet knows counts as seen.
    """
    seen = frames >= 0
    frequency = np.bincount(frames[seen], minlength=count) + 0.5
    start = np.bincount(frames[:, 0][seen[:, 0]], minlength=count) + 100.0 * frequency / frequency.sum()
    bigrams = np.zeros((count, count))
    both = seen[:, :-1] & seen[:, 1:]
    np.add.at(bigrams, (frames[:, :-1][both], frames[:, 1:][both]), 1)
    alike, ordered = np.zeros_like(bigrams), np.zeros_like(bigrams)
    for relation, first, second in related:
        alike[first, second] = alike[second, first] = 1
        if relation in ORDERED:
            ordered[first, second] += KNOWN
    alike /= np.maximum(1, alike.sum(1, keepdims=True))
    bigrams = bigrams + ALIKE * (alike @ bigrams + bigrams @ alike.T) / 2 + ordered
    p = frequency / frequency.sum()
    conditional = (bigrams + BACKOFF * p) / (bigrams.sum(1, keepdims=True) + BACKOFF)
    as_float = (np.log(start / start.sum()), np.log(p), np.log(conditional / p))
    first, second, third = (x.astype(np.float32) for x in as_float)
    return first, second, third


def relations_between(
    relations: Iterable[Mapping[str, Any]], frames: Inventory
) -> list[tuple[str, int, int]]:
    """Those that count, between frames that are known: what is earlier, a cause or above comes first."""
    return [
        (relation["relation"], frames.id(relation["sup"]), frames.id(relation["sub"]))
        for relation in relations
        if relation["relation"] in RELATED and relation["sub"] in frames and relation["sup"] in frames
    ]
