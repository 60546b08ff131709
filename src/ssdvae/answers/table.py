"""Answers in files and in tables: JSON lines, Parquet, or a DataFrame of pandas.

JSON lines have one record for each document, as deep as it needs to be; Parquet and DataFrames have flat
rows, one for each event or candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.parquet as pq

from ssdvae.data.events import Event, Slots
from ssdvae.data.readers.jsonl import write_records
from ssdvae.errors import UserError
from ssdvae.files import AnyPath, atomic_write

if TYPE_CHECKING:
    import pandas

CHUNK = 10_000
"""Rows that are written at once, and that tell the types of the columns."""

Row = dict[str, Any]


def slot_columns(event: Event, slots: Slots) -> Row:
    """The words of an event, each in the column of its slot."""
    return dict(zip(slots, event.values(len(slots)), strict=True))


@runtime_checkable
class Answer(Protocol):
    """What a question gives for each document."""

    def to_record(self) -> dict[str, Any]: ...

    def rows(self) -> Iterator[Row]: ...


def answer_file(path: AnyPath) -> Path:
    """A file whose name says how it is written."""
    if not str(path).endswith((".jsonl", ".jsonl.gz", ".parquet")):
        raise UserError(
            f"found {path} as the file to write, expected a name in .jsonl, .jsonl.gz or .parquet"
        )
    return Path(path)


def write_answers(path: AnyPath, answers: Iterable[Answer]) -> int:
    """Write answers one by one; returns how many. If anything fails, an old file stays as it was."""
    out = answer_file(path)
    if out.suffix != ".parquet":
        return write_records(out, (answer.to_record() for answer in answers))
    count = 0

    def rows() -> Iterator[Row]:
        nonlocal count
        for answer in answers:
            count += 1
            yield from answer.rows()

    with atomic_write(out) as temporary:
        _write_parquet(temporary, rows())
    return count


def _write_parquet(path: Path, rows: Iterator[Row]) -> None:
    first = list(islice(rows, CHUNK))
    schema = _schema(first)
    with pq.ParquetWriter(path, schema) as writer:
        for part in chain([first], _parts(rows)):
            writer.write_table(pa.Table.from_pylist(part, schema))


def _parts(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while part := list(islice(rows, CHUNK)):
        yield part


def _schema(rows: list[Row]) -> pa.Schema:
    """Columns that have no value in the first rows are those of words and names."""
    found = pa.Table.from_pylist(rows).schema
    fields = [pa.field(f.name, pa.string() if pa.types.is_null(f.type) else f.type) for f in found]
    return pa.schema(fields)


def to_dataframe(answers: Iterable[Answer]) -> pandas.DataFrame:
    """The rows of answers as a DataFrame of pandas."""
    try:
        import pandas
    except ImportError as error:
        raise UserError("a DataFrame needs pandas, which is not installed\npip install pandas") from error
    return pandas.DataFrame.from_records([row for answer in answers for row in answer.rows()])
