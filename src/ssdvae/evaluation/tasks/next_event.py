"""Next event: is what comes next foreseen, and how surely?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssdvae.evaluation.tasks.base import WORDS, Data, Figure, Result, Task

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation

NAME = "next"


def run(evaluation: Evaluation, data: Data) -> Result | None:
    """None if no document has two events."""
    from ssdvae.evaluation.next_event import MEASURED, next_event_scores
    from ssdvae.models.base import as_language_model

    settings, corpus = evaluation.settings, evaluation.corpus
    total = min(MEASURED, len(evaluation.documents))
    with evaluation.progress.task("next event", total) as advance:
        asked, scores = next_event_scores(
            as_language_model(evaluation.model),
            evaluation.documents,
            lambda: corpus.split("train"),
            settings.eval_batch,
            advance,
        )
    return Result(asked, scores) if asked else None


def _figures(kind: str, title: str, headline: str | None) -> tuple[Figure, ...]:
    name = f"next_{kind}"
    return (
        Figure(f"{name}_1", f"{title} at 1", "higher", share=True, compared=False, headline=headline),
        Figure(f"{name}_5", "at 5", "higher", share=True, compared=False),
        Figure(f"{name}_10", "at 10", "higher", share=True, compared=False),
        Figure(f"{name}_mrr", "MRR", "higher", compared=False),
        Figure(f"{name}_frequency_mrr", "MRR by frequency", compared=False, note="what the commonest get"),
        Figure(f"{name}_bigram_mrr", "MRR by bigram", compared=False, note="what a smoothed bigram gets"),
        Figure(f"{name}_ece", "calibration error", "lower", share=True, compared=False),
    )


NEXT_EVENT = Task(
    name=NAME,
    title="Next event",
    explanation="After the events before it, where does the true head (frame) of an event stand among all by "
    "probability? The share at the first place, among the first 5 and 10, and the mean reciprocal rank "
    "(MRR); beside it what the commonest heads (frames) of the training split get, and a smoothed bigram "
    "from the head of the event before. Higher is better, except for the calibration error.",
    figures=(*_figures("head", "head", "next head right"), *_figures("frame", "frame", None)),
    run=run,
    needs=(WORDS,),
    settings=("events", "bound_samples", "eval_batch", "eval_seed"),
    default=False,
    reproduced=False,
)
