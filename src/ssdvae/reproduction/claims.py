"""The paper's claims, and whether the measured figures support them.

Each figure is a mean over seeds with its standard error. One is clearly above another if the difference of
the means is larger than its own standard error, √(error² + error²). A figure falls as ε rises if it is
clearly lower at the highest ε than at the lowest, and no step from one ε to the next clearly raises it.

A claim rests on findings. A finding is tested if all its figures have three seeds or more: with fewer, the
standard error is unknown or hardly known. A claim is

    not supported                     if a finding that was tested fails,
    not measured                      else, if figures of a finding are missing,
    not tested with enough seeds      else, if a finding was not tested,
    supported                         else: all findings were tested, and all hold.

The figures are shown whatever the verdict is. “Clearly” is said only of what was tested.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ssdvae.evaluation.summary import Spread
from ssdvae.reproduction.options import Version
from ssdvae.reproduction.paper import (
    CLASSIFIERS,
    HAQAE,
    RNNLM,
    RNNLM_DOCUMENT,
    RNNLM_ROLE,
    Configuration,
    ssdvae_concatenation_row,
    ssdvae_row,
    ssdvae_single_row,
    with_version,
)
from ssdvae.reproduction.results import CONVERGED, CORPUS, ResultTable, figure_named

SEEDS = 3
"""A finding is tested if all its figures have at least this many seeds."""

HIGH = 0.7
"""From this ε on, frames are “sufficiently available”, as the paper says."""

BASELINES = (RNNLM, RNNLM_ROLE, HAQAE)
"""The paper's baselines."""

SUPPORTED, NOT_SUPPORTED, NOT_MEASURED = "supported", "not supported", "not measured"
TOO_FEW_SEEDS = "not tested with enough seeds"

PPL, CLOZE, F1 = "ppl_with_separators", "cloze_nll", "frame_f1"
"""The figures that the paper prints."""


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


Point = tuple[float, Estimate]
"""ε, and a figure there."""


@dataclass(frozen=True)
class Evidence:
    """The measured figures, as the claims ask for them."""

    results: ResultTable
    observed: Sequence[float]  # the values of ε
    cloze: Sequence[str] = (CORPUS,)  # the names of the cloze data
    version: Version = "paper"  # of SSDVAE

    def estimate(self, row: Configuration, figure: str, data: str = CORPUS) -> Estimate | None:
        spread = self.results.spread(row, figure, data)
        return None if spread is None else Estimate.of(spread)

    def points(
        self, row: Callable[[float], Configuration], figure: str, data: str = CORPUS, lowest: float = 0.0
    ) -> list[Point]:
        """Return the figure of SSDVAE at each ε that was measured, from the lowest."""
        rows = [(e, with_version(row(e), self.version)) for e in sorted(self.observed) if e >= lowest]
        found = ((e, self.estimate(own, figure, data)) for e, own in rows)
        return [(e, estimate) for e, estimate in found if estimate is not None]

    @property
    def rnnlms_with_vector(self) -> Sequence[Configuration]:
        """Baselines that have the document vector too, where SSDVAE has it."""
        return (RNNLM_DOCUMENT,) if self.version == "code" else ()


@dataclass(frozen=True)
class Finding:
    """One thing that a claim says: whether it holds (None if it was not measured), and the numbers."""

    holds: bool | None
    text: str
    seeds: int = 0  # the fewest behind any of the numbers

    @property
    def tested(self) -> bool:
        return self.holds is not None and self.seeds >= SEEDS


def series(points: Sequence[Point], figure: str) -> str:
    """Return a figure at each ε, as text."""
    return ", ".join(f"{e.text(figure)} at ε = {observe:g}" for observe, e in points)


def fewest_seeds(points: Iterable[Point], *others: Estimate) -> int:
    """Return the fewest seeds behind any of these figures."""
    return min(e.seeds for e in (*(e for _, e in points), *others))


def clearly(seeds: int) -> str:
    """Return the word “clearly” if there are enough seeds to say it."""
    return "clearly " if seeds >= SEEDS else ""


def trend(points: Sequence[Point], figure: str, subject: str, rises: bool) -> Finding:
    """Find whether a figure rises, or falls, with ε."""
    verb = "rise" if rises else "fall"
    if len(points) < 2:
        return Finding(None, f"{subject} was measured at {len(points)} values of ε; it takes two.")
    ordered = [e for _, e in points] if rises else [e for _, e in reversed(points)]
    against = [
        f"{low:g} to {high:g}"
        for (low, before), (high, after) in pairwise(points)
        if (before.clearly_above(after) if rises else after.clearly_above(before))
    ]
    clear, seeds = ordered[-1].clearly_above(ordered[0]), fewest_seeds(points)
    says = f"{subject} {verb}s" if clear else f"{subject} does not {clearly(seeds)}{verb}"
    back = f"; it goes the other way from ε = {', '.join(against)}" if against else ""
    text = f"{says} from the lowest ε to the highest{back}: {series(points, figure)}."
    return Finding(clear and not against, text, seeds)


def beats(
    points: Sequence[Point], rival: Estimate | None, figure: str, subject: str, name: str, *, higher: bool
) -> Finding:
    """Find whether a figure is clearly better than a baseline's at every ε that was measured."""
    if rival is None or not points:
        missing = name if rival is None else "SSDVAE at these ε"
        return Finding(None, f"{subject}: {missing} was not measured.")
    worse = [
        (observe, own)
        for observe, own in points
        if not (own.clearly_above(rival) if higher else rival.clearly_above(own))
    ]
    side, seeds = "above" if higher else "below", fewest_seeds(points, rival)
    says = f"{subject}: {clearly(seeds)}{side} {name} ({rival.text(figure)})"
    but = f", not with {series(worse, figure)}" if worse else ""
    return Finding(not worse, f"{says} at {len(points) - len(worse)} of {len(points)} ε{but}.", seeds)


def _below(e: Evidence, figure: str, subject: str, row: Configuration, lowest: float = 0.0) -> Finding:
    points = e.points(ssdvae_row, figure, lowest=lowest)
    return beats(points, e.estimate(row, figure), figure, subject, row.label, higher=False)


def _below_the_baselines(e: Evidence, figure: str, subject: str) -> list[Finding]:
    return [
        _below(e, figure, subject, RNNLM),
        _below(e, figure, subject, RNNLM_ROLE),
        _below(e, figure, f"{subject} from ε = {HIGH:g} on", HAQAE, lowest=HIGH),
    ]


def _above_in_cloze(e: Evidence, figure: str, subject: str, rivals: Sequence[Configuration]) -> list[Finding]:
    return [
        beats(
            e.points(ssdvae_row, figure, data),
            e.estimate(row, figure, data),
            figure,
            subject if data == CORPUS else f"{subject} on {data}",
            row.label,
            higher=True,
        )
        for data in e.cloze
        for row in rivals
    ]


def _best_in_the_middle(points: Sequence[Point]) -> Finding:
    if len(points) < 3:
        return Finding(None, f"The cloze was measured at {len(points)} values of ε; a middle takes three.")
    (_, first), *middle, (_, last) = points
    observe, best = max(middle, key=lambda point: point[1].mean)
    holds = best.clearly_above(first) and best.clearly_above(last)
    seeds = fewest_seeds(points)
    how = f"{'' if holds else 'not '}{clearly(seeds)}above both ends"
    says = f"The best cloze in the middle, at ε = {observe:g}, is {how}"
    return Finding(holds, f"{says}: {series(points, CLOZE)}.", seeds)


def _best_when_high(points: Sequence[Point]) -> Finding:
    if len(points) < 2 or not any(observe >= HIGH for observe, _ in points):
        return Finding(None, f"It takes the perplexity at two values of ε, one of them {HIGH:g} or more.")
    observe, best = min(points, key=lambda point: point[1].mean)
    text = f"Perplexity is lowest at ε = {observe:g} ({best.text(PPL)})."
    return Finding(observe >= HIGH, text, fewest_seeds(points))


def _frames_learned(e: Evidence) -> list[Finding]:
    points = e.points(ssdvae_single_row, F1)
    highest = points[-1:]
    subject = "macro F1" + (f" {series(highest, F1)}" if highest else "")
    rivals = [
        beats(highest, e.estimate(row, F1), F1, subject, f"the classifier {row.label}", higher=True)
        for row in CLASSIFIERS
    ]
    return [trend(points, F1, "macro F1", rises=True), *rivals]


def _addition_beats(e: Evidence) -> list[Finding]:
    added, joined = (dict(e.points(row, PPL)) for row in (ssdvae_row, ssdvae_concatenation_row))
    both = [observe for observe in added if observe in joined]
    if not both:
        return [Finding(None, "Addition and concatenation were not both measured at the same ε.")]
    worse = [observe for observe in both if not joined[observe].clearly_above(added[observe])]
    gaps = [(observe, joined[observe] - added[observe]) for observe in both]
    won, seeds = f"at {len(both) - len(worse)} of {len(both)} ε", fewest_seeds(gaps)
    text = f"The perplexity of addition is {clearly(seeds)}below that of concatenation {won}."
    return [Finding(not worse, text, seeds), trend(gaps, PPL, "the lead of addition", rises=True)]


def _steps_to_haqaes_best(e: Evidence) -> Finding:
    points, goal = e.points(ssdvae_row, "step_haqae"), e.estimate(HAQAE, "ppl_best")
    if goal is None or not points:
        return Finding(None, "The steps to HAQAE's best perplexity were not measured.")
    steps = ", ".join(f"{p.mean:.0f} at ε = {observe:g}" for observe, p in points)
    best = goal.text("ppl_best")
    return Finding(True, f"Steps to HAQAE's best perplexity ({best}), of the runs that reach it: {steps}.")


def _attention_on_verbs(points: Sequence[Point]) -> Finding:
    if not points:
        return Finding(None, "Attention was not measured.")
    observe, share = points[-1]
    text = f"At ε = {observe:g} verbs have {share.mean:.1%} of the attention; half is asked for."
    return Finding(share.mean - 0.5 > share.error, text, share.seeds)


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, and the findings that it rests on; remarks stand beside it, if measured."""

    text: str
    findings: Sequence[Finding]
    remarks: Sequence[Finding] = ()


def claims(e: Evidence) -> list[Claim]:
    """Return the paper's claims with their findings."""
    ppl, entropy = e.points(ssdvae_row, PPL), e.points(ssdvae_row, "attention_entropy")
    by_pmi = _above_in_cloze(e, "cloze_pmi", "by PMI", (*BASELINES, *e.rnnlms_with_vector))
    steps = f"steps to within {CONVERGED - 1:.0%} of the run's own best perplexity"
    return [
        Claim("SSDVAE's perplexity falls as ε rises", [trend(ppl, PPL, "perplexity", rises=False)]),
        Claim(
            "SSDVAE's perplexity is below that of RNNLM and RNNLM+ROLE at every ε, and below HAQAE's from "
            f"ε = {HIGH:g} on",
            _below_the_baselines(e, PPL, "perplexity"),
            [
                *_below_the_baselines(e, "ppl_bound", "by the bound"),
                *(_below(e, PPL, "perplexity", row) for row in e.rnnlms_with_vector),
            ],
        ),
        Claim(
            "SSDVAE's cloze accuracy is above that of all baselines at every ε",
            _above_in_cloze(e, CLOZE, "cloze", BASELINES),
            [*_above_in_cloze(e, CLOZE, "cloze", e.rnnlms_with_vector), *by_pmi],
        ),
        Claim(
            "Cloze is best at a middle ε while perplexity is best at a high one",
            [
                _best_in_the_middle(e.points(ssdvae_row, CLOZE, e.cloze[0]) if e.cloze else []),
                _best_when_high(ppl),
            ],
        ),
        Claim(
            "The F1 of inferred frames rises with ε and passes the fully supervised baselines",
            _frames_learned(e),
        ),
        Claim("Addition beats concatenation, more so as ε rises", _addition_beats(e)),
        Claim(
            "SSDVAE converges faster than HAQAE",
            [_below(e, "step_converged", steps, HAQAE)],
            [_steps_to_haqaes_best(e)],
        ),
        Claim(
            "The entropy of attention falls as ε rises, and attention rests on verbs",
            [
                trend(entropy, "attention_entropy", "attention entropy", rises=False),
                _attention_on_verbs(e.points(ssdvae_row, "attention_verbs")),
            ],
        ),
    ]


@dataclass(frozen=True)
class Verdict:
    """The verdict on a claim, and the evidence."""

    number: int
    claim: str
    verdict: str
    evidence: str
    version: Version = "paper"  # of SSDVAE

    def __str__(self) -> str:
        about = "" if self.version == "paper" else " (authors' code)"
        return f"{self.number}. {self.claim}{about}: {self.verdict}. {self.evidence}"


def judge(findings: Sequence[Finding]) -> str:
    """Return the verdict on a claim that rests on these findings; the rule is at the top of this file."""
    if any(finding.tested and not finding.holds for finding in findings):
        return NOT_SUPPORTED
    if any(finding.holds is None for finding in findings):
        return NOT_MEASURED
    return SUPPORTED if all(finding.tested for finding in findings) else TOO_FEW_SEEDS


def verdicts(evidence: Evidence) -> list[Verdict]:
    """Return a verdict on each claim."""
    result = []
    for number, claim in enumerate(claims(evidence), start=1):
        remarks = [remark for remark in claim.remarks if remark.holds is not None]
        sentences = [f.text for f in claim.findings] + [f"Beside it: {remark.text}" for remark in remarks]
        text = " ".join(sentence[0].upper() + sentence[1:] for sentence in sentences)
        result.append(Verdict(number, claim.text, judge(claim.findings), text, evidence.version))
    return result
