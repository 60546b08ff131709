"""Readers of documents. A new format is a function like the others and one line in each table."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Protocol

from ssdvae.data.columns import XES, Columns, columns_of
from ssdvae.data.events import SLOTS, Document, Slots
from ssdvae.data.options import ColumnOptions
from ssdvae.data.readers.jsonl import read_jsonl, write_jsonl
from ssdvae.data.readers.rows import column_names, has_rows, read_csv, read_parquet
from ssdvae.data.readers.tables import read_table
from ssdvae.data.readers.text import read_official
from ssdvae.data.shards import list_shards
from ssdvae.io.errors import DataError, Malformed, UserError, shorten_text
from ssdvae.io.files import AnyPath, Report, stop_at_first_error, translate_os_errors

__all__ = ["READERS", "Reader", "Report", "Skipped", "guess_format", "read_documents", "write_jsonl"]


class Reader(Protocol):
    """A function that yields the documents of a file, and reports the lines that it skips."""

    def __call__(self, path: Path, report: Report, slots: Slots) -> Iterator[Document]: ...


def read_xes(path: Path, report: Report, slots: Slots) -> Iterator[Document]:
    """Raise an error: a log can only be read by its columns."""
    raise UserError(
        f"{path} is a log, and it is not said which of its attributes make an event\n"
        "a model knows them that was trained on a corpus that `ssdvae prepare` made of a table or a log"
    )


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
    """A report that counts bad lines and keeps the first messages."""

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
    """Return the format of a file by the ending of its name."""
    with translate_os_errors(path, "read"):
        # A wrong path is the likelier mistake, so it is reported before an unknown ending.
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


def known_format(path: AnyPath, format: str | None) -> str:
    """Return the given format, or that of the name of the file."""
    choice = format or guess_format(path)
    if choice not in READERS:
        raise UserError(f"no format {choice!r}; there are: {', '.join(READERS)}")
    return choice


def table_format(path: Path, format: str | None) -> str:
    """Return the format of a table in one file, or in the shards of a folder."""
    if not path.is_dir():
        return known_format(path, format)
    formats = {known_format(shard, format): shard.name for shard in list_shards(path)}
    if not formats:
        raise UserError(
            f"{path} is a folder without shards (part-00000.csv, …; or .tsv, .jsonl, .parquet)\n"
            "a table whose columns are named is one file, or a folder of such"
        )
    if len(formats) > 1:
        raise UserError(f"{path} has shards of different kinds: {', '.join(formats.values())}")
    return next(iter(formats))


def find_columns(options: ColumnOptions, path: Path, format: str | None) -> Columns | None:
    """Return the columns that the options name, for a file of this kind; None if they name none."""
    if path.is_dir() and not options.named_columns:
        return None
    choice = table_format(path, format)
    first = next(iter(list_shards(path)), path)
    there = column_names(first, choice) if choice in ("csv", "parquet") else []
    try:
        columns = columns_of(options, log=choice == "xes" or XES.case in there)
    except Malformed as error:
        names = ", ".join(column_names(first, choice)) if has_rows(first, choice) else "none"
        raise UserError(f"{error}\nthe columns of {first} are: {shorten_text(names, 400)}") from error
    if columns is not None and not has_rows(first, choice):
        flags = ", ".join(f"--{name}" for name in options.named_columns)
        raise UserError(f"{first} has documents, not the rows of a table: leave out {flags}")
    if columns is not None and there and columns.arguments == XES.arguments and options.arguments is None:
        # A log need not say who did something.
        kept = tuple(name for name in columns.arguments if name in there)
        columns = columns.model_copy(update={"arguments": kept})
    return columns


def read_documents(
    path: AnyPath,
    format: str | None = None,
    skip_bad: Report | None = None,
    slots: Slots = SLOTS,
    columns: Columns | None = None,
    strict: bool = False,
) -> Iterator[Document]:
    """Yield the documents of a file, or of the shards of a folder.

    The first bad line raises an error, unless ``skip_bad`` counts them. A table or a log is read by its
    ``columns``. If ``strict``, all of them must exist and the shards are one table, in which a case may go on
    from one shard to another; otherwise they are those of a model, and each shard is read by itself.
    """
    report = stop_at_first_error if skip_bad is None else skip_bad
    files = list_shards(Path(path)) or [Path(path)]
    choices = [known_format(file, format) for file in files]
    if strict and columns is not None and has_rows(files[0], choices[0]):
        return read_table(Path(path), choices[0], columns, report, strict)

    def read(file: Path, choice: str) -> Iterator[Document]:
        if columns is not None and has_rows(file, choice):
            return read_table(file, choice, columns, report)
        return READERS[choice](file, report, slots)

    return chain.from_iterable(map(read, files, choices))
