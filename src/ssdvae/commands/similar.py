"""`ssdvae similar`: find the nearest events of a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import Command
from ssdvae.commands.console import TableText, table_of
from ssdvae.commands.questions import check_events, give, read_input
from ssdvae.data.options import ReadOptions
from ssdvae.inference.options import SimilarOptions
from ssdvae.options import split_options, with_options

if TYPE_CHECKING:
    from ssdvae.commands.coerce import AnyEvents, AnyModel, Documents
    from ssdvae.inference.embedding import SimilarEvent
    from ssdvae.io.progress import Progress


@with_options(ReadOptions, SimilarOptions)
def similar(
    run: AnyModel,
    events: AnyEvents,
    among: Documents,
    *,
    progress: bool | Progress = True,
    **options: Any,
) -> list[SimilarEvent]:
    """Return the nearest neighbours of each event among the events of documents.

    >>> ssdvae.similar("runs/first", "arrested police suspect", among="events.jsonl")[0].event
    """
    from ssdvae.commands.coerce import as_documents, as_events, as_model
    from ssdvae.inference import embedding

    read, own = split_options(options, ReadOptions)
    chosen, model = SimilarOptions(**own), as_model(run)
    documents = as_documents(among, ReadOptions(**read), model, progress, "reading")
    return embedding.similar(model, as_events(events, model), documents, chosen.top, chosen.batch)


def tables(found: Iterable[SimilarEvent]) -> Iterator[TableText]:
    """Yield one table of all neighbours."""
    yield table_of(
        "the nearest events",
        found,
        ("event", "{0.asked}"),
        ("is like", "{0.event}"),
        ("cosine", "{0.similarity:.2f}"),
        ("where", lambda one: f"{one.id} #{one.place + 1}"),
    )


@with_options(ReadOptions, SimilarOptions)
def main(
    events: list[str] = [],  # noqa: B006  # read only
    *,
    among: Path,
    run: str | None = None,
    out: Path | None = None,
    json: bool = False,
    **options: Any,
) -> None:
    """Find similar events: the nearest ones of a file.

    Args:
        events: events, each in quotes, "arrested police suspect in"; by default those of standard input, one
            a line
        among: file of documents to search
        run: run folder, or the name of a model; by default the model in the package
        out: file to write, .jsonl, .jsonl.gz, .csv or .parquet
        json: print a line of JSON for each event that is found
    """
    check_events(events)
    model, asked = (run, events) if events else read_input(None, run, dict(options))
    give(similar(model, asked, among, **options), tables, out=out, json=json)


COMMAND = Command(
    main,
    examples=(
        "ssdvae similar 'told he her' --among events.jsonl --run runs/first",
        "ssdvae similar 'told he her' --among events.jsonl --run runs/first --json",
    ),
)
