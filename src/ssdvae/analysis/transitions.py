"""Transitions between frames: which frames follow which, and which precede a frame at any distance.

With q from the greedy chain, over all pairs of events of a document that are d apart, for a frame g:

    count(f, d) = Σ q_m(f) q_{m+d}(g)               expected times that f comes d events before g
    lift(f, d)  = p(f, d before g) / (p(f) p(g))    p by the same pairs; its logarithm is the PMI

A frame that comes before g no more often than before anything else has a lift of 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ssdvae.data.batches import Batch
from ssdvae.data.vocabulary import Inventory
from ssdvae.models.base import Model
from ssdvae.models.latents import FramePosterior

Array = NDArray[np.float64]
Order = Literal["lift", "probability", "count"]


@dataclass(frozen=True)
class Link:
    """``first`` directly followed by ``second``."""

    first: str
    second: str
    count: float  # expected times
    probability: float  # p(second | first)
    lift: float  # p(second | first) / p(second): above 1, they attract each other


@dataclass(frozen=True)
class Transitions:
    """Expected counts of neighbours: counts[f, g] = Σ_documents Σ_m q_m(f) q_{m+1}(g).

    Each q is given the most likely frame of the event before. The product is the probability of the pair if
    q_m is certain; otherwise it takes the two to be independent.
    """

    frames: Inventory
    counts: Array  # F F
    min_count: float = 5.0  # links with a lower expected count are left out

    @classmethod
    def of(cls, model: Model, min_count: float = 5.0) -> Transitions:
        """Return counts of nothing, to which batches are added."""
        return cls(model.frames, np.zeros((len(model.frames), len(model.frames))), min_count)

    def add(self, posterior: FramePosterior, batch: Batch) -> None:
        q = posterior.log_q.double().exp().masked_fill(~batch.mask[..., None], 0)
        np.add(self.counts, torch.einsum("bmf,bmg->fg", q[:, :-1], q[:, 1:]).cpu(), out=self.counts)

    @cached_property
    def probabilities(self) -> Array:
        """p(g | f); NaN where f is never followed by anything."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.counts / self.counts.sum(1, keepdims=True))

    @cached_property
    def lift(self) -> Array:
        """counts[f, g] · N / (counts[f, ·] counts[·, g]), whose logarithm is the PMI."""
        with np.errstate(invalid="ignore"):
            share = self.counts.sum(0) / self.counts.sum()
            return np.asarray(self.probabilities / share)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one row per link, the most frequent first."""
        return (asdict(link) for link in self.strongest(self.counts.size, "count"))

    def to_record(self) -> dict[str, Any]:
        return {"transitions": list(self.rows())}

    def strongest(self, k: int = 10, by: Order = "lift", min_count: float | None = None) -> list[Link]:
        """Return the strongest links with an expected count of at least ``min_count``."""
        least = max(self.min_count if min_count is None else min_count, np.finfo(float).tiny)
        values: dict[Order, Array] = {
            "lift": self.lift,
            "probability": self.probabilities,
            "count": self.counts,
        }
        scores = np.where(self.counts >= least, values[by], -np.inf)
        best = np.argsort(-scores, axis=None, kind="stable")[:k]
        pairs = zip(*np.unravel_index(best, scores.shape), strict=True)
        return [self._link(int(f), int(g)) for f, g in pairs if scores[f, g] > -np.inf]

    def _link(self, f: int, g: int) -> Link:
        count, probability, lift = (float(x[f, g]) for x in (self.counts, self.probabilities, self.lift))
        return Link(self.frames.name(f), self.frames.name(g), count, probability, lift)


NEAR = 4
"""Distances that are kept apart; all larger ones are one."""

DISTANCES = (*(str(d) for d in range(1, NEAR + 1)), f"{NEAR + 1} or more")


@dataclass(frozen=True)
class Before:
    """A frame that precedes another one, over all distances and at each."""

    frame: str
    count: float  # expected pairs
    lift: float
    pmi: float  # in nats
    by_distance: dict[str, tuple[float, float]]  # count and lift; lift NaN where nothing is so far apart


class Preceding:
    """Sums over pairs of events by distance; the last row is for all larger distances.

    Their size depends neither on the number nor on the length of documents.
    """

    def __init__(self, model: Model, target: str) -> None:
        self.frames, self.target = model.frames, target
        self.number = model.frames.find(target, "frame")
        D = len(DISTANCES)
        self.counts: Array = np.zeros((D, len(model.frames)))  # Σ q_m(f) q_{m+d}(g)
        self.firsts: Array = np.zeros((D, len(model.frames)))  # Σ q_m(f), over the same pairs
        self.seconds: Array = np.zeros(D)  # Σ q_{m+d}(g)
        self.pairs: Array = np.zeros(D)

    def add(self, posterior: FramePosterior, batch: Batch) -> None:
        q = posterior.log_q.double().exp().masked_fill(~batch.mask[..., None], 0)
        real = batch.mask.double()
        for row in range(min(len(DISTANCES), q.shape[1] - 1)):
            d = row + 1
            later = torch.stack([q[..., self.number], real])[:, :, d:]  # 2 B M−d
            if d > NEAR:
                later = later.flip(-1).cumsum(-1).flip(-1)  # those at this distance, and at every larger one
            count, first = torch.einsum("bmf,sbm->sf", q[:, :-d], later).cpu().numpy()
            self.counts[row] += count
            self.firsts[row] += first
            second, pairs = torch.einsum("bm,sbm->s", real[:, :-d], later).tolist()
            self.seconds[row] += second
            self.pairs[row] += pairs

    def lift(self) -> Array:
        """Return the lift over all distances (F)."""
        sums = (x.sum(0, keepdims=True) for x in (self.counts, self.firsts, self.seconds, self.pairs))
        return np.asarray(_lift(*sums)[0])

    def lift_by_distance(self) -> Array:
        """Return the lift at each distance (D F)."""
        return _lift(self.counts, self.firsts, self.seconds[:, None], self.pairs[:, None])

    def strongest(self, k: int = 10, min_count: float = 5.0) -> list[Before]:
        """Return the frames with the highest lift and an expected count of at least ``min_count``."""
        total, lift, near = self.counts.sum(0), self.lift(), self.lift_by_distance()
        enough = total >= max(min_count, np.finfo(float).tiny)
        best = [int(f) for f in np.argsort(-np.where(enough, lift, -np.inf), kind="stable")[:k] if enough[f]]
        return [
            Before(
                self.frames.name(f),
                float(total[f]),
                float(lift[f]),
                math.log(lift[f]),
                {
                    name: (float(self.counts[d, f]), float(near[d, f]))
                    for d, name in enumerate(DISTANCES)
                    if self.pairs[d]
                },
            )
            for f in best
        ]


def _lift(counts: Array, firsts: Array, seconds: Array, pairs: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(counts * pairs / (firsts * seconds))
