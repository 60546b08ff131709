"""Event similarity: are the events near each other that people find similar?

Each event is read alone and has a vector; two are as similar as the cosine of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ssdvae.data.cloze import credits
from ssdvae.data.events import Words
from ssdvae.data.triples import HardPairs, Pair, Rated
from ssdvae.evaluation.options import RESAMPLES, ROUNDING, Array, with_interval

Vectors = Callable[[Sequence[Words]], Array]
"""A row for each event."""


@dataclass(frozen=True)
class Similarities:
    """The cosines of the pairs of each item, and what they are held against."""

    items: Sequence[HardPairs] | Sequence[Rated]
    cosines: Array  # N 2: of the similar pair and the other one; or N 1

    @property
    def credit(self) -> Array:
        """Of hard pairs: 1 if the similar pair is nearer, one half if both are as near."""
        return np.asarray(credits(self.cosines, ROUNDING))

    @property
    def ratings(self) -> Array:
        return np.array([item.rating for item in self.items if isinstance(item, Rated)])

    def figures(self, name: str, seed: int) -> dict[str, float]:
        """The accuracy of hard pairs, or the rank correlation of rated ones, each with its interval."""
        if self.cosines.shape[1] == 2:
            return with_interval(f"{name}_accuracy", self.credit, seed)
        cosines, ratings = self.cosines[:, 0], self.ratings
        rows = np.random.default_rng(seed).integers(0, len(ratings), (RESAMPLES, len(ratings)))
        drawn = spearman(cosines[rows], ratings[rows])
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        found = float(spearman(cosines[None], ratings[None])[0])
        return {f"{name}_rho": found, f"{name}_rho_low": float(low), f"{name}_rho_high": float(high)}

    def details(self) -> list[dict[str, Any]]:
        """One record for each item."""
        if self.cosines.shape[1] == 1:
            known = zip(self.cosines[:, 0].tolist(), self.ratings.tolist(), strict=True)
            return [{"item": n, "cosine": c, "rating": r} for n, (c, r) in enumerate(known, start=1)]
        known = zip(self.cosines.tolist(), self.credit.tolist(), strict=True)
        return [{"item": n, "cosines": c, "credit": right} for n, (c, right) in enumerate(known, start=1)]


def spearman(a: Array, b: Array) -> Array:
    """Spearman's ρ of each row: the correlation of the ranks, where equal values share theirs."""
    x, y = (rankdata(values, axis=-1) for values in (a, b))
    x, y = (ranks - ranks.mean(-1, keepdims=True) for ranks in (x, y))
    with np.errstate(invalid="ignore"):  # of a row of equal values there is none
        return np.asarray((x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1)))


def similarities(items: Sequence[HardPairs] | Sequence[Rated], vectors: Vectors) -> Similarities:
    """The cosines by some vectors; of a vector of zeros, 0."""
    pairs: list[tuple[Pair, ...]] = [
        (item.pair,) if isinstance(item, Rated) else (item.similar, item.other) for item in items
    ]
    found = vectors([event for both in pairs for pair in both for event in pair]).astype(np.float64)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    found = np.divide(found, length, out=np.zeros_like(found), where=length > 0)
    cosines = (found[::2] * found[1::2]).sum(1)
    return Similarities(items, cosines.reshape(len(items), -1))
