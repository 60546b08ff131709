"""The documents of each split, from one file or several, read by any number of processes."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Generic, TypeVar

from ssdvae.data.columns import Columns
from ssdvae.data.events import Document
from ssdvae.data.options import SPLITS, EngineOptions, PrepareOptions, Split
from ssdvae.data.process import Process
from ssdvae.data.readers import Skipped, find_columns, guess_format, read_documents, table_format
from ssdvae.data.readers.jsonl import parse_lines, write_jsonl
from ssdvae.data.readers.tables import find_process, sort_rows
from ssdvae.data.shards import list_shards
from ssdvae.engine.pool import chunked, map_in_processes
from ssdvae.io.files import byte_lines, stop_at_first_error
from ssdvae.io.progress import Progress, track

BYTES = 2**22
"""JSON lines that a process takes at once: they take about as long as a process takes to start."""

DOCUMENTS = 4096
"""Documents of other files that are taken at once."""

Result = TypeVar("Result")

SplitDocument = tuple[Split, Document]
"""A document and its split."""

Work = Callable[[Iterable[SplitDocument]], Result]


@dataclass(frozen=True)
class Part(Generic[Result]):
    """The result of some documents of a file, and the numbers of good and bad ones."""

    read: int
    bad: int
    result: Result


def split_of(id: str, options: PrepareOptions) -> Split:
    """Return the split of a document: by its id alone, so that it stays there when the file grows."""
    draw = int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "big") / 2**64
    if draw < options.valid_share:
        return "valid"
    return "test" if draw < options.valid_share + options.test_share else "train"


@dataclass(frozen=True)
class Source:
    """One file to be split, or one for each split. A folder of shards may stand for a file."""

    sources: Path | Mapping[Split, Path]
    options: PrepareOptions
    format: str | None
    skip_bad: bool

    @property
    def inputs(self) -> list[Path]:
        """Files and folders, each once."""
        named = [self.sources] if isinstance(self.sources, Path) else self.sources.values()
        return list(dict.fromkeys(named))

    @property
    def paths(self) -> list[Path]:
        """Every file that is read; of a folder, its shards."""
        return [file for path in self.inputs for file in list_shards(path) or [path]]

    def path(self, split: Split) -> Path:
        """Return the file of a split; without its own, validation is a share of the training file."""
        if isinstance(self.sources, Path):
            return self.sources
        return self.sources.get(split) or self.sources["train"]

    @cached_property
    def _without_test(self) -> PrepareOptions:
        return self.options.changed(test_share=0.0)

    def splits(self, path: Path, id: str) -> list[Split]:
        """Return the splits of a document of a file: one, unless the file was named for two."""
        if isinstance(self.sources, Path):
            return [split_of(id, self.options)]
        named = [split for split in SPLITS if self.path(split) == path]
        if "valid" in self.sources:
            return named
        drawn = split_of(id, self._without_test)
        return [split for split in named if split in (drawn, "test")]

    def read(self, path: Path, work: Work[Result], engine: EngineOptions) -> Iterator[Part[Result]]:
        """Apply ``work`` to the documents of a file, a chunk at a time; yield results in the file's order.

        Shards and JSON lines are parsed by the process that does the work. Other files are read and worked on
        here: sending their documents to another process would take as long as the work itself.
        """
        if shards := list_shards(path):
            yield from map_in_processes(shards, partial(_read_shard, self, path, work), engine)
            return
        if (self.format or guess_format(path)) == "jsonl":
            lines = chunked(byte_lines(path), BYTES, lambda line: len(line[1]))
            yield from map_in_processes(lines, partial(_read_lines, self, path, work), engine)
            return
        skipped = Skipped()
        documents = read_documents(
            path, self.format, skipped if self.skip_bad else None, self.options.slot_names
        )
        for chunk in chunked(documents, DOCUMENTS):
            yield self._part(path, work, chunk, skipped)
            skipped.count = 0
        yield self._part(path, work, [], skipped)  # what was bad after the last document

    def _part(
        self, path: Path, work: Work[Result], documents: Iterable[Document], skipped: Skipped
    ) -> Part[Result]:
        read = 0

        def split_documents() -> Iterator[SplitDocument]:
            nonlocal read
            for document in documents:
                read += 1
                for split in self.splits(path, document.id):
                    if not self.options.single_events:
                        yield split, document
                        continue
                    for number, event in enumerate(document.events, start=1):
                        yield split, Document(f"{document.id}#{number}", (event,))

        result = work(split_documents())
        return Part(read, skipped.count, result)


def _read_shard(source: Source, path: Path, work: Work[Result], shard: Path) -> Part[Result]:
    skipped = Skipped()
    skip_bad = skipped if source.skip_bad else None
    documents = read_documents(shard, source.format, skip_bad, source.options.slot_names)
    return source._part(path, work, documents, skipped)


def _read_lines(
    source: Source, path: Path, work: Work[Result], lines: list[tuple[int, bytes]]
) -> Part[Result]:
    skipped = Skipped()
    report = skipped if source.skip_bad else stop_at_first_error
    return source._part(path, work, parse_lines(path, lines, report, source.options.slot_names), skipped)


@dataclass(frozen=True)
class Converted:
    """A source of documents; of a table also its columns, its process, and the rows skipped in each file."""

    source: Source
    columns: Columns | None = None
    process: Process | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)


@contextmanager
def convert_tables(source: Source, folder: Path, progress: Progress) -> Iterator[Converted]:
    """Yield the source if it has documents; if it is a table, write its documents to temporary JSON lines.

    The bins of numbers are those of the training split, whose file is read first.
    """
    train = source.path("train")
    columns = find_columns(source.options, train, source.format)
    if columns is None:
        yield Converted(source)
        return
    options = source.options.changed(slots=",".join(columns.slots))
    folder.mkdir()
    try:
        files: dict[Path, Path] = {}
        skipped = {}
        for path in dict.fromkeys([train, *source.inputs]):
            bad = Skipped()
            files[path] = folder / f"{len(files)}.jsonl"
            columns = _convert(source, path, columns, files[path], bad, progress)
            skipped[str(path)] = bad.count
        with progress.task("finding the process"):
            process = find_process(train, [exported(file) for file in files.values()], folder)
        sources = source.sources
        written = (
            files[sources] if isinstance(sources, Path) else {split: files[p] for split, p in sources.items()}
        )
        documents = Source(written, options, "jsonl", False)
        yield Converted(documents, columns, process, skipped if source.skip_bad else {})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def exported(documents: Path) -> Path:
    """Return the file with the rows of a file of documents."""
    return documents.with_suffix(".parquet")


def _convert(
    source: Source, path: Path, columns: Columns, out: Path, bad: Skipped, progress: Progress
) -> Columns:
    """Write the documents of a table; return the columns with the edges of their bins."""
    bins = source.options.bins
    with sort_rows(
        path,
        table_format(path, source.format),
        columns,
        bad if source.skip_bad else stop_at_first_error,
        binned=frozenset(bins),
        in_training=lambda case: "train" in source.splits(path, case),
        folder=out.parent,
        progress=progress,
    ) as rows:
        if not columns.bins:
            columns = columns.model_copy(update={"bins": rows.edges(bins)})
        rows.export(exported(out))
        write_jsonl(out, track(progress, rows.documents(columns), "sorting"), columns.slots)
    return columns
