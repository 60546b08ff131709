"""Resumable streams: documents through many processes into a file or a folder of shards, in order.

A command that was stopped is resumed when it is given again, and ends with the same output. While a file is
written, ``.out.jsonl.part`` has the documents that are done and ``.out.jsonl.journal`` their number; a folder
has the shards that are done (`shards`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ssdvae import __version__
from ssdvae.data.columns import Columns
from ssdvae.data.events import SLOTS, Document, Slots, document_to_record
from ssdvae.data.options import EngineOptions, StreamOptions
from ssdvae.data.readers import Skipped, guess_format, read_documents
from ssdvae.data.readers.jsonl import filled_lines, parse_line
from ssdvae.data.readers.rows import has_rows
from ssdvae.data.readers.text import frame_file
from ssdvae.data.shards import (
    is_file_name,
    list_shards,
    read_note,
    shard_name,
    unfinished,
    write_note,
    write_shard,
)
from ssdvae.engine.pool import chunked, map_in_processes
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.files import (
    Report,
    atomic_write,
    open_text_for_writing,
    stop_at_first_error,
    translate_os_errors,
)
from ssdvae.io.locks import lock_file
from ssdvae.io.progress import Progress, track
from ssdvae.io.records import Count, Record, from_json, parse

Task = tuple[str, Any]
"""The place of a document, for messages, and what it is made from."""

File = Any
"""A file, as its reader names it."""

Reader = Callable[[Sequence[File], Report], Iterable[Task]]
"""Returns the tasks of some files, and reports what it skips. It is pickled."""


@dataclass(frozen=True)
class Files:
    """The input files."""

    names: Sequence[File]
    paths: Sequence[Path]  # of all that is read
    sources: Sequence[Path]  # as they were given, for messages
    read: Reader

    @property
    def sharded(self) -> bool:
        """True for the shards of a folder: each becomes a shard of the output."""
        return len(self.sources) == 1 and len(list_shards(self.sources[0])) == len(self.names)


@dataclass(frozen=True)
class Chunk:
    """The result of some tasks: lines to write, counts, and errors."""

    read: int
    lines: tuple[str, ...]
    counts: dict[str, int]
    errors: tuple[str, ...]
    resumed: bool = False  # made before the command was stopped


Work = Callable[[Sequence[Task]], Chunk]
"""Turns some tasks into a chunk. It is pickled."""


@dataclass
class Streamed:
    """The totals of a stream: tasks read, those of them that were resumed, and counts."""

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


def _header(paths: Iterable[Path], options: StreamOptions, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be equal for a stream to be resumed: all but the engine."""
    stats = []
    for path in paths:
        with translate_os_errors(path, "read"):
            stat = path.stat()
        stats.append([str(path), stat.st_size, stat.st_mtime_ns])
    return {
        "version": __version__,
        "settings": options.changed(**EngineOptions().values()).to_dict(),
        "files": stats,
        **about,
    }


def stream(
    files: Files,
    work: Work,
    out: Path,
    options: StreamOptions,
    *,
    about: Mapping[str, Any],
    chunk: int,
    skip_bad: Skipped | None,
    progress: Progress,
    label: str,
    gpu: bool = False,
) -> Streamed:
    """Write the results of all tasks, in order, into a file or into a folder of shards.

    ``about`` is what the output depends on beside the files and the options. ``work`` takes ``chunk`` tasks
    at once. The first bad task raises an error, unless ``skip_bad`` counts them. ``gpu`` is for the pool.
    """
    done, header = Streamed(), _header(files.paths, options, about)
    report: Report = stop_at_first_error if skip_bad is None else skip_bad

    def shared(pieces: Iterable[Any], work: Callable[[Any], Chunk]) -> Iterator[Chunk]:
        results = map_in_processes(pieces, work, options, ADVICE, gpu)
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
            pieces = _pieces(files, options.shard_documents, report)
            for result in shared(pieces, _ShardMaker(out, options.shard_format, files.read, work, chunk)):
                done.add(result, skip_bad)
    return done


ADVICE = "what is done is kept: the same command goes on from there"

Piece = tuple[int, Sequence[File] | None, Iterable[Task]]
"""The number of a shard, and its files, which are read where it is made, or its tasks."""


def _pieces(files: Files, documents: int, report: Report) -> Iterator[Piece]:
    if files.sharded:
        yield from ((number, [name], ()) for number, name in enumerate(files.names))
    else:
        tasks = chunked(files.read(files.names, report), documents)
        yield from ((number, None, chunk) for number, chunk in enumerate(tasks))


@dataclass(frozen=True)
class _ShardMaker:
    """Makes one shard, if it does not exist. It is pickled."""

    folder: Path
    ending: str
    read: Reader
    work: Work
    chunk: int

    def __call__(self, piece: Piece) -> Chunk:
        number, files, tasks = piece
        shard = self.folder / shard_name(number, self.ending)
        if (note := read_note(shard)) is not None:
            return Chunk(note.read, (), note.counts, tuple(note.errors), resumed=True)
        read, counts, errors = 0, Counter[str](), list[str]()
        if files is not None:
            tasks = self.read(files, lambda error: errors.append(str(error)))

        def lines() -> Iterator[str]:
            nonlocal read
            for chunk in chunked(tasks, self.chunk):
                made = self.work(chunk)
                read += made.read
                counts.update(made.counts)
                errors.extend(made.errors)
                yield from made.lines

        with atomic_write(shard) as temporary:
            write_shard(temporary, lines())
        write_note(shard, read, counts, errors)
        return Chunk(read, (), dict(counts), tuple(errors))


Single = Callable[[Any], tuple[Document, Mapping[str, int]]]
"""Turns the second part of a task into a document, and counts beside those of documents and events."""


def one_by_one(tasks: Iterable[Task], work: Single) -> Chunk:
    """Return the result of some tasks; an error in one of them is recorded, and the next one is done."""
    read, lines, counts, errors = 0, list[str](), Counter[str](), list[str]()
    for place, content in tasks:
        read += 1
        try:
            document, counted = work(content)
            line = json.dumps(document_to_record(document), ensure_ascii=False)
            line.encode()  # half a surrogate pair could not be written
        except UserError as error:
            errors.append(str(error))
        except Exception as error:  # a parser may fail in any way; one document must not stop all
            errors.append(f"{place}: {type(error).__name__}: {error}")
        else:
            lines.append(line)
            counts.update({"documents": 1, "events": len(document.events)})
            counts.update(counted)
    return Chunk(read, tuple(lines), dict(counts), tuple(errors))


# Documents of events as tasks

RawDocument = Document | tuple[Path, int, str]
"""A document, or the path, number and text of its line, to be parsed by the process that works on it."""


def document_files(
    source: Path, format: str | None, slots: Slots = SLOTS, columns: Columns | None = None
) -> Files:
    """Return a file of documents in any format, or a folder of shards; tables are read by ``columns``."""
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


def parse_document(raw: RawDocument, slots: Slots = SLOTS, hole: str | None = None) -> Document:
    """Return the document; ``null`` among the events of a line stands for one whose head is ``hole``."""
    return raw if isinstance(raw, Document) else parse_line(*raw, slots, hole)


def parse_documents(files: Files, report: Report, slots: Slots, hole: str) -> Iterator[Document]:
    """Yield the documents of all files."""
    for _, raw in files.read(files.names, report):
        try:
            yield parse_document(raw, slots, hole)
        except DataError as error:
            report(error)


# One file


class Entry(Record, extra="ignore"):
    """A line of the journal: one chunk that was written."""

    read: Count
    counts: dict[str, Count]
    errors: list[str]
    size: Count  # of the output after it


class _Journal:
    """The unfinished output, and its progress.

    Lines are written before they are entered; lines of a killed process that are not entered are cut off.
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
                lock_file(self.lines, f"{busy}\nwait for it, or choose another --out")
            entries = self._entries()
            for entry in entries:
                chunk = Chunk(entry.read, (), entry.counts, tuple(entry.errors), resumed=True)
                self.done.add(chunk, self.skip_bad)
            with translate_os_errors(self.out, "write"):
                self.lines.truncate(entries[-1].size if entries else 0)
                self.lines.seek(0, os.SEEK_END)
                # Written again: its last line may be incomplete.
                self.journal: IO[str] = files.enter_context(open(self.path, "w", encoding="utf-8"))
                for record in (self.header, *(entry.model_dump() for entry in entries)):
                    self._enter(record)
            self._files = files.pop_all()  # an error before this releases the lock
        return self

    def _entries(self) -> list[Entry]:
        """Return the entries of a stopped stream with the same header, up to the first incomplete one."""
        entries: list[Entry] = []
        with contextlib.suppress(OSError, ValueError), open(self.path, encoding="utf-8") as file:
            whole = from_json(file.readline()) == self.header
            for line in file if whole else ():
                entry = parse(Entry, from_json(line))
                if entry.size < (entries[-1].size if entries else 0):
                    break
                entries.append(entry)
        if entries and (not self.part.exists() or self.part.stat().st_size < entries[-1].size):
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
        """Move the output to its place and remove the journal."""
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
            # Nothing was done: leave nothing behind.
            for path in (self.part, self.path):
                path.unlink(missing_ok=True)
