"""Documents through many processes into a file or a folder of shards, in their order.

Nothing is lost when it is stopped: the same command, given again, goes on from there and ends with what one
undisturbed run gives. While a file is being written, ``.out.jsonl.part`` has the documents that are done and
``.out.jsonl.journal`` says how far that is; a folder has the shards that are done (`shards`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypedDict

from ssdvae import __version__
from ssdvae.config import EngineSettings, StreamSettings
from ssdvae.data.columns import Columns
from ssdvae.data.events import SLOTS, Document, Slots, document_to_record
from ssdvae.data.readers import Skipped, guess_format, read_documents
from ssdvae.data.readers.jsonl import filled_lines, parse_line
from ssdvae.data.readers.official import frame_file
from ssdvae.data.readers.rows import has_rows
from ssdvae.data.shards import (
    is_file_name,
    list_shards,
    open_shard,
    read_note,
    shard_name,
    unfinished,
    write_note,
)
from ssdvae.errors import DataError, UserError
from ssdvae.files import Report, atomic_write, open_text_for_writing, stop_at_first_error, translate_os_errors
from ssdvae.locks import lock
from ssdvae.pool import chunked, map_in_processes
from ssdvae.progress import Progress, track
from ssdvae.records import from_json
from ssdvae.shapes import check_shape

Task = tuple[str, Any]
"""Where a document stands, to be said if it is bad, and what it is to be made of."""

File = Any
"""What names a file to the reader of the tasks in it."""

Reader = Callable[[Sequence[File], Report], Iterable[Task]]
"""The tasks of some files; what has to be passed over is told to the report. It may be pickled."""


@dataclass(frozen=True)
class Files:
    """What is read: files, and whether they are the shards of a folder, which stay as they are cut."""

    names: Sequence[File]
    paths: Sequence[Path]  # of all that is read
    sources: Sequence[Path]  # as they were given, to be named in messages
    read: Reader

    @property
    def sharded(self) -> bool:
        return len(self.sources) == 1 and len(list_shards(self.sources[0])) == len(self.names)


@dataclass(frozen=True)
class Chunk:
    """What became of some documents: lines to be written, and complaints about those that are not."""

    read: int
    lines: tuple[str, ...]
    counts: dict[str, int]
    errors: tuple[str, ...]
    resumed: bool = False  # made in an earlier go


Work = Callable[[Sequence[Task]], Chunk]
"""What is done with some tasks. It is pickled for the processes that share the work."""


@dataclass
class Streamed:
    """What was done: tasks read, how many of them in an earlier go; counts of documents, events and more."""

    read: int = 0
    resumed: int = 0
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, chunk: Chunk, skip_bad: Skipped | None) -> None:
        for error in chunk.errors:
            if skip_bad is None:
                raise UserError(error)
            skip_bad.add(error)
        self.read += chunk.read
        self.resumed += chunk.read if chunk.resumed else 0
        self.counts.update(chunk.counts)


def _header(paths: Iterable[Path], settings: StreamSettings, about: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same for work to be gone on with. The number of processes need not be."""
    stats = []
    for path in paths:
        with translate_os_errors(path, "read"):
            stat = path.stat()
        stats.append([str(path), stat.st_size, stat.st_mtime_ns])
    return {
        "version": __version__,
        "settings": replace(settings, **EngineSettings().values()).to_dict(),
        "files": stats,
        **about,
    }


def stream(
    files: Files,
    work: Work,
    out: Path,
    settings: StreamSettings,
    *,
    about: Mapping[str, Any],
    chunk: int,
    skip_bad: Skipped | None,
    progress: Progress,
    label: str,
    gpu: bool = False,
) -> Streamed:
    """Write what the work makes of each task, in their order: into a file, or into a folder of shards.

    ``about`` is what the outcome depends on beside the files and the settings. The work takes ``chunk`` tasks
    at once. The first bad one raises, unless ``skip_bad`` is there to count
    them. ``gpu`` is for the pool.
    """
    done, header = Streamed(), _header(files.paths, settings, about)
    report: Report = stop_at_first_error if skip_bad is None else skip_bad

    def shared(pieces: Iterable[Any], work: Callable[[Any], Chunk]) -> Iterator[Chunk]:
        results = map_in_processes(pieces, work, settings, ADVICE, gpu)
        yield from track(progress, results, label, size=lambda chunk: chunk.read)
        if not done.counts["documents"]:
            first = f"\n{skip_bad.messages[0]}" if skip_bad and skip_bad.count else ""
            raise UserError(f"no document could be read from {', '.join(map(str, files.sources))}{first}")

    if is_file_name(out):
        with _Journal(out, header, done, skip_bad) as journal:
            rest = islice(files.read(files.names, report), done.read, None)
            for result in shared(chunked(rest, chunk), work):
                journal.write(result)
            journal.finish()
    else:
        with unfinished(out, header):
            pieces = _pieces(files, settings.shard_documents, report)
            for result in shared(pieces, _ShardMaker(out, settings.shard_format, files.read, work, chunk)):
                done.add(result, skip_bad)
    return done


ADVICE = "what is done is kept: the same command goes on from there"

Piece = tuple[int, Sequence[File] | None, Iterable[Task]]
"""The number of a shard, and what it is made of: files that are read where it is made, or tasks."""


def _pieces(files: Files, documents: int, report: Report) -> Iterator[Piece]:
    if files.sharded:
        yield from ((number, [name], ()) for number, name in enumerate(files.names))
    else:
        tasks = chunked(files.read(files.names, report), documents)
        yield from ((number, None, some) for number, some in enumerate(tasks))


@dataclass(frozen=True)
class _ShardMaker:
    """Makes one shard, if it is not there. It is pickled for the processes that share the work."""

    folder: Path
    ending: str
    read: Reader
    work: Work
    chunk: int

    def __call__(self, piece: Piece) -> Chunk:
        number, files, tasks = piece
        shard = self.folder / shard_name(number, self.ending)
        if (note := read_note(shard)) is not None:
            return Chunk(note["read"], (), note["counts"], tuple(note["errors"]), resumed=True)
        read, counts, errors = 0, Counter[str](), list[str]()
        if files is not None:
            tasks = self.read(files, lambda error: errors.append(str(error)))
        with atomic_write(shard) as temporary, open_shard(temporary) as lines:
            for some in chunked(tasks, self.chunk):
                made = self.work(some)
                lines.extend(made.lines)
                read += made.read
                counts.update(made.counts)
                errors += made.errors
        write_note(shard, read, counts, errors)
        return Chunk(read, (), dict(counts), tuple(errors))


Single = Callable[[Any], tuple[Document, Mapping[str, int]]]
"""Makes a document of the second part of a task, and says what is to be counted beside its events."""


def one_by_one(tasks: Sequence[Task], work: Single) -> Chunk:
    """Do some tasks. Whatever goes wrong with one of them is said, and the next is taken."""
    lines, counts, errors = [], Counter[str](), []
    for place, content in tasks:
        try:
            document, counted = work(content)
            line = json.dumps(document_to_record(document), ensure_ascii=False)
            line.encode()  # half a surrogate pair cannot be written, and is better known here
        except UserError as error:
            errors.append(str(error))
        except Exception as error:  # a parser may fail in any way, and one document must not cost all
            errors.append(f"{place}: {type(error).__name__}: {error}")
        else:
            lines.append(line)
            counts.update({"documents": 1, "events": len(document.events)})
            counts.update(counted)
    return Chunk(len(tasks), tuple(lines), dict(counts), tuple(errors))


# Documents of events as tasks.

Found = Document | tuple[Path, int, str]
"""A document, or the line that it stands on: to make a document of it is work to be shared."""


def document_files(
    source: Path, format: str | None, slots: Slots = SLOTS, columns: Columns | None = None
) -> Files:
    """A file of documents in any format, or a folder of shards; a table is read by its ``columns``."""
    names = list_shards(source) or [source]
    beside = [frame_file(name) for name in names if _format(name, format) == "official"]
    read = partial(_documents, format=format, slots=slots, columns=columns)
    return Files(names, [*names, *beside], [source], read)


def _format(path: Path, format: str | None) -> str:
    return format or guess_format(path)


def _documents(
    files: Sequence[Path], report: Report, format: str | None, slots: Slots, columns: Columns | None
) -> Iterator[Task]:
    skip = None if report is stop_at_first_error else report
    for path in files:
        choice = _format(path, format)
        if choice == "jsonl" and (columns is None or not has_rows(path, choice)):
            for number, text in filled_lines(path, report):
                yield f"{path}, line {number}", (path, number, text)
        else:
            for document in read_documents(path, format, skip, slots, columns):
                yield f"{path}, document {document.id!r}", document


def found_document(found: Found, slots: Slots = SLOTS, hole: str | None = None) -> Document:
    """The document; ``null`` among the events on a line stands for one whose head is ``hole``."""
    return found if isinstance(found, Document) else parse_line(*found, slots, hole)


def found_documents(files: Files, report: Report, slots: Slots, hole: str) -> Iterator[Document]:
    """The documents of all files."""
    for _, found in files.read(files.names, report):
        try:
            yield found_document(found, slots, hole)
        except DataError as error:
            report(error)


# One file.


class Entry(TypedDict):
    """A line of the journal: one chunk that was written."""

    read: int
    counts: dict[str, int]
    errors: list[str]
    size: int  # of the output after it


class _Journal:
    """The unfinished output, and how far it is.

    Lines are written before the journal says so; what a killed process wrote and did not enter is cut off.
    """

    def __init__(
        self, out: Path, header: Mapping[str, Any], done: Streamed, skip_bad: Skipped | None
    ) -> None:
        self.out, self.header, self.done, self.skip_bad = out, header, done, skip_bad
        self.part, self.path = (out.with_name(f".{out.name}.{kind}") for kind in ("part", "journal"))

    def __enter__(self) -> _Journal:
        with contextlib.ExitStack() as files:
            with translate_os_errors(self.out, "write"):
                # Opened for writing without emptying it, made if it is not there.
                self.lines: IO[bytes] = files.enter_context(open(self.part, "ab"))
                busy = f"another process is writing {self.out}"
                lock(self.lines, f"{busy}\nwait for it, or choose another --out")
            entries = self._entries()
            for entry in entries:
                chunk = Chunk(entry["read"], (), entry["counts"], tuple(entry["errors"]), resumed=True)
                self.done.add(chunk, self.skip_bad)
            with translate_os_errors(self.out, "write"):
                self.lines.truncate(entries[-1]["size"] if entries else 0)
                self.lines.seek(0, os.SEEK_END)
                # Written anew: its last line may have been cut in the middle.
                self.journal: IO[str] = files.enter_context(open(self.path, "w", encoding="utf-8"))
                for record in (self.header, *entries):
                    self._enter(record)
            self._files = files.pop_all()  # what fails before this lets go of the lock
        return self

    def _entries(self) -> list[Entry]:
        """The entries of an earlier go at the same work, up to the first that is not whole."""
        entries: list[Entry] = []
        with contextlib.suppress(OSError, ValueError), open(self.path, encoding="utf-8") as file:
            whole = from_json(file.readline()) == self.header
            for line in file if whole else ():
                entry = from_json(line)
                check_shape(entry, Entry)
                if entry["size"] < (entries[-1]["size"] if entries else 0):
                    break
                entries.append(entry)
        if entries and (not self.part.exists() or self.part.stat().st_size < entries[-1]["size"]):
            return []
        return entries

    def _enter(self, record: Mapping[str, Any]) -> None:
        self.journal.write(json.dumps(record) + "\n")
        self.journal.flush()

    def write(self, chunk: Chunk) -> None:
        self.done.add(chunk, self.skip_bad)
        entry = {"read": chunk.read, "counts": chunk.counts, "errors": chunk.errors}
        with translate_os_errors(self.out, "write"):
            self.lines.write("".join(line + "\n" for line in chunk.lines).encode())
            self.lines.flush()
            self._enter({**entry, "size": self.lines.tell()})

    def finish(self) -> None:
        """Put the whole in its place; the journal has done its work."""
        self._files.close()
        with (
            atomic_write(self.out) as temporary,
            open(self.part, encoding="utf-8", newline="") as lines,
            open_text_for_writing(temporary) as file,
        ):
            shutil.copyfileobj(lines, file)
        self.part.unlink()
        self.path.unlink()

    def __exit__(self, *error: object) -> None:
        self._files.close()
        if not self.done.read:
            # Nothing was done, so nothing is left behind.
            for path in (self.part, self.path):
                path.unlink(missing_ok=True)
