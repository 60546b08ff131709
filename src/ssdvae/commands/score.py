"""`ssdvae score`: measure how surprising events are, and find anomalies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ssdvae.commands.console import TableText, chance
from ssdvae.commands.questions import question
from ssdvae.inference.options import AnomalyOptions, SurprisalOptions
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.commands.answers import Answers
    from ssdvae.commands.coerce import AnyModel, Documents
    from ssdvae.inference.surprisal import Anomaly, ScoredDocument
    from ssdvae.io.progress import Progress


@with_options(SurprisalOptions)
def score(
    run: AnyModel,
    documents: Documents,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **options: Any,
) -> Answers[ScoredDocument]:
    """Measure the surprisal of every event and slot, given the events before it, in nats.

    >>> for document in ssdvae.score("runs/first", "events.jsonl"):
    ...     print(document.nats, [event.percentile for event in document.events])

    Percentiles are among the validation split. Its quantiles are stored with the run on first use.
    """
    from ssdvae.commands.answers import Answers
    from ssdvae.commands.coerce import model_with_quantiles
    from ssdvae.inference.surprisal import score_documents

    chosen = SurprisalOptions(**options)
    model = model_with_quantiles(run, progress)
    # Other processes get the quantiles too: it may be that they could not be stored with the run.
    asked = {"top": chosen.frames, "batch": chosen.batch, "quantiles": model.quantiles}
    how: Any = {"format": format, "skip_bad": skip_bad, "progress": progress, "model": model}
    return Answers(run, documents, score_documents, asked, "scoring", **how)


@with_options(AnomalyOptions)
def anomalies(
    run: AnyModel,
    documents: Documents,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **options: Any,
) -> list[Anomaly]:
    """Return the most surprising events of all documents, with what was expected in their place.

    >>> ssdvae.anomalies("runs/first", "events.jsonl", top=3)[0].expected.events
    """
    from ssdvae.inference.surprisal import find_anomalies

    chosen = AnomalyOptions(**options)
    how: Any = {"format": format, "skip_bad": skip_bad, "progress": progress}
    scored = score(run, documents, batch=chosen.batch, **how)
    return find_anomalies(scored.model, scored, chosen)


KINDS = {"exact": "exact", "bound": "differences of bounds", "estimate": "estimates"}


def tables(answers: Iterable[ScoredDocument | Anomaly]) -> Iterator[TableText]:
    """Yield a table for each document, or one of all anomalies."""
    found: list[Any] = []
    for answer in answers:
        if hasattr(answer, "expected"):
            found.append(answer)
        else:
            yield table(answer)
    if found:
        yield anomaly_table(found)


def table(document: ScoredDocument) -> TableText:
    """Return the nats of each event and slot, and the percentiles of the events."""
    ranked = any(event.percentile is not None for event in document.events)
    framed = any(event.frames for event in document.events)
    head = ["event", "nats", *(["percentile"] if ranked else []), *document.slots]
    rows = [
        [
            str(event.event),
            f"{event.nats:.1f}",
            *([f"{event.percentile or 0:.0f}"] if ranked else []),
            *(f"{nats:.1f}" for nats in event.slots),
            *([event.frames[0].name, chance(event.frames[0].probability)] if framed else []),
        ]
        for event in document.events
    ]
    percentile = "" if document.percentile is None else f", percentile {document.percentile:.0f}"
    title = f"{document.id}: {document.nats:.1f} nats ({KINDS[document.kind]}){percentile}"
    return title, [*head, *(["frame", ""] if framed else [])], rows


def anomaly_table(found: Sequence[Anomaly]) -> TableText:
    rows = [
        [
            str(one.scored.event),
            f"{one.id} #{one.place + 1}",
            f"{one.scored.nats:.1f}",
            "–" if one.scored.percentile is None else f"{one.scored.percentile:.1f}",
            "; ".join(f"{e.event} {chance(e.probability)}" for e in one.expected.events[:3]),
        ]
        for one in found
    ]
    return "the most surprising events", ["event", "where", "nats", "percentile", "expected"], rows


class ScoreOptions(SurprisalOptions):
    """Options of the command, which finds anomalies with ``--top``."""

    top: int | None = Field(
        None,
        description="show only the most surprising events, so many, with what was expected instead",
        ge=1,
    )


def _ask(run: AnyModel, documents: Documents, *, top: int | None = None, **options: Any) -> Iterable[Any]:
    """Measure how surprising events are: nats and percentiles."""
    return score(run, documents, **options) if top is None else anomalies(run, documents, top=top, **options)


COMMAND = question(
    _ask,
    tables,
    ScoreOptions,
    (
        "ssdvae score events.jsonl --run runs/first --out scored.parquet",
        "ssdvae score events.jsonl --run runs/first --top 3",
    ),
)
