"""What the measured figures say: means over seeds, and what is clear of their noise.

Each figure is a mean over seeds with its standard error. One is clearly above another if the difference of
the means is larger than its own standard error, √(error² + error²). A figure falls as ε rises if it is
clearly lower at the highest ε than at the lowest, and no step from one ε to the next clearly raises it.

It takes three seeds to say so: with fewer, the standard error is unknown or hardly known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ssdvae.config.paper import Version
from ssdvae.evaluation.summary import Spread
from ssdvae.paper.grid import Configuration, of_version
from ssdvae.paper.measured import CORPUS, Measured, figure_named

SEEDS = 3
"""With fewer than these behind any of its figures, a claim is not judged."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its standard error."""

    mean: float
    error: float
    seeds: int
    mark: str = ""  # stands beside it, wherever it is shown

    @classmethod
    def of(cls, spread: Spread) -> Estimate:
        seeds = len(spread.values)
        return cls(spread.mean, (spread.deviation or 0.0) / math.sqrt(seeds), seeds, spread.mark)

    def __sub__(self, other: Estimate) -> Estimate:
        error = math.hypot(self.error, other.error)
        seeds, mark = min(self.seeds, other.seeds), self.mark or other.mark
        return Estimate(self.mean - other.mean, error, seeds, mark)

    def text(self, figure: str) -> str:
        return figure_named(figure).text(self.mean) + self.mark

    def clearly_above(self, other: Estimate) -> bool:
        difference = self - other
        return difference.mean > difference.error


@dataclass(frozen=True)
class Part:
    """One thing that a claim says: whether it holds (None if it was not measured), and the numbers.

    ``seeds`` are the fewest behind any of these.
    """

    holds: bool | None
    evidence: str
    seeds: int = 0

    @property
    def tested(self) -> bool:
        return self.holds is not None and self.seeds >= SEEDS


Point = tuple[float, Estimate]
"""ε, and a figure there."""


class Evidence:
    """The measured figures, as the claims ask for them."""

    def __init__(
        self,
        measured: Measured,
        observed: Sequence[float],
        cloze: Sequence[str] = (CORPUS,),
        version: Version = "paper",
    ) -> None:
        self.measured, self.observed = measured, observed
        self.cloze = cloze  # names of the cloze data
        self.version: Version = version  # which SSDVAE it is about

    def estimate(self, row: Configuration, figure: str, data: str = CORPUS) -> Estimate | None:
        spread = self.measured.get(row, figure, data)
        return None if spread is None else Estimate.of(spread)

    def points(
        self, row: Callable[[float], Configuration], figure: str, data: str = CORPUS, lowest: float = 0.0
    ) -> list[Point]:
        """The figure of SSDVAE at each ε that was measured, from the lowest."""
        rows = [(e, of_version(row(e), self.version)) for e in sorted(self.observed) if e >= lowest]
        found = ((e, self.estimate(mine, figure, data)) for e, mine in rows)
        return [(e, estimate) for e, estimate in found if estimate is not None]


def series(points: Sequence[Point], figure: str) -> str:
    """A figure at each ε, as text."""
    return ", ".join(f"{e.text(figure)} at ε = {observe:g}" for observe, e in points)


def fewest_seeds(points: Iterable[Point], *others: Estimate) -> int:
    """The fewest seeds behind any of these figures."""
    return min(e.seeds for e in (*(e for _, e in points), *others))


def clearly(seeds: int) -> str:
    """A word that takes enough seeds."""
    return "clearly " if seeds >= SEEDS else ""


def trend(points: Sequence[Point], figure: str, what: str, rises: bool) -> Part:
    """Whether a figure rises, or falls, with ε."""
    verb = "rise" if rises else "fall"
    if len(points) < 2:
        return Part(None, f"{what} was measured at {len(points)} values of ε; it takes two.")
    ordered = [e for _, e in points] if rises else [e for _, e in reversed(points)]
    against = [
        f"{low:g} to {high:g}"
        for (low, before), (high, after) in pairwise(points)
        if (before.clearly_above(after) if rises else after.clearly_above(before))
    ]
    clear, seeds = ordered[-1].clearly_above(ordered[0]), fewest_seeds(points)
    says = f"{what} {verb}s" if clear else f"{what} does not {clearly(seeds)}{verb}"
    back = f"; it goes the other way from ε = {', '.join(against)}" if against else ""
    return Part(
        clear and not against,
        f"{says} from the lowest ε to the highest{back}: {series(points, figure)}.",
        seeds,
    )


def beats(
    points: Sequence[Point], rival: Estimate | None, figure: str, what: str, name: str, *, higher: bool
) -> Part:
    """Whether a figure is clearly better than a baseline's at every ε that was measured."""
    if rival is None or not points:
        missing = name if rival is None else "SSDVAE at these ε"
        return Part(None, f"{what}: {missing} was not measured.")
    better = [e for e in points if _better(e[1], rival, higher)]
    worse = [point for point in points if point not in better]
    place, seeds = "above" if higher else "below", fewest_seeds(points, rival)
    says = f"{what}: {clearly(seeds)}{place} {name} ({rival.text(figure)})"
    but = f", not with {series(worse, figure)}" if worse else ""
    return Part(not worse, f"{says} at {len(better)} of {len(points)} ε{but}.", seeds)


def _better(mine: Estimate, rival: Estimate, higher: bool) -> bool:
    return mine.clearly_above(rival) if higher else rival.clearly_above(mine)
