"""What usually precedes a frame, at any distance.

For a frame g and a distance d, over all pairs of events of a document that are d apart, with q from the
greedy chain:

    count(f, d) = Σ q_m(f) q_{m+d}(g)               expected times that f comes d events before g
    lift(f, d)  = p(f, d before g) / (p(f) p(g))    p by the same pairs; its logarithm is the PMI

and the same over the pairs of all distances. A frame that comes before g no more often than before anything
else has a lift of 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssdvae.data.batches import Batch
from ssdvae.data.vocabulary import Inventory
from ssdvae.models.base import FramePosterior, Model

NEAR = 4
"""Distances that are told apart; all that are farther are one."""

DISTANCES = (*(str(d) for d in range(1, NEAR + 1)), f"{NEAR + 1} or more")

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Before:
    """A frame that comes before another one, at any distance and at each."""

    frame: str
    count: float  # expected pairs
    lift: float
    pmi: float  # in nats
    by_distance: dict[str, tuple[float, float]]  # count and lift; lift NaN where nothing is so far apart


@dataclass(frozen=True)
class Preceding:
    """Sums over pairs of events, by distance: the last is all that are farther."""

    frames: Inventory
    target: str
    counts: Array  # D F: Σ q_m(f) q_{m+d}(g)
    firsts: Array  # D F: Σ q_m(f), over the same pairs
    seconds: Array  # D: Σ q_{m+d}(g)
    pairs: Array  # D

    def lift(self) -> Array:
        """F: over all distances."""
        sums = (x.sum(0, keepdims=True) for x in (self.counts, self.firsts, self.seconds, self.pairs))
        return np.asarray(_lift(*sums)[0])

    def lift_by_distance(self) -> Array:
        """D F."""
        return _lift(self.counts, self.firsts, self.seconds[:, None], self.pairs[:, None])

    def strongest(self, k: int = 10, min_count: float = 5.0) -> list[Before]:
        """The frames that are expected before it at least ``min_count`` times, by lift."""
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


class PrecedingSums:
    """The sums, whose size depends neither on the number of documents nor on their length."""

    def __init__(self, model: Model, target: str) -> None:
        self.model, self.target = model, target
        self.number = model.frames.find(target, "frame")
        shape = (len(DISTANCES), len(model.frames))
        self.counts, self.firsts = (torch.zeros(shape, dtype=torch.float64) for _ in range(2))
        self.seconds, self.pairs = (torch.zeros(len(DISTANCES), dtype=torch.float64) for _ in range(2))

    def add(self, beliefs: FramePosterior, batch: Batch) -> None:
        q = beliefs.log_q.double().exp().masked_fill(~batch.mask[..., None], 0)
        real = batch.mask.double()
        for row in range(min(len(DISTANCES), q.shape[1] - 1)):
            d = row + 1
            later = torch.stack([q[..., self.number], real])[:, :, d:]  # 2 B M−d
            if d > NEAR:
                later = later.flip(-1).cumsum(-1).flip(-1)  # those at this distance, and at every larger one
            sums = torch.einsum("bmf,sbm->sf", q[:, :-d], later).cpu()
            self.counts[row] += sums[0]
            self.firsts[row] += sums[1]
            here = torch.einsum("bm,sbm->s", real[:, :-d], later).cpu()
            self.seconds[row] += here[0]
            self.pairs[row] += here[1]

    def result(self) -> Preceding:
        numbers = (x.numpy() for x in (self.counts, self.firsts, self.seconds, self.pairs))
        return Preceding(self.model.frames, self.target, *numbers)
