"""`ssdvae similar`: find the nearest events of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import Command
from ssdvae.commands.console import TableText
from ssdvae.commands.questions import give
from ssdvae.inference.options import SimilarOptions
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.commands.coerce import AnyModel, Documents
    from ssdvae.data.events import AnyEvent
    from ssdvae.inference.embedding import SimilarEvent
    from ssdvae.io.progress import Progress


@with_options(SimilarOptions)
def similar(
    run: AnyModel,
    events: AnyEvent | Sequence[AnyEvent],
    among: Documents,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **options: Any,
) -> list[SimilarEvent]:
    """Return the nearest neighbours of each event among the events of documents.

    >>> ssdvae.similar("runs/first", "arrested police suspect", among="events.jsonl")[0].event
    """
    from ssdvae.commands.coerce import as_documents, as_events, as_model, log_skipped
    from ssdvae.data.readers import Skipped
    from ssdvae.inference import embedding
    from ssdvae.io.progress import SILENT, resolve, track

    chosen, model = SimilarOptions(**options), as_model(run)
    skipped = Skipped() if skip_bad else None
    bar = resolve(progress) if isinstance(among, str | Path) else SILENT
    read = log_skipped(track(bar, as_documents(among, format, skipped, model), "reading"), skipped)
    return embedding.similar(model, as_events(events, model), read, chosen.top, chosen.batch)


def tables(found: Iterable[SimilarEvent]) -> Iterator[TableText]:
    """Yield one table of all neighbours."""
    rows = [
        [str(one.asked), str(one.event), f"{one.similarity:.2f}", f"{one.id} #{one.place + 1}"]
        for one in found
    ]
    yield "the nearest events", ["event", "is like", "cosine", "where"], rows


@with_options(SimilarOptions)
def main(
    events: list[str],
    *,
    among: Path,
    run: str | None = None,
    out: Path | None = None,
    json: bool = False,
    format: str | None = None,
    skip_bad: bool = False,
    **options: Any,
) -> None:
    """Find similar events: the nearest ones of a file.

    Args:
        events: events, each in quotes, "arrested police suspect in"
        among: file of documents to search
        run: run folder, or the name of a model; by default the model in the package
        out: file to write, .jsonl, .jsonl.gz, .csv or .parquet
        json: print a line of JSON for each event that is found
        format: jsonl, csv, parquet, official or xes; by default as named
        skip_bad: count and report malformed input instead of stopping
    """
    found = similar(run, events, among, format=format, skip_bad=skip_bad, **options)
    give(found, tables, out=out, json=json, stream={})


COMMAND = Command(
    main,
    examples=(
        "ssdvae similar 'told he her' --among events.jsonl --run runs/first",
        "ssdvae similar 'told he her' --among events.jsonl --run runs/first --json",
    ),
)
