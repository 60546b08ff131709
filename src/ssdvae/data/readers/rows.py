"""The rows of a table or a log in any format, as the cells of the columns that are wanted."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from ssdvae.data.columns import XES, Columns, no_column, places_of
from ssdvae.data.readers.jsonl import filled_lines, json_value
from ssdvae.data.readers.tabular import csv_cells, parquet_cells
from ssdvae.data.readers.xes import xes_events
from ssdvae.errors import DataError, Malformed, shorten
from ssdvae.files import Report

TABLES = {"csv": "line", "parquet": "row", "jsonl": "line", "xes": "line"}
"""The formats that have rows, and what a place in them is called."""

MOST_NAMES = 100
"""Keys that are remembered, to be told to who asks for one that is not there."""

Cells = tuple[Any, ...]


def table_rows(
    path: Path, format: str, columns: Columns, report: Report, asked: bool
) -> Iterator[tuple[int, Cells]]:
    """The place of each row, and its cells in the order of ``columns.read``.

    If somebody ``asked`` for these columns, all must be there. If they are those of an older table, there may
    be no labels, and where each row has names of its own, no argument either.
    """
    if format in ("csv", "parquet"):
        return _placed(path, format, columns, report, None if asked else columns.label)
    records = _json_records(path, report) if format == "jsonl" else xes_events(path, report)
    optional = XES.arguments if asked else (*columns.arguments, columns.label)
    return _picked(path, records, columns, optional)


def column_names(path: Path, format: str) -> list[str]:
    """What the columns are called: those of the header, or of the first row."""
    if format == "csv":
        return [name.strip() for name in next(csv_cells(path, _pass_over), (0, []))[1]]
    if format == "parquet":
        return list(next(parquet_cells(path, lambda names: [])))
    records = _json_records if format == "jsonl" else xes_events
    return list(next(records(path, _pass_over), (0, {}))[1])


def _pass_over(error: DataError) -> None:
    """Whoever reads the whole file will tell it."""


def has_rows(path: Path, format: str) -> bool:
    """Whether a file is a table: lines of JSON may be rows, but also documents, which have events."""
    return format in TABLES and not (format == "jsonl" and "events" in column_names(path, format))


def _placed(
    path: Path, format: str, columns: Columns, report: Report, optional: str | None
) -> Iterator[tuple[int, Cells]]:
    """The rows of a table with a header."""
    wanted = columns.read
    if format == "csv":
        table = csv_cells(path, report)
        _, names = next(table, (0, []))
        places = places_of(path, wanted, names, optional)
        if -1 not in places and len(places) > 1:
            pick = itemgetter(*places)
            yield from ((number, pick(cells)) for number, cells in table)
        else:
            for number, cells in table:
                yield number, tuple([cells[place] if place >= 0 else None for place in places])
        return
    found: list[int] = []

    def choose(names: list[str]) -> list[int]:
        found.extend(places_of(path, wanted, names, optional))
        return [place for place in found if place >= 0]

    rows = parquet_cells(path, choose)
    next(rows)  # the names
    for place, row in enumerate(rows, start=1):
        yield place, (*row, None) if -1 in found else tuple(row)  # only the label, which comes last


def _picked(
    path: Path,
    records: Iterator[tuple[int, Mapping[str, Any]]],
    columns: Columns,
    optional: Collection[str | None],
) -> Iterator[tuple[int, Cells]]:
    """The rows of a file in which each row has names of its own."""
    wanted, needed = columns.read, {columns.case, columns.head, columns.time}
    unseen = {name for name in wanted if name not in optional}
    there: dict[str, None] = {}
    number = 0
    for number, record in records:
        if len(there) < MOST_NAMES:
            there.update(dict.fromkeys(record))
        cells = tuple([record[name] if name in record else _inner(record, name) for name in wanted])
        if unseen:
            unseen -= {name for name, cell in zip(wanted, cells, strict=True) if cell is not None}
            if absent := [name for name in wanted if name in unseen & needed and name not in record]:
                raise no_column(path, number, absent[0], list(there))
        yield number, cells
    if number and (absent := [name for name in wanted if name in unseen and name not in there]):
        raise no_column(path, None, absent[0], list(there))


def _inner(record: Mapping[str, Any], name: str) -> Any:
    """What stands under ``outer.inner``."""
    value: Any = record
    for key in name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def _json_records(path: Path, report: Report) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, text in filled_lines(path, report):
        try:
            record = json_value(text)
            if not isinstance(record, dict):
                raise Malformed(shorten(record), 'a row such as {"case": "a", "action": "opened"}')
        except Malformed as error:
            report(DataError(path, number, error.found, error.expected))
        else:
            yield number, record
