"""`ssdvae extract`: extract events from text."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command, jsonl_path_or_shards, paths
from ssdvae.commands.console import TableText, chance
from ssdvae.commands.questions import give
from ssdvae.data.options import ExtractOptions, StreamOptions
from ssdvae.options import split_options, with_options

log = logging.getLogger("ssdvae")

if TYPE_CHECKING:
    from ssdvae.data.events import Document
    from ssdvae.extraction.extract import ExtractionCounts
    from ssdvae.io.progress import Progress


@with_options(ExtractOptions)
def extract(
    sources: AnyPath | Sequence[AnyPath],
    out: AnyPath,
    *,
    format: str | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> ExtractionCounts:
    """Write the events of texts, parsed or not, to a file of JSON lines or a folder of shards.

    >>> ssdvae.extract("stories", "events.jsonl", negation="mark")

    ``format`` is text, csv, jsonl, parquet, wikiextractor, megawika, inscript, conllu or concrete; by default
    the name of each file tells. A bad document is skipped and counted. In a script, call it under
    ``if __name__ == "__main__"``, or with ``jobs=1``.
    """
    from ssdvae.extraction import extract as extraction
    from ssdvae.io.progress import resolve

    path, chosen = jsonl_path_or_shards(out), ExtractOptions(**options)
    done = extraction.extract(paths(sources), path, chosen, format=format, progress=resolve(progress))
    log_counts(done.documents, done.events, done.resumed, out)
    if done.labels:
        log.info(
            f"{done.labels - done.labels_without_event:,} of {done.labels:,} labels are at an event; "
            f"{done.labels_without_event:,} have no event, and {done.events_without_label:,} events no label"
        )
    if done.skipped.count:
        log.info(str(done.skipped))
    return done


@with_options(ExtractOptions)
def find_events(
    text: AnyPath | Sequence[AnyPath], *, format: str | None = None, **options: Any
) -> Iterator[Document]:
    """Yield the documents of a text, or of files of text, with their events.

    >>> [document] = ssdvae.find_events("The police arrested a man. He left.")
    >>> list(ssdvae.find_events("stories/ferry.conllu"))

    What has a space in it and is not the name of a file is a text. A bad document is skipped, and a message
    tells.
    """
    from ssdvae.data.readers import Skipped
    from ssdvae.extraction.extract import extract_documents, extract_text

    chosen, skipped = ExtractOptions(**options), Skipped(unit="document")
    given = [text] if isinstance(text, str | Path) else list(text)
    if len(given) == 1 and _is_text(given[0]):
        yield extract_text(str(given[0]), chosen)
    else:
        yield from extract_documents(paths(given), chosen, skipped, format=format)
    if skipped.count:
        log.info(str(skipped))


def _is_text(source: AnyPath) -> bool:
    """Tell whether a source is a text, not the name of a file."""
    try:
        return len(str(source).split()) > 1 and not Path(source).exists()
    except OSError:  # too long for a name
        return True


def tables(documents: Iterable[Document]) -> Iterator[TableText]:
    """Yield the events of each document, with the frames where the text has some."""
    from ssdvae.data.events import SLOTS

    for document in documents:
        rows = [
            [str(number), *(word or "" for word in event.values(len(SLOTS)))]
            for number, event in enumerate(document.events, start=1)
        ]
        head = ["", *SLOTS]
        if any(event.frame for event in document.events):
            head += ["frame", ""]
            for row, event in zip(rows, document.events, strict=True):
                row += [event.frame or "", "" if event.probability is None else chance(event.probability)]
        yield f"{document.id}: {len(rows)} event{'' if len(rows) == 1 else 's'}", head, rows


@with_options(ExtractOptions)
def main(
    sources: list[str],
    *,
    out: Path | None = None,
    json: bool = False,
    format: str | None = None,
    **options: Any,
) -> None:
    """Extract events from text, parsed or not, and print or write them.

    Args:
        sources: files or folders of text, parsed or not; or a text in quotes
        out: file to write (.jsonl or .jsonl.gz), or a folder for shards (no ending); by default, events are
            printed
        json: print a line of JSON for each document
        format: text, csv, jsonl, parquet, wikiextractor, megawika, inscript, conllu or concrete; by default
            as named
    """
    from ssdvae.data.events import document_to_record

    if out is not None:
        extract(sources, out, format=format, **options)
    else:
        stream, own = split_options(options, StreamOptions)
        found = find_events(sources, format=format, **own)
        give(found, tables, json=json, stream=stream, record=document_to_record)


def log_counts(documents: int, events: int, resumed: int, out: AnyPath) -> None:
    """Log what was written."""
    if resumed:
        log.info(f"resumed after {resumed:,} documents")
    log.info(f"wrote {documents:,} documents with {events:,} events to {out}")


COMMAND = Command(
    main,
    examples=(
        "ssdvae extract 'The police arrested a man. He left.'",
        "ssdvae extract stories --out stories.jsonl --keep-text",
        "ssdvae extract stories/ferry.conllu --out ferry.jsonl --negation mark",
    ),
)
