"""Figures of predictions after every prefix, and a paired bootstrap over cases to compare two systems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.log_data import Prefixes

Floats = NDArray[np.float64]

BINS = 15
DRAWS = 1000
"""Simulated models, and resamples of the bootstrap."""

MEASURES = ("log_loss", "error", "next_mae", "remaining_mae")
"""The losses that are compared, all the lower the better."""


@dataclass(frozen=True)
class Predictions:
    """The answers of a system after every prefix; None where it has none."""

    log_p: Floats | None = None  # N K
    next_days: Floats | None = None  # medians
    remaining_days: Floats | None = None


def losses_of(found: Predictions, true: Prefixes) -> dict[str, Floats]:
    """Return the losses of each prefix, NaN where there is nothing to predict, and its case."""
    losses: dict[str, Floats] = {"case": true.case.astype(float)}
    if found.log_p is not None:
        losses["log_loss"] = -found.log_p[np.arange(len(true)), true.next]
        losses["error"] = (found.log_p.argmax(1) != true.next).astype(float)
        losses["confidence"] = np.exp(found.log_p.max(1))
        losses["predicted"] = found.log_p.argmax(1).astype(float)
    if found.next_days is not None:
        losses["next_mae"] = np.abs(found.next_days - true.next_days)
    if found.remaining_days is not None:
        losses["remaining_mae"] = np.abs(found.remaining_days - true.remaining_days)
    return losses


def figures_of(losses: Mapping[str, Floats], true: Prefixes, seed: int = 0) -> dict[str, float]:
    """Return the means of the losses, macro F1, and the calibration error with its range by chance."""
    figures = {name: float(np.nanmean(losses[name])) for name in MEASURES if name in losses}
    if "error" in losses:
        figures["accuracy"] = 1 - figures["error"]
        figures["macro_f1"] = macro_f1(losses["predicted"].astype(int), true.next)
        right = losses["error"] == 0
        figures["calibration"] = calibration_error(losses["confidence"], right)
        low, high = calibration_range(losses["confidence"], np.random.default_rng(seed))
        figures |= {"calibration_low": low, "calibration_high": high}
    return figures


def macro_f1(predicted: NDArray[np.int64], true: NDArray[np.int64]) -> float:
    """Return the mean F1 of the classes that occur."""
    scores = []
    for name in np.unique(true):
        both = np.sum((predicted == name) & (true == name))
        scores.append(2 * both / (np.sum(predicted == name) + np.sum(true == name)))
    return float(np.mean(scores))


def calibration_error(confidence: Floats, right: NDArray[np.bool_]) -> float:
    """Return the mean |confidence − accuracy| over bins of equal mass."""
    return float(_calibration_errors(confidence, right[None])[0])


def calibration_range(confidence: Floats, draws: np.random.Generator) -> tuple[float, float]:
    """Return the central 95 % of the calibration errors of a perfectly calibrated model.

    It is as sure of its answers as this one, and right as often as it says.
    """
    chunks = [draws.random((DRAWS // 10, len(confidence))) < confidence for _ in range(10)]
    errors = np.concatenate([_calibration_errors(confidence, right) for right in chunks])
    low, high = np.quantile(errors, [0.025, 0.975])
    return float(low), float(high)


def _calibration_errors(confidence: Floats, right: NDArray[np.bool_]) -> Floats:
    order = np.argsort(confidence, kind="stable")
    gaps = (right - confidence)[:, order]
    edges = np.linspace(0, len(order), min(BINS, len(order)) + 1).astype(int)[:-1]
    sums: Floats = np.abs(np.add.reduceat(gaps, edges, axis=1)).sum(1)
    return sums / len(order)


class Difference(NamedTuple):
    """How much a system is behind another: the mean difference of a loss, and its standard error."""

    mean: float
    error: float
    low: float  # of the central 95 %
    high: float

    @property
    def behind(self) -> bool:
        """Whether the first is significantly worse."""
        return self.low > 0


def paired_bootstrap(mine: Floats, other: Floats, case: NDArray[np.int64], seed: int = 0) -> Difference:
    """Compare the losses of two systems on the same prefixes, with the cases drawn anew."""
    there = ~np.isnan(mine - other)
    difference, case = (mine - other)[there], case[there]
    count = int(case.max()) + 1
    sums, sizes = np.bincount(case, difference, count), np.bincount(case, minlength=count)
    weights = np.random.default_rng(seed).multinomial(count, np.full(count, 1 / count), size=DRAWS)
    means = weights @ sums / (weights @ sizes)
    low, high = np.quantile(means, [0.025, 0.975])
    return Difference(float(difference.mean()), float(means.std()), float(low), float(high))
