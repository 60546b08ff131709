"""Answers in files and in tables: JSON lines, CSV, Parquet, or a DataFrame of pandas.

JSON lines have one record for each document, as deep as it needs to be; CSV, Parquet and DataFrames have flat
rows, one for each event or candidate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ssdvae.data.events import Event, Slots
from ssdvae.data.readers.jsonl import write_records
from ssdvae.errors import UserError
from ssdvae.files import AnyPath, atomic_write

if TYPE_CHECKING:
    import pandas

CHUNK = 10_000
"""Rows that are written at once, and that tell the types of the columns."""

TABLES = {".csv": pyarrow.csv.CSVWriter, ".parquet": pq.ParquetWriter}
"""What writes a table, by the ending of its name."""

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
    if not str(path).endswith((".jsonl", ".jsonl.gz", *TABLES)):
        raise UserError(
            f"found {path} as the file to write, expected a name in .jsonl, .jsonl.gz, .csv or .parquet"
        )
    return Path(path)


def write_answers(path: AnyPath, answers: Answer | Iterable[Answer]) -> int:
    """Write answers one by one; returns how many. If anything fails, an old file stays as it was."""
    out, answers = answer_file(path), _each(answers)
    if out.suffix not in TABLES:
        return write_records(out, (answer.to_record() for answer in answers))
    count = 0

    def rows() -> Iterator[Row]:
        nonlocal count
        for answer in answers:
            count += 1
            yield from answer.rows()

    with atomic_write(out) as temporary:
        _write_table(temporary, rows(), TABLES[out.suffix])
    return count


def _each(answers: Answer | Iterable[Answer]) -> Iterable[Answer]:
    return [answers] if isinstance(answers, Answer) else answers


def _write_table(path: Path, rows: Iterator[Row], kind: Any) -> None:
    first = list(islice(rows, CHUNK))
    schema = _schema(first)
    if kind is pyarrow.csv.CSVWriter and any(pa.types.is_nested(field.type) for field in schema):
        raise UserError("vectors do not fit into a table of CSV\nwrite .parquet or .jsonl instead")
    with kind(path, schema) as writer:
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


def to_dataframe(answers: Answer | Iterable[Answer]) -> pandas.DataFrame:
    """The rows of answers as a DataFrame of pandas."""
    try:
        import pandas
    except ImportError as error:
        raise UserError("a DataFrame needs pandas, which is not installed\npip install pandas") from error
    return pandas.DataFrame.from_records([row for answer in _each(answers) for row in answer.rows()])
