"""`ssdvae score`: measure how surprising events are, and find anomalies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from ssdvae.commands.console import Column, TableText, chance, table_of
from ssdvae.commands.questions import Answers, question
from ssdvae.data.options import ReadOptions
from ssdvae.inference.options import AnomalyOptions, RankingOptions, SurprisalOptions
from ssdvae.options import split_options, with_options

if TYPE_CHECKING:
    from ssdvae.commands.coerce import AnyModel, Documents
    from ssdvae.inference.surprisal import Anomaly, ScoredDocument
    from ssdvae.io.progress import Progress


@with_options(ReadOptions, SurprisalOptions)
def score(
    run: AnyModel,
    documents: Documents,
    *,
    progress: bool | Progress = True,
    **options: Any,
) -> Answers[ScoredDocument]:
    """Measure the surprisal of every event and slot, given the events before it, in nats.

    >>> for document in ssdvae.score("runs/first", "events.jsonl"):
    ...     print(document.nats, [event.percentile for event in document.events])

    Percentiles are among the validation split. Its quantiles are stored with the run on first use.
    """
    from ssdvae.commands.coerce import model_with_quantiles
    from ssdvae.inference.surprisal import score_documents

    kind, model = SurprisalOptions, model_with_quantiles(run, progress)
    # Other processes get the quantiles too: it may be that they could not be stored with the run.
    further: Any = {"model": model, "quantiles": model.quantiles}
    return Answers(run, documents, "scoring", score_documents, kind, options, progress, **further)


@with_options(ReadOptions, AnomalyOptions)
def anomalies(
    run: AnyModel,
    documents: Documents,
    *,
    progress: bool | Progress = True,
    **options: Any,
) -> list[Anomaly]:
    """Return the most surprising events of all documents, with what was expected in their place.

    >>> ssdvae.anomalies("runs/first", "events.jsonl", top=3)[0].expected.events
    >>> ssdvae.anomalies("runs/first", "log.xes", by="case")[0].document.percentile
    """
    from ssdvae.inference.surprisal import find_anomalies

    read, own = split_options(options, ReadOptions)
    chosen = AnomalyOptions(**own)
    how = {
        name: getattr(chosen, name) for name in SurprisalOptions.fields() if name in AnomalyOptions.fields()
    }
    scored = score(run, documents, progress=progress, **how, **read)
    return find_anomalies(scored.model, scored, chosen)


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
    columns: list[Column] = [("event", "{0.event}"), ("nats", "{0.nats:.1f}")]
    title = f"{document.id}: {document.nats:.1f} nats ({document.kind})"
    if document.percentile is not None:
        columns.append(("percentile", "{0.percentile:.0f}"))
        title += f", percentile {document.percentile:.0f}"
    columns += [(slot, f"{{0.slots[{place}]:.1f}}") for place, slot in enumerate(document.slots)]
    if any(event.frames for event in document.events):
        columns.append(("frame", lambda event: event.frames[0].name if event.frames else "unknown"))
        columns.append(("", lambda event: chance(event.frames[0].probability) if event.frames else ""))
    if any(event.later is not None for event in document.events):
        columns.append(("time", "{0.lateness}"))
    return table_of(title, document.events, *columns)


def anomaly_table(found: Sequence[Anomaly]) -> TableText:
    """Return the anomalies with what was expected in the place of the event."""
    expected: Column = (
        "expected",
        lambda one: "; ".join(f"{event} {chance(p)}" for event, p in one.expected.outcomes[:3]),
    )
    late: list[Column] = (
        [("time", "{0.scored.lateness}")] if any(one.scored.lateness for one in found) else []
    )
    if found[0].by == "case":
        return table_of(
            "the most surprising cases, with their most surprising event",
            found,
            ("case", "{0.id}"),
            ("percentile", lambda one: _share(one.document.percentile)),
            ("event", lambda one: f"#{one.place + 1} {one.scored.event}"),
            ("nats", "{0.scored.nats:.1f}"),
            *late,
            expected,
        )
    return table_of(
        "the most surprising events",
        found,
        ("event", "{0.scored.event}"),
        ("where", lambda one: f"{one.id} #{one.place + 1}"),
        ("nats", "{0.scored.nats:.1f}"),
        ("percentile", lambda one: _share(one.scored.percentile)),
        *late,
        expected,
    )


def _share(percentile: float | None) -> str:
    return "–" if percentile is None else f"{percentile:.1f}"


class ScoreOptions(SurprisalOptions, RankingOptions):
    """Options of the command, which finds anomalies with ``--top``."""

    top: int | None = Field(
        None,
        description="show only this many events or cases, most surprising first, with what was expected "
        "instead",
        ge=1,
    )


def _ask(
    run: AnyModel, documents: Documents, *, top: int | None = None, by: str = "event", **options: Any
) -> Iterable[Any]:
    """Measure how surprising events are: nats and percentiles."""
    if top is None and by == "event":
        return score(run, documents, **options)
    if top is not None:
        options["top"] = top
    return anomalies(run, documents, by=by, **options)


COMMAND = question(
    _ask,
    tables,
    ScoreOptions,
    (
        "ssdvae score events.jsonl --run runs/first --out scored.parquet",
        "ssdvae score events.jsonl --run runs/first --top 3",
        "ssdvae score events.jsonl --run runs/first --by case --top 20",
    ),
)
