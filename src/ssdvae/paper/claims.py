"""What the paper claims, and whether the cells that were measured support it.

Each figure is a mean over seeds with its standard error. One is clearly above another if the difference of
the means is larger than its own standard error, √(error² + error²); a single run has no error, and then any
difference counts. A figure falls as ε rises if it is clearly lower at the highest ε than at the lowest, and
no step from one ε to the next clearly raises it.

A claim has parts. It is supported if all of them hold, not supported if one fails, and else not measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ssdvae.evaluation.summary import Spread, digits
from ssdvae.paper.grid import (
    CLASSIFIERS,
    HAQAE,
    RNNLM,
    RNNLM_ROLE,
    Configuration,
    ssdvae_concatenation_row,
    ssdvae_row,
    ssdvae_single_row,
)
from ssdvae.paper.measured import CLOSE, CORPUS, Measured

HIGH = 0.7
"""From this ε on, frames are “sufficiently available”, as the paper says."""

SUPPORTED, NOT_SUPPORTED, NOT_MEASURED = "supported", "not supported", "not measured"


@dataclass(frozen=True)
class Estimate:
    """A mean and its standard error."""

    mean: float
    error: float

    @classmethod
    def of(cls, spread: Spread) -> Estimate:
        return cls(spread.mean, (spread.deviation or 0.0) / math.sqrt(len(spread.values)))

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(self.mean - other.mean, math.hypot(self.error, other.error))

    def clearly_above(self, other: Estimate) -> bool:
        difference = self - other
        return difference.mean > difference.error


@dataclass(frozen=True)
class Part:
    """One thing that a claim says: whether it holds (None if it was not measured), and the numbers."""

    holds: bool | None
    evidence: str


@dataclass(frozen=True)
class Verdict:
    number: int
    claim: str
    verdict: str
    evidence: str

    def __str__(self) -> str:
        return f"{self.number}. {self.claim}: {self.verdict}. {self.evidence}"


Point = tuple[float, Estimate]
"""ε, and a figure there."""


class Evidence:
    """The measured figures, as the claims ask for them."""

    def __init__(
        self, measured: Measured, observed: Sequence[float], cloze: Sequence[str] = (CORPUS,)
    ) -> None:
        self.measured, self.observed = measured, observed
        self.cloze = cloze  # names of the cloze data

    def estimate(self, row: Configuration, figure: str, data: str = CORPUS) -> Estimate | None:
        spread = self.measured.get(row, figure, data)
        return None if spread is None else Estimate.of(spread)

    def points(
        self, row: Callable[[float], Configuration], figure: str, data: str = CORPUS, lowest: float = 0.0
    ) -> list[Point]:
        """The figure at each ε that was measured, from the lowest."""
        found = ((e, self.estimate(row(e), figure, data)) for e in sorted(self.observed) if e >= lowest)
        return [(e, estimate) for e, estimate in found if estimate is not None]


def _path(points: Sequence[Point], figure: str) -> str:
    return ", ".join(f"{e.mean:.{digits(figure)}f} at ε = {observe:g}" for observe, e in points)


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
    clear = ordered[-1].clearly_above(ordered[0])
    says = f"{what} {verb}s" if clear else f"{what} does not clearly {verb}"
    back = f"; it goes the other way from ε = {', '.join(against)}" if against else ""
    return Part(
        clear and not against, f"{says} from the lowest ε to the highest{back}: {_path(points, figure)}."
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
    place = "above" if higher else "below"
    says = f"{what}: clearly {place} {name} ({rival.mean:.{digits(figure)}f})"
    but = f", not with {_path(worse, figure)}" if worse else ""
    return Part(not worse, f"{says} at {len(better)} of {len(points)} ε{but}.")


def _better(mine: Estimate, rival: Estimate, higher: bool) -> bool:
    return mine.clearly_above(rival) if higher else rival.clearly_above(mine)


def _remark(parts: Iterable[Part]) -> list[str]:
    """Evidence that the verdict does not rest on; nothing of what was not measured."""
    return [part.evidence for part in parts if part.holds is not None]


def perplexity_falls(e: Evidence) -> list[Part]:
    return [trend(e.points(ssdvae_row, "ppl_official"), "ppl_official", "perplexity", rises=False)]


def perplexity_beats(e: Evidence) -> list[Part]:
    return _below_the_baselines(e, "ppl_official", "perplexity")


def _below_the_baselines(e: Evidence, figure: str, what: str) -> list[Part]:
    rivals = ((RNNLM, 0.0, what), (RNNLM_ROLE, 0.0, what), (HAQAE, HIGH, f"{what} from ε = {HIGH:g} on"))
    return [
        beats(
            e.points(ssdvae_row, figure, lowest=lowest),
            e.estimate(row, figure),
            figure,
            says,
            row.label,
            higher=False,
        )
        for row, lowest, says in rivals
    ]


def cloze_beats(e: Evidence) -> list[Part]:
    return _above_in_cloze(e, "cloze_nll", "cloze")


def _above_in_cloze(e: Evidence, figure: str, what: str) -> list[Part]:
    return [
        beats(
            e.points(ssdvae_row, figure, data),
            e.estimate(row, figure, data),
            figure,
            what if data == CORPUS else f"{what} on {data}",
            row.label,
            higher=True,
        )
        for data in e.cloze
        for row in (RNNLM, RNNLM_ROLE, HAQAE)
    ]


def middle_and_high(e: Evidence) -> list[Part]:
    cloze = e.points(ssdvae_row, "cloze_nll", e.cloze[0]) if e.cloze else []
    return [_best_in_the_middle(cloze), _best_when_high(e.points(ssdvae_row, "ppl_official"))]


def _best_in_the_middle(points: Sequence[Point]) -> Part:
    if len(points) < 3:
        return Part(None, f"The cloze was measured at {len(points)} values of ε; a middle takes three.")
    (_, first), *middle, (_, last) = points
    observe, best = max(middle, key=lambda point: point[1].mean)
    holds = best.clearly_above(first) and best.clearly_above(last)
    says = f"The best cloze in the middle, at ε = {observe:g}, is {'' if holds else 'not '}clearly"
    return Part(holds, f"{says} above both ends: {_path(points, 'cloze_nll')}.")


def _best_when_high(points: Sequence[Point]) -> Part:
    if len(points) < 2 or not any(observe >= HIGH for observe, _ in points):
        return Part(None, f"It takes the perplexity at two values of ε, one of them {HIGH:g} or more.")
    observe, best = min(points, key=lambda point: point[1].mean)
    return Part(observe >= HIGH, f"Perplexity is lowest at ε = {observe:g} ({best.mean:.2f}).")


def frames_learned(e: Evidence) -> list[Part]:
    points = e.points(ssdvae_single_row, "frame_f1")
    rises = trend(points, "frame_f1", "macro F1", rises=True)
    rivals = [
        beats(
            points[-1:],
            e.estimate(row, "frame_f1"),
            "frame_f1",
            "macro F1" + (f" {_path(points[-1:], 'frame_f1')}" if points else ""),
            f"the classifier {row.label}",
            higher=True,
        )
        for row in CLASSIFIERS
    ]
    return [rises, *rivals]


def addition_beats(e: Evidence) -> list[Part]:
    added, joined = (dict(e.points(row, "ppl_official")) for row in (ssdvae_row, ssdvae_concatenation_row))
    both = [observe for observe in added if observe in joined]
    if not both:
        return [Part(None, "Addition and concatenation were not both measured at the same ε.")]
    worse = [observe for observe in both if not joined[observe].clearly_above(added[observe])]
    gaps = [(observe, joined[observe] - added[observe]) for observe in both]
    won = f"at {len(both) - len(worse)} of {len(both)} ε"
    return [
        Part(not worse, f"The perplexity of addition is clearly below that of concatenation {won}."),
        trend(gaps, "ppl_official", "the lead of addition", rises=True),
    ]


def converges_faster(e: Evidence) -> list[Part]:
    what = f"steps to within {CLOSE - 1:.0%} of the run's own best perplexity"
    points, rival = e.points(ssdvae_row, "step_converged"), e.estimate(HAQAE, "step_converged")
    return [beats(points, rival, "step_converged", what, "HAQAE", higher=False)]


def attention_on_verbs(e: Evidence) -> list[Part]:
    falls = trend(
        e.points(ssdvae_row, "attention_entropy"), "attention_entropy", "attention entropy", rises=False
    )
    verbs = e.points(ssdvae_row, "attention_verbs")
    if not verbs:
        return [falls, Part(None, "Attention was not measured.")]
    observe, share = verbs[-1]
    holds = share.clearly_above(Estimate(0.5, 0.0))
    return [
        falls,
        Part(holds, f"At ε = {observe:g} verbs have {share.mean:.1%} of the attention; half is asked for."),
    ]


def haqae_level(e: Evidence) -> list[str]:
    points = e.points(ssdvae_row, "step_haqae")
    goal = e.estimate(HAQAE, "ppl_best")
    if goal is None or not points:
        return []
    where = ", ".join(f"{p.mean:.0f} at ε = {observe:g}" for observe, p in points)
    return [f"Steps to HAQAE's best perplexity ({goal.mean:.2f}), of the runs that reach it: {where}."]


CLAIMS: Sequence[tuple[str, Callable[[Evidence], list[Part]], Callable[[Evidence], list[str]]]] = (
    ("SSDVAE's perplexity falls as ε rises", perplexity_falls, lambda e: []),
    (
        "SSDVAE's perplexity is below that of RNNLM and RNNLM+ROLE at every ε, and below HAQAE's from "
        f"ε = {HIGH:g} on",
        perplexity_beats,
        lambda e: _remark(_below_the_baselines(e, "ppl_bound", "by the bound")),
    ),
    (
        "SSDVAE's cloze accuracy is above that of all baselines at every ε",
        cloze_beats,
        lambda e: _remark(_above_in_cloze(e, "cloze_pmi", "by PMI")),
    ),
    ("Cloze is best at a middle ε while perplexity is best at a high one", middle_and_high, lambda e: []),
    (
        "The F1 of inferred frames rises with ε and passes the fully supervised baselines",
        frames_learned,
        lambda e: [],
    ),
    ("Addition beats concatenation, more so as ε rises", addition_beats, lambda e: []),
    ("SSDVAE converges faster than HAQAE", converges_faster, haqae_level),
    (
        "The entropy of attention falls as ε rises, and attention rests on verbs",
        attention_on_verbs,
        lambda e: [],
    ),
)
"""The paper's claims: what each says, its parts, and what else is worth knowing beside it."""


def verdicts(evidence: Evidence) -> list[Verdict]:
    """One for each claim."""
    result = []
    for number, (claim, parts_of, remarks) in enumerate(CLAIMS, start=1):
        parts = parts_of(evidence)
        held = [part.holds for part in parts]
        verdict = NOT_SUPPORTED if False in held else NOT_MEASURED if None in held else SUPPORTED
        sentences = [part.evidence for part in parts] + [f"Beside it: {text}" for text in remarks(evidence)]
        result.append(Verdict(number, claim, verdict, " ".join(s[0].upper() + s[1:] for s in sentences)))
    return result
