"""The documents of each split, from one file or several, read by as many processes as one likes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Generic, TypeVar

from ssdvae.config import SPLITS, EngineSettings, PrepareSettings, Split
from ssdvae.data.events import Document
from ssdvae.data.readers import Skipped, guess_format, read_documents
from ssdvae.data.readers.jsonl import parse_lines
from ssdvae.data.shards import list_shards
from ssdvae.files import byte_lines, stop_at_first_error
from ssdvae.pool import chunked, map_in_processes

BYTES = 2**22
"""JSON lines that a process takes at once: they take about as long as a process takes to start."""

DOCUMENTS = 4096
"""Documents of other files that are taken at once."""

Result = TypeVar("Result")

Found = tuple[Split, Document]
"""A document, and the split it is in."""


@dataclass(frozen=True)
class Part(Generic[Result]):
    """The result of some documents of a file, and how many there were."""

    read: int
    bad: int
    result: Result


def split_of(id: str, settings: PrepareSettings) -> Split:
    """The split of a document: by its name alone, so that it stays there when the file grows."""
    draw = int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "big") / 2**64
    if draw < settings.valid_share:
        return "valid"
    return "test" if draw < settings.valid_share + settings.test_share else "train"


@dataclass(frozen=True)
class Source:
    """One file to be split, or one for each split; read again for each thing that is counted or written.

    A folder of shards may stand for a file.
    """

    sources: Path | Mapping[Split, Path]
    settings: PrepareSettings
    format: str | None
    skip_bad: bool

    @property
    def paths(self) -> list[Path]:
        """Every file that is read; of a folder, its shards."""
        return [file for path in self.given for file in list_shards(path) or [path]]

    @property
    def given(self) -> list[Path]:
        """Files and folders, each once."""
        named = [self.sources] if isinstance(self.sources, Path) else self.sources.values()
        return list(dict.fromkeys(named))

    def path(self, split: Split) -> Path:
        """The file of a split; without one of its own, validation is a share of the training file."""
        if isinstance(self.sources, Path):
            return self.sources
        return self.sources.get(split) or self.sources["train"]

    @cached_property
    def without_test(self) -> PrepareSettings:
        return replace(self.settings, test_share=0.0)

    def splits(self, path: Path, id: str) -> list[Split]:
        """Those that a document of that file is in: one, unless a file was named for two."""
        if isinstance(self.sources, Path):
            return [split_of(id, self.settings)]
        named = [split for split in SPLITS if self.path(split) == path]
        if "valid" in self.sources:
            return named
        drawn = split_of(id, self.without_test)
        return [split for split in named if split in (drawn, "test")]

    def read(
        self, path: Path, work: Callable[[Iterable[Found]], Result], engine: EngineSettings
    ) -> Iterator[Part[Result]]:
        """Apply ``work`` to the documents of a file, a chunk at a time; results come in the file's order.

        Shards and JSON lines are parsed by the process that does the work. Other files are read and worked on
        here: handing their documents to another process would take as long as the work itself.
        """
        if shards := list_shards(path):
            yield from map_in_processes(shards, partial(_shard, source=self, path=path, work=work), engine)
            return
        if (self.format or guess_format(path)) == "jsonl":
            lines = chunked(byte_lines(path), BYTES, lambda line: len(line[1]))
            yield from map_in_processes(lines, partial(_parsed, source=self, path=path, work=work), engine)
            return
        skipped = Skipped()
        documents = read_documents(
            path, self.format, skipped if self.skip_bad else None, self.settings.slot_names
        )
        for chunk in chunked(documents, DOCUMENTS):
            yield _part(chunk, skipped, self, path, work)
            skipped.count = 0
        yield _part([], skipped, self, path, work)  # what was bad after the last document


def _shard(
    shard: Path, source: Source, path: Path, work: Callable[[Iterable[Found]], Result]
) -> Part[Result]:
    skipped = Skipped()
    skip_bad = skipped if source.skip_bad else None
    documents = read_documents(shard, source.format, skip_bad, source.settings.slot_names)
    return _part(documents, skipped, source, path, work)


def _parsed(
    lines: list[tuple[int, bytes]], source: Source, path: Path, work: Callable[[Iterable[Found]], Result]
) -> Part[Result]:
    skipped = Skipped()
    documents = parse_lines(
        path, lines, skipped if source.skip_bad else stop_at_first_error, source.settings.slot_names
    )
    return _part(documents, skipped, source, path, work)


def _part(
    documents: Iterable[Document],
    skipped: Skipped,
    source: Source,
    path: Path,
    work: Callable[[Iterable[Found]], Result],
) -> Part[Result]:
    read = 0

    def found() -> Iterator[Found]:
        nonlocal read
        for document in documents:
            read += 1
            for split in source.splits(path, document.id):
                if not source.settings.single_events:
                    yield split, document
                    continue
                for number, event in enumerate(document.events, start=1):
                    yield split, Document(f"{document.id}#{number}", (event,))

    result = work(found())
    return Part(read, skipped.count, result)
