"""Which frames follow which."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from ssdvae.answers.beliefs import accumulate_over_split
from ssdvae.config import ExplainSettings
from ssdvae.data.batches import Batch
from ssdvae.data.corpus import Documents
from ssdvae.data.vocabulary import Inventory
from ssdvae.models.base import FramePosterior, Model
from ssdvae.progress import Advance, no_advance

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

    Each q is that of the greedy chain, given the likeliest frame of the event before; so the product is the
    probability of the pair if q_m is certain, and otherwise takes the two to be independent.
    """

    frames: Inventory
    counts: Array  # F F
    min_count: float = 5.0  # links that are expected less often are not told

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
        """For tables: one row a link, the most frequent first."""
        return (asdict(link) for link in self.strongest(self.counts.size, "count"))

    def to_record(self) -> dict[str, Any]:
        return {"transitions": list(self.rows())}

    def strongest(self, k: int = 10, by: Order = "lift", min_count: float | None = None) -> list[Link]:
        """The links that were expected at least ``min_count`` times, strongest first."""
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


class TransitionSums:
    """Expected counts: their size does not depend on the number of documents."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.counts = torch.zeros(len(model.frames), len(model.frames), dtype=torch.float64)

    def add(self, beliefs: FramePosterior, batch: Batch) -> None:
        q = beliefs.log_q.double().exp().masked_fill(~batch.mask[..., None], 0)
        self.counts += torch.einsum("bmf,bmg->fg", q[:, :-1], q[:, 1:]).cpu()

    def result(self) -> Transitions:
        return Transitions(self.model.frames, self.counts.numpy())


def transitions(
    model: Model,
    documents: Documents,
    settings: ExplainSettings | None = None,
    advance: Advance = no_advance,
) -> Transitions:
    """Which frames follow which on a split, with no frame observed."""
    return accumulate_over_split(TransitionSums, model, documents, settings, advance)
