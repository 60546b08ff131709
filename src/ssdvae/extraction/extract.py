"""From files of text to one file of events: many processes, one order, and nothing lost when it is stopped.

While it runs, ``.events.jsonl.part`` has the documents that are done and ``.events.jsonl.journal`` says how
far that is. The same command, given again, goes on from there and ends with the file of one undisturbed run.
"""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ssdvae import __version__
from ssdvae.config import ExtractSettings, cores
from ssdvae.data.events import document_to_record
from ssdvae.data.files import atomic_write, explained, writing_text
from ssdvae.data.readers import Skipped
from ssdvae.errors import UserError
from ssdvae.extraction.parsed import Raw, to_document
from ssdvae.extraction.readers import FORMATS, list_files

CHUNK = 16
"""Documents that a process takes at once."""

Task = tuple[str, Raw]
"""A document and the name of its format."""

Progress = Callable[[Iterable["Chunk"]], Iterable["Chunk"]]
"""Shows that documents go by."""


@dataclass(frozen=True)
class Chunk:
    """What became of some documents: lines to be written, and complaints about those that are not."""

    read: int
    lines: tuple[str, ...]
    events: int
    errors: tuple[str, ...]


@dataclass
class Extracted:
    """What an extraction did."""

    documents: int = 0
    events: int = 0
    resumed: int = 0
    skipped: Skipped = field(default_factory=lambda: Skipped(unit="document"))


def extract(
    sources: Sequence[Path],
    out: Path,
    settings: ExtractSettings | None = None,
    *,
    format: str | None = None,
    progress: Progress = lambda chunks: chunks,
) -> Extracted:
    """Write the events of all documents, in their order. A bad document is counted and passed over."""
    settings = settings or ExtractSettings()
    files = list_files(sources, format)
    for choice in dict.fromkeys(choice for _, _, choice in files):
        FORMATS[choice].check(settings)
    done = Extracted()
    with _Journal(out, _header(files, settings), done) as journal:
        tasks = islice(_tasks(files, settings, done.skipped), journal.read, None)
        for chunk in progress(_results(tasks, settings)):
            journal.write(chunk)
        if not done.documents:
            first = f"\n{done.skipped.messages[0]}" if done.skipped.count else ""
            raise UserError(f"no document could be read from {', '.join(map(str, sources))}{first}")
        journal.finish()
    return done


def _header(files: Sequence[tuple[Path, str, str]], settings: ExtractSettings) -> dict[str, Any]:
    """What must be the same for an extraction to be gone on with. The number of processes need not be."""
    stats = [(path, choice, path.stat()) for path, _, choice in files]
    return {
        "version": __version__,
        "settings": replace(settings, jobs=0).to_dict(),
        "files": [[str(path), choice, stat.st_size, stat.st_mtime_ns] for path, choice, stat in stats],
    }


def _tasks(
    files: Sequence[tuple[Path, str, str]], settings: ExtractSettings, skipped: Skipped
) -> Iterator[Task]:
    """The documents of all files, as quickly as they can be found."""
    for path, name, choice in files:
        for raw in FORMATS[choice].read(path, settings, skipped):
            # A document that is named by its file is named by the way to it: folders have files of one name.
            yield choice, replace(raw, id=name) if raw.id == path.name else raw


def _results(tasks: Iterator[Task], settings: ExtractSettings) -> Iterator[Chunk]:
    """Each chunk of tasks, done, in their order; whatever the number of processes."""
    chunks = iter(lambda: list(islice(tasks, CHUNK)), [])
    jobs = settings.jobs or cores()
    first = list(islice(chunks, 2))
    if jobs == 1 or len(first) < 2:
        # One chunk is done sooner than a process is started.
        yield from (process(chunk, settings) for chunk in (*first, *chunks))
        return
    # Fresh processes, not copies of this one, in which the threads of torch may be at work.
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn"))
    try:
        waiting: deque[Future[Chunk]] = deque()
        for chunk in (*first, *chunks):
            waiting.append(pool.submit(process, chunk, settings))
            # What waits is held in memory, so there is a limit to reading ahead.
            if len(waiting) >= 3 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process of the extraction died; is the memory full? then try fewer --jobs\n"
            "what is done is kept: the same command goes on from there\n"
            "(in a script of your own, call extract under: if __name__ == '__main__')"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def process(tasks: Sequence[Task], settings: ExtractSettings) -> Chunk:
    """Understand some documents. Whatever goes wrong with one of them is said, and the next is taken."""
    lines, events, errors = [], 0, []
    for choice, raw in tasks:
        place = f"{raw.path}, document {raw.id!r}"
        try:
            document = to_document(FORMATS[choice].parse(raw, settings), settings)
            line = json.dumps(document_to_record(document), ensure_ascii=False)
            line.encode()  # half a surrogate pair cannot be written, and is better known here
        except UserError as error:
            errors.append(str(error))
        except Exception as error:  # a parser may fail in any way, and one document must not cost all
            errors.append(f"{place}: {type(error).__name__}: {error}")
        else:
            lines.append(line)
            events += len(document.events)
    return Chunk(len(tasks), tuple(lines), events, tuple(errors))


class _Journal:
    """The unfinished output, and how far it is.

    Lines are written before the journal says so; what a killed process wrote and did not enter is cut off.
    """

    def __init__(self, out: Path, header: dict[str, Any], done: Extracted) -> None:
        self.out, self.header, self.done = out, header, done
        self.part, self.path = (out.with_name(f".{out.name}.{kind}") for kind in ("part", "journal"))
        self.read = 0

    def __enter__(self) -> _Journal:
        entries = self._entries()
        for entry in entries:
            self._count(Chunk(entry["read"], (), entry["events"], tuple(entry["errors"])), entry["documents"])
        self.done.resumed = self.read
        self._files = contextlib.ExitStack()
        with explained(self.out, "write"):
            # Opened for writing without emptying it, made if it is not there.
            self.lines: IO[bytes] = self._files.enter_context(open(self.part, "ab"))
            self.lines.truncate(entries[-1]["size"] if entries else 0)
            # Written anew: its last line may have been cut in the middle.
            self.journal: IO[str] = self._files.enter_context(open(self.path, "w", encoding="utf-8"))
            for record in (self.header, *entries):
                self._enter(record)
        return self

    def _entries(self) -> list[dict[str, Any]]:
        """The entries of an earlier go at the same work, up to the first that is not whole."""
        entries: list[dict[str, Any]] = []
        with contextlib.suppress(OSError, ValueError), open(self.path, encoding="utf-8") as file:
            if json.loads(file.readline()) == self.header:
                entries.extend(json.loads(line) for line in file)
        if entries and (not self.part.exists() or self.part.stat().st_size < entries[-1]["size"]):
            return []
        return entries

    def _enter(self, record: dict[str, Any]) -> None:
        self.journal.write(json.dumps(record) + "\n")
        self.journal.flush()

    def _count(self, chunk: Chunk, documents: int) -> None:
        self.read += chunk.read
        self.done.documents += documents
        self.done.events += chunk.events
        for error in chunk.errors:
            self.done.skipped.add(error)

    def write(self, chunk: Chunk) -> None:
        self._count(chunk, len(chunk.lines))
        entry = {
            "read": chunk.read,
            "documents": len(chunk.lines),
            "events": chunk.events,
            "errors": chunk.errors,
        }
        with explained(self.out, "write"):
            self.lines.write("".join(line + "\n" for line in chunk.lines).encode())
            self.lines.flush()
            self._enter({**entry, "size": self.lines.tell()})

    def finish(self) -> None:
        """Put the whole in its place; the journal has done its work."""
        self._files.close()
        with (
            atomic_write(self.out) as temporary,
            open(self.part, encoding="utf-8", newline="") as lines,
            writing_text(temporary) as file,
        ):
            shutil.copyfileobj(lines, file)
        self.part.unlink()
        self.path.unlink()

    def __exit__(self, *error: object) -> None:
        self._files.close()
        if not self.read:
            # Nothing was done, so nothing is left behind.
            for path in (self.part, self.path):
                path.unlink(missing_ok=True)
