"""Questions with several answers, of which the first is right: how often is it chosen, give or take?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.data.cloze import credits

ROUNDING = 1e-6
"""Below this, two log-probabilities of a network are the same."""

RESAMPLES = 2000
"""Draws of the items behind an interval."""

Array = NDArray[np.float64]


@dataclass(frozen=True)
class OptionScores:
    """The scores of the options of each item by way of scoring, the higher the better; option 0 is right.

    An item that has fewer options than others has −∞ in the place of the rest.
    """

    task: str
    scores: Mapping[str, Array]  # by way: N O

    @property
    def ways(self) -> dict[str, Array]:
        """The credit of each item, by way."""
        return {way: credits(scores, ROUNDING) for way, scores in self.scores.items()}

    def figures(self, seed: int) -> dict[str, Any]:
        """Accuracies with 95 % intervals, what chance gives, and the number of items."""
        figures: dict[str, Any] = {}
        for way, credit in self.ways.items():
            figures |= with_interval(f"{self.task}_{way}", credit, seed)
        options = np.isfinite(next(iter(self.scores.values()))).sum(1)
        return {
            **figures,
            f"{self.task}_chance": float((1 / options).mean()),
            f"{self.task}_items": len(options),
        }

    def details(self) -> list[dict[str, Any]]:
        """One record for each item."""
        ways = self.ways
        return [
            {
                "item": item + 1,
                **{way: _finite(scores[item]) for way, scores in self.scores.items()},
                "credit": {way: float(credit[item]) for way, credit in ways.items()},
            }
            for item in range(len(next(iter(ways.values()))))
        ]


def _finite(scores: Array) -> list[float]:
    return [float(score) for score in scores[np.isfinite(scores)]]


def with_interval(name: str, credit: Array, seed: int) -> dict[str, float]:
    """The mean under a name, and its interval."""
    low, high = interval(credit, seed)
    return {name: float(credit.mean()), f"{name}_low": low, f"{name}_high": high}


def interval(credit: Array, seed: int) -> tuple[float, float]:
    """The 95 % bootstrap interval of the mean."""
    # Few different values: it is enough to draw how often each comes.
    values, counts = np.unique(credit, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(credit), counts / len(credit), RESAMPLES)
    low, high = np.quantile(drawn @ values / len(credit), [0.025, 0.975])
    return float(low), float(high)


def log_mean(log_probs: Array, left_out: NDArray[np.bool_]) -> Array:
    """log of the mean probability over the last axis, without what is left out."""
    kept = np.where(left_out, -np.inf, log_probs)
    top = kept.max(-1, keepdims=True)
    total = np.exp(kept - top).sum(-1)
    return np.asarray(top[..., 0] + np.log(total / (~left_out).sum(-1)))
