"""What the paper claims, and whether the cells that were measured support it.

A claim has parts, and a part is tested if all its figures have three seeds or more. A claim is

    not supported                     if a part that was tested fails,
    not measured                      else, if figures of a part are missing,
    not tested with enough seeds      else, if a part was not tested,
    supported                         else: all parts were tested, and all hold.

Whatever the verdict, the figures are shown; what was not tested is not said to be clear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ssdvae.config.paper import Version
from ssdvae.paper.evidence import Evidence, Part, Point, beats, clearly, fewest_seeds, series, trend
from ssdvae.paper.grid import (
    CLASSIFIERS,
    HAQAE,
    RNNLM,
    RNNLM_DOCUMENT,
    RNNLM_ROLE,
    Configuration,
    ssdvae_concatenation_row,
    ssdvae_row,
    ssdvae_single_row,
)
from ssdvae.paper.measured import CLOSE, CORPUS

HIGH = 0.7
"""From this ε on, frames are “sufficiently available”, as the paper says."""

BASELINES = (RNNLM, RNNLM_ROLE, HAQAE)
"""Those of the paper."""

SUPPORTED, NOT_SUPPORTED, NOT_MEASURED = "supported", "not supported", "not measured"
TOO_FEW_SEEDS = "not tested with enough seeds"


@dataclass(frozen=True)
class Verdict:
    number: int
    claim: str
    verdict: str
    evidence: str
    version: Version = "paper"  # which SSDVAE it is about

    def __str__(self) -> str:
        about = "" if self.version == "paper" else " (authors' code)"
        return f"{self.number}. {self.claim}{about}: {self.verdict}. {self.evidence}"


def _remark(parts: Iterable[Part]) -> list[str]:
    """Evidence that the verdict does not rest on; nothing of what was not measured."""
    return [part.evidence for part in parts if part.holds is not None]


def perplexity_falls(e: Evidence) -> list[Part]:
    return [
        trend(e.points(ssdvae_row, "ppl_with_separators"), "ppl_with_separators", "perplexity", rises=False)
    ]


def perplexity_beats(e: Evidence) -> list[Part]:
    return _below_the_baselines(e, "ppl_with_separators", "perplexity")


def perplexity_beside(e: Evidence) -> list[str]:
    honest = _below_the_baselines(e, "ppl_bound", "by the bound")
    return _remark([*honest, *(_below(e, "ppl_with_separators", "perplexity", row) for row in _alike(e))])


def _below_the_baselines(e: Evidence, figure: str, what: str) -> list[Part]:
    return [
        _below(e, figure, what, RNNLM),
        _below(e, figure, what, RNNLM_ROLE),
        _below(e, figure, f"{what} from ε = {HIGH:g} on", HAQAE, lowest=HIGH),
    ]


def _below(e: Evidence, figure: str, what: str, row: Configuration, lowest: float = 0.0) -> Part:
    points = e.points(ssdvae_row, figure, lowest=lowest)
    return beats(points, e.estimate(row, figure), figure, what, row.label, higher=False)


def _alike(e: Evidence) -> Sequence[Configuration]:
    """Baselines that have the document vector too, where SSDVAE has it."""
    return (RNNLM_DOCUMENT,) if e.version == "code" else ()


def cloze_beats(e: Evidence) -> list[Part]:
    return _above_in_cloze(e, "cloze_nll", "cloze", BASELINES)


def cloze_beside(e: Evidence) -> list[str]:
    alike = _above_in_cloze(e, "cloze_nll", "cloze", _alike(e))
    return _remark([*alike, *_above_in_cloze(e, "cloze_pmi", "by PMI", (*BASELINES, *_alike(e)))])


def _above_in_cloze(e: Evidence, figure: str, what: str, rivals: Sequence[Configuration]) -> list[Part]:
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
        for row in rivals
    ]


def middle_and_high(e: Evidence) -> list[Part]:
    cloze = e.points(ssdvae_row, "cloze_nll", e.cloze[0]) if e.cloze else []
    return [_best_in_the_middle(cloze), _best_when_high(e.points(ssdvae_row, "ppl_with_separators"))]


def _best_in_the_middle(points: Sequence[Point]) -> Part:
    if len(points) < 3:
        return Part(None, f"The cloze was measured at {len(points)} values of ε; a middle takes three.")
    (_, first), *middle, (_, last) = points
    observe, best = max(middle, key=lambda point: point[1].mean)
    holds = best.clearly_above(first) and best.clearly_above(last)
    seeds = fewest_seeds(points)
    how = f"{'' if holds else 'not '}{clearly(seeds)}above both ends"
    says = f"The best cloze in the middle, at ε = {observe:g}, is {how}"
    return Part(holds, f"{says}: {series(points, 'cloze_nll')}.", seeds)


def _best_when_high(points: Sequence[Point]) -> Part:
    if len(points) < 2 or not any(observe >= HIGH for observe, _ in points):
        return Part(None, f"It takes the perplexity at two values of ε, one of them {HIGH:g} or more.")
    observe, best = min(points, key=lambda point: point[1].mean)
    evidence = f"Perplexity is lowest at ε = {observe:g} ({best.text('ppl_with_separators')})."
    return Part(observe >= HIGH, evidence, fewest_seeds(points))


def frames_learned(e: Evidence) -> list[Part]:
    points = e.points(ssdvae_single_row, "frame_f1")
    rises = trend(points, "frame_f1", "macro F1", rises=True)
    rivals = [
        beats(
            points[-1:],
            e.estimate(row, "frame_f1"),
            "frame_f1",
            "macro F1" + (f" {series(points[-1:], 'frame_f1')}" if points else ""),
            f"the classifier {row.label}",
            higher=True,
        )
        for row in CLASSIFIERS
    ]
    return [rises, *rivals]


def addition_beats(e: Evidence) -> list[Part]:
    added, joined = (
        dict(e.points(row, "ppl_with_separators")) for row in (ssdvae_row, ssdvae_concatenation_row)
    )
    both = [observe for observe in added if observe in joined]
    if not both:
        return [Part(None, "Addition and concatenation were not both measured at the same ε.")]
    worse = [observe for observe in both if not joined[observe].clearly_above(added[observe])]
    gaps = [(observe, joined[observe] - added[observe]) for observe in both]
    won, seeds = f"at {len(both) - len(worse)} of {len(both)} ε", fewest_seeds(gaps)
    says = f"The perplexity of addition is {clearly(seeds)}below that of concatenation {won}."
    return [
        Part(not worse, says, seeds),
        trend(gaps, "ppl_with_separators", "the lead of addition", rises=True),
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
    holds = share.mean - 0.5 > share.error
    evidence = f"At ε = {observe:g} verbs have {share.mean:.1%} of the attention; half is asked for."
    return [falls, Part(holds, evidence, share.seeds)]


def haqae_level(e: Evidence) -> list[str]:
    points = e.points(ssdvae_row, "step_haqae")
    goal = e.estimate(HAQAE, "ppl_best")
    if goal is None or not points:
        return []
    where = ", ".join(f"{p.mean:.0f} at ε = {observe:g}" for observe, p in points)
    return [
        f"Steps to HAQAE's best perplexity ({goal.text('ppl_best')}), of the runs that reach it: {where}."
    ]


CLAIMS: Sequence[tuple[str, Callable[[Evidence], list[Part]], Callable[[Evidence], list[str]]]] = (
    ("SSDVAE's perplexity falls as ε rises", perplexity_falls, lambda e: []),
    (
        "SSDVAE's perplexity is below that of RNNLM and RNNLM+ROLE at every ε, and below HAQAE's from "
        f"ε = {HIGH:g} on",
        perplexity_beats,
        perplexity_beside,
    ),
    (
        "SSDVAE's cloze accuracy is above that of all baselines at every ε",
        cloze_beats,
        cloze_beside,
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


def judge(parts: Sequence[Part]) -> str:
    """The verdict on a claim with these parts; see the top of this file."""
    if any(part.tested and not part.holds for part in parts):
        return NOT_SUPPORTED
    if any(part.holds is None for part in parts):
        return NOT_MEASURED
    return SUPPORTED if all(part.tested for part in parts) else TOO_FEW_SEEDS


def verdicts(evidence: Evidence) -> list[Verdict]:
    """One for each claim."""
    result = []
    for number, (claim, parts_of, remarks) in enumerate(CLAIMS, start=1):
        parts = parts_of(evidence)
        sentences = [part.evidence for part in parts] + [f"Beside it: {text}" for text in remarks(evidence)]
        evidenced = " ".join(s[0].upper() + s[1:] for s in sentences)
        result.append(Verdict(number, claim, judge(parts), evidenced, evidence.version))
    return result
