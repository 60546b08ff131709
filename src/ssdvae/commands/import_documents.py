"""`ssdvae import`: convert files of events to JSON lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command, jsonl_path, paths
from ssdvae.commands.console import say
from ssdvae.data.options import ColumnOptions, PrepareOptions, ReadOptions
from ssdvae.options import split_options, with_options

if TYPE_CHECKING:
    from ssdvae.data.events import Document
    from ssdvae.data.readers import Skipped
    from ssdvae.io.progress import Progress

SLOTS: str = PrepareOptions().slots


@dataclass
class ImportCounts:
    """The number of documents that were imported, and what was skipped."""

    out: Path
    documents: int = 0
    one_event: int = 0  # documents that have a single event
    skipped: Skipped | None = None  # None if the first bad line would have stopped it


@with_options(ReadOptions, ColumnOptions)
def import_documents(
    sources: AnyPath | Iterable[AnyPath],
    out: AnyPath,
    *,
    slots: str = SLOTS,
    progress: bool | Progress = True,
    **options: Any,
) -> ImportCounts:
    """Convert files of events (JSON lines, tables, logs, the authors' text) to one file of JSON lines.

    >>> ssdvae.import_documents("mine.csv", "mine.jsonl")
    >>> ssdvae.import_documents("log.csv", "log.jsonl", case="ticket", time="when", head="action")

    The slots of a table are named after its columns.

    Args:
        sources: files of events in any known format
        out: file to write (.jsonl or .jsonl.gz)
        slots: names of the slots of an event, separated by commas; the first is the head
    """
    from ssdvae.data.readers import Skipped, find_columns, read_documents, write_jsonl
    from ssdvae.io.progress import resolve, track

    files = paths(sources)
    read, own = split_options(options, ReadOptions)
    reading, named = ReadOptions(**read), ColumnOptions(**own)
    columns = find_columns(named, files[0], reading.format) if files else None
    names = PrepareOptions(slots=slots).slot_names if columns is None else columns.slots
    done = ImportCounts(jsonl_path(out), skipped=Skipped() if reading.skip_bad else None)

    def documents() -> Iterator[Document]:
        for path in files:
            for document in read_documents(path, reading.format, done.skipped, names, columns, strict=True):
                done.one_event += len(document.events) == 1
                yield document

    done.documents = write_jsonl(done.out, track(resolve(progress), documents(), "reading"), names)
    return done


def show(done: ImportCounts) -> None:
    """Print how much was imported."""
    say(f"wrote {done.documents:,} documents to {done.out}")
    if done.one_event:
        say(f"{done.one_event:,} of them have one event")
    if done.skipped is not None:
        say(str(done.skipped))


COMMAND = Command(
    import_documents,
    show,
    examples=(
        "ssdvae import mine.csv --out mine.jsonl",
        "ssdvae import news_TUP.txt more_TUP.txt --out news.jsonl.gz --skip-bad",
    ),
)
