"""Documents from files. A new format is a function like the others and one line in each table."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Protocol

from ssdvae.data.columns import Columns
from ssdvae.data.events import SLOTS, Document, Slots
from ssdvae.data.readers.grouped import read_table
from ssdvae.data.readers.jsonl import read_jsonl, write_jsonl
from ssdvae.data.readers.official import read_official
from ssdvae.data.readers.rows import has_rows
from ssdvae.data.readers.tabular import read_csv, read_parquet
from ssdvae.data.shards import list_shards
from ssdvae.errors import DataError, UserError
from ssdvae.files import AnyPath, Report, stop_at_first_error, translate_os_errors

__all__ = ["READERS", "Reader", "Report", "Skipped", "guess_format", "read_documents", "write_jsonl"]


class Reader(Protocol):
    """Documents one after another; whatever can be passed over is told to ``report`` first."""

    def __call__(self, path: Path, report: Report, slots: Slots) -> Iterator[Document]: ...


def read_xes(path: Path, report: Report, slots: Slots) -> Iterator[Document]:
    """A log is read by its columns."""
    raise UserError(f"{path} is a log, and it is not said which of its attributes make an event\n{PREPARED}")


PREPARED = "a model knows them that was trained on a corpus that `ssdvae prepare` made of a table or a log"

READERS: dict[str, Reader] = {
    "jsonl": read_jsonl,
    "csv": read_csv,
    "parquet": read_parquet,
    "official": read_official,
    "xes": read_xes,
}

ENDINGS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    "_tup.txt": "official",
    ".xes": "xes",
}


@dataclass
class Skipped:
    """A report that counts what is bad and goes on."""

    count: int = 0
    messages: list[str] = field(default_factory=list)
    keep: int = 5
    unit: str = "line"

    def __call__(self, error: DataError) -> None:
        self.add(str(error))

    def add(self, message: str) -> None:
        self.count += 1
        if len(self.messages) < self.keep:
            self.messages.append(message)

    def __str__(self) -> str:
        if not self.count:
            return f"no bad {self.unit}s"
        if self.count == 1:
            return f"skipped 1 bad {self.unit}: {self.messages[0]}"
        return f"skipped {self.count} bad {self.unit}s, the first: {self.messages[0]}"


def guess_format(path: AnyPath) -> str:
    """The name in ``READERS`` that goes with the name of a file."""
    with translate_os_errors(path, "read"):
        # A wrong path is the likelier mistake, so it is told before a strange name is.
        os.stat(path)
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    name = Path(path).name.lower().removesuffix(".gz")
    for ending, choice in ENDINGS.items():
        if name.endswith(ending):
            return choice
    known = ", ".join(ENDINGS)
    raise UserError(
        f"cannot tell the format of {path} from its name, which ends in none of {known}\n"
        f"name the format; there are: {', '.join(READERS)}"
    )


def read_documents(
    path: AnyPath,
    format: str | None = None,
    skip_bad: Report | None = None,
    slots: Slots = SLOTS,
    columns: Columns | None = None,
    asked: bool = False,
) -> Iterator[Document]:
    """The documents of a file, or of the shards of a folder.

    The first bad line raises, unless ``skip_bad`` is there to count them. A table or a log is read by its
    ``columns`` if they are known: those that somebody ``asked`` for, which must all be there, or those of the
    table that a model was trained on. In the shards of a table that is asked for, a case may go on from one
    to another; otherwise each is read by itself.
    """
    report = stop_at_first_error if skip_bad is None else skip_bad
    files = list_shards(Path(path)) or [Path(path)]
    choices = [known_format(file, format) for file in files]
    if asked and columns is not None and has_rows(files[0], choices[0]):
        return read_table(Path(path), choices[0], columns, report, asked)

    def read(file: Path, choice: str) -> Iterator[Document]:
        if columns is not None and has_rows(file, choice):
            return read_table(file, choice, columns, report)
        return READERS[choice](file, report, slots)

    return chain.from_iterable(map(read, files, choices))


def known_format(path: AnyPath, format: str | None) -> str:
    """The format that is asked for, or that the name of the file tells."""
    choice = format or guess_format(path)
    if choice not in READERS:
        raise UserError(f"no format {choice!r}; there are: {', '.join(READERS)}")
    return choice
