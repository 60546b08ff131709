"""Documents through many processes into one file: in their order, and nothing lost when it is stopped.

While it runs, ``.out.jsonl.part`` has the documents that are done and ``.out.jsonl.journal`` says how
far that is. The same command, given again, goes on from there and ends with the file of one undisturbed run.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypedDict

from ssdvae import __version__
from ssdvae.config import StreamSettings
from ssdvae.data.events import Document, document_to_record
from ssdvae.data.readers import Skipped
from ssdvae.errors import UserError
from ssdvae.files import atomic_write, open_text_for_writing, translate_os_errors
from ssdvae.locks import lock
from ssdvae.pool import chunked, map_in_processes
from ssdvae.progress import Progress, track
from ssdvae.records import from_json
from ssdvae.shapes import check_shape

Task = tuple[str, Any]
"""Where a document stands, to be said if it is bad, and what it is to be made of."""

Work = Callable[[Any], tuple[Document, Mapping[str, int]]]
"""Makes a document of the second part of a task, and says what is to be counted beside its events.

It is pickled for the processes that share the work.
"""


@dataclass(frozen=True)
class Chunk:
    """What became of some documents: lines to be written, and complaints about those that are not."""

    read: int
    lines: tuple[str, ...]
    counts: dict[str, int]
    errors: tuple[str, ...]


@dataclass
class Streamed:
    """What was done: tasks read, how many of them in an earlier go; counts of documents, events and more."""

    read: int = 0
    resumed: int = 0
    counts: Counter[str] = field(default_factory=Counter)


def header(files: Iterable[Path], settings: StreamSettings, **more: Any) -> dict[str, Any]:
    """What must be the same for work to be gone on with. The number of processes need not be."""
    stats = []
    for path in files:
        with translate_os_errors(path, "read"):
            stat = path.stat()
        stats.append([str(path), stat.st_size, stat.st_mtime_ns])
    return {
        "version": __version__,
        "settings": replace(settings, jobs=0).to_dict(),
        "files": stats,
        **more,
    }


def stream(
    tasks: Iterable[Task],
    work: Work,
    out: Path,
    *,
    header: Mapping[str, Any],
    sources: Sequence[Path],
    jobs: int,
    chunk: int,
    skip_bad: Skipped | None,
    progress: Progress,
    label: str,
) -> Streamed:
    """Write what the work makes of each task, in their order.

    A process takes ``chunk`` tasks at once. The first bad one raises, unless ``skip_bad`` is there to count
    them. ``sources`` are named where nothing could be read.
    """
    done = Streamed()
    with _Journal(out, header, done, skip_bad) as journal:
        rest = islice(tasks, done.read, None)
        advice = "what is done is kept: the same command goes on from there"
        results = map_in_processes(chunked(rest, chunk), partial(process, work=work), jobs, advice)
        for result in track(progress, results, label, size=lambda chunk: chunk.read):
            journal.write(result)
        if not done.counts["documents"]:
            first = f"\n{skip_bad.messages[0]}" if skip_bad and skip_bad.count else ""
            raise UserError(f"no document could be read from {', '.join(map(str, sources))}{first}")
        journal.finish()
    return done


def process(tasks: Sequence[Task], work: Work) -> Chunk:
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
                self._count(entry["read"], entry["counts"], entry["errors"])
            self.done.resumed = self.done.read
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

    def _count(self, read: int, counts: Mapping[str, int], errors: Iterable[str]) -> None:
        for error in errors:
            if self.skip_bad is None:
                raise UserError(error)
            self.skip_bad.add(error)
        self.done.read += read
        self.done.counts.update(counts)

    def write(self, chunk: Chunk) -> None:
        self._count(chunk.read, chunk.counts, chunk.errors)
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
