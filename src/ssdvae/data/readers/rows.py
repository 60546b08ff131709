"""The rows of tables and logs: CSV (also with tabs, semicolons or bars), Parquet, JSON lines and XES."""

from __future__ import annotations

import contextlib
import csv
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

from ssdvae.data.columns import XES, Columns, find_places, no_column
from ssdvae.data.events import SLOTS, Document, Event, Slots, document_from_record
from ssdvae.data.readers.jsonl import filled_lines, parse_json
from ssdvae.data.readers.xes import xes_events
from ssdvae.io.errors import DataError, Malformed, UserError, shorten, shorten_text
from ssdvae.io.files import DAMAGE, Report, open_bytes, text_lines
from ssdvae.io.limits import LINE, SizeCounter

TABLES = {"csv": "line", "parquet": "row", "jsonl": "line", "xes": "line"}
"""The formats that have rows, and what a row is called in messages."""

# The accepted names of a column, the most telling first: a table that has both "document" and "id" is
# likely to number its events with the latter.
DOCUMENT = ("document", "doc", "doc_id", "document_id", "id")
SYNONYMS = {"subj": "subject", "obj": "object", "mod": "modifier"}

MOST_NAMES = 100
"""Keys of JSON lines that are remembered for messages."""

Names = Mapping[str, Sequence[str]]
"""The accepted names of each column."""

Row = tuple[int, dict[str, Any]]
"""The number of a row in its file, and its cells by column."""

Cells = tuple[Any, ...]


# Tables with a header


def table_cells(
    path: Path, format: str, report: Report, choose: Callable[[list[str]], Sequence[int]]
) -> Iterator[tuple[int, Cells]]:
    """Yield the number of each row of a CSV or Parquet table, and its cells in some columns.

    ``choose`` returns the indices of the columns of a header; at −1, the cells are None.
    """
    if format == "parquet":
        yield from enumerate(_parquet_cells(path, choose), start=1)
        return
    table = csv_cells(path, report)
    places = choose(next(table, (0, []))[1])
    if -1 not in places and len(places) > 1:
        pick = itemgetter(*places)
        yield from ((number, pick(cells)) for number, cells in table)
    else:
        for number, cells in table:
            yield number, tuple([cells[place] if place >= 0 else None for place in places])


def csv_cells(path: Path, report: Report) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row, the header first, with the line on which the row begins.

    A cell in quotes may go on over many lines. So a quote mark that is never closed swallows good rows;
    these are given back and read again, and one bad line costs one line.
    """
    lines, row = text_lines(path, report), SizeCounter(path, "a row", LINE)
    given_back: deque[tuple[int, str]] = deque()
    taken: list[tuple[int, str]] = []

    def take() -> str:
        line = given_back.popleft() if given_back else next(lines, None)
        if line is None:
            return ""
        if not taken:
            row.begin(line[0])
        taken.append(line)
        return row.add(line[1])

    delimiter, width = "", 0
    while text := take():
        if not text.strip():
            taken.clear()
            continue
        # The header has no text but the names of the columns, so what it has most of separates them.
        delimiter = delimiter or max(",\t;|", key=text.count)
        problem = ""
        try:
            if '"' not in text and "\r" not in text.rstrip("\r\n"):
                cells = text.rstrip("\r\n").split(delimiter)  # as most rows, and five times as fast
            else:
                given_back.appendleft(taken.pop())
                cells = next(csv.reader(iter(take, ""), delimiter=delimiter, strict=True))
        except csv.Error as error:
            problem, expected = f"a row that cannot be parted into cells ({error})", "a row of a CSV table"
        else:
            width = width or len(cells)
            if len(cells) != width:
                problem, expected = f"{len(cells)} cells", f"{width}, as in the header"
        number = taken[0][0]
        if problem:
            given_back.extendleft(reversed(taken[1:]))
            hint = 'a cell with a comma or a quote mark is put in quotes, with each " in it written twice'
            report(DataError(path, number, problem, expected, hint))
        else:
            yield number, cells
        taken.clear()


def _parquet_cells(path: Path, choose: Callable[[list[str]], Sequence[int]]) -> Iterator[Cells]:
    import pyarrow  # only who reads Parquet waits for its library to load
    from pyarrow import parquet

    with open_bytes(path) as file:
        try:
            table = parquet.ParquetFile(file)
            names = table.schema_arrow.names
            places = choose(names)
            wanted = [names[place] for place in places if place >= 0]
            read, promised = 0, table.metadata.num_rows
            for batch in table.iter_batches(batch_size=8192, columns=wanted):
                nothing = [None] * batch.num_rows
                columns = [_values(batch.column(names[at])) if at >= 0 else nothing for at in places]
                yield from zip(*columns, strict=True)
                read += batch.num_rows
            if wanted and read != promised:  # a damaged column may end early without an error
                raise ValueError(f"{read:,} rows where it says {promised:,}")
        except UserError:
            raise
        except (pyarrow.ArrowException, OSError, KeyError, MemoryError, *DAMAGE) as error:
            found = f"data that cannot be read ({shorten_text(str(error))})"
            hint = "the file is cut short, damaged or misnamed: make or download it again"
            raise DataError(path, None, found, "a Parquet file", hint) from error


def _values(column: Any) -> list[Any]:
    """Return the cells of a Parquet column; one that is not UTF-8 stays bytes, which are refused later."""
    import pyarrow

    if pyarrow.types.is_timestamp(column.type):  # Python has no nanoseconds, and not all time zones
        kind = pyarrow.timestamp("us", column.type.tz and "UTC")
        column = column.cast(kind, safe=False)
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast(pyarrow.binary()).to_pylist()
        for place, value in enumerate(values):
            with contextlib.suppress(UnicodeDecodeError):
                values[place] = value.decode() if value is not None else None
    return values


def _parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns; none if the file cannot be read: its rows will raise the error."""
    import pyarrow
    from pyarrow import parquet

    with contextlib.suppress(pyarrow.ArrowException, OSError, ValueError), open_bytes(path) as file:
        names: list[str] = parquet.ParquetFile(file).schema_arrow.names
        return names
    return []


# Tables whose columns have known names: one row per event


def named_rows(path: Path, format: str, report: Report, names: Names, needed: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table as mappings. Only the ``needed`` columns must exist; in JSON lines, none."""
    if format == "jsonl":
        for number, record in json_records(path, report):
            there = {column: next((n for n in known if n in record), "") for column, known in names.items()}
            yield number, {column: record.get(name) for column, name in there.items()}
        return
    found: dict[str, int] = {}

    def choose(header: list[str]) -> list[int]:
        found.update(_find_names(path, header, names, needed))
        return list(found.values())

    for number, cells in table_cells(path, format, report, choose):
        yield number, dict(zip(found, cells, strict=True))


def _find_names(path: Path, header: Sequence[str], names: Names, needed: Sequence[str]) -> dict[str, int]:
    plain = [name.strip().lower() for name in header]
    places = {}
    for column, accepted in names.items():
        for name in map(str.lower, accepted):
            if plain.count(name) > 1:
                raise DataError(path, None, f"{plain.count(name)} columns {name!r}", "each column once")
            if name in plain:
                places[column] = plain.index(name)
                break
    if any(column not in places for column in needed):
        hint = f"the columns may be: {', '.join(names)}; all but {' and '.join(needed)} may be left out"
        if "document" in needed:
            hint += "\nor say what yours are: --case, --head, --arguments, --time, --label (docs/logs.md)"
        found = f"the columns {', '.join(header[:20])}" if header else "no columns"
        raise DataError(path, None, shorten_text(found), f"the columns {' and '.join(needed)}", hint)
    return places


def read_csv(path: Path, report: Report, slots: Slots = SLOTS) -> Iterator[Document]:
    """Yield the documents of a table in text."""
    return _read_events(path, "csv", report, slots)


def read_parquet(path: Path, report: Report, slots: Slots = SLOTS) -> Iterator[Document]:
    """Yield the documents of a Parquet table; a row is an event or, if it has a list of them, a document."""
    if "events" in _parquet_columns(path):
        return _read_whole_documents(path, report, slots)
    return _read_events(path, "parquet", report, slots)


def _read_events(path: Path, format: str, report: Report, slots: Slots) -> Iterator[Document]:
    """Yield the documents of a table of events. The rows of a document must stand together.

    Holds one document and the ids so far. A document keeps its other events if a bad row is skipped.
    """
    words = {slot: (slot, SYNONYMS[slot]) if slot in SYNONYMS else (slot,) for slot in slots}
    names = {"document": tuple(name for name in DOCUMENT if name not in slots), **words, "frame": ("frame",)}
    seen: set[str] = set()
    current: str | None = None
    events: list[Event] = []
    for number, cells in named_rows(path, format, report, names, ("document", slots[0])):
        name = cells.pop("document")
        try:
            row = document_from_record({"id": None if name == "" else name, "events": [cells]}, slots)
        except Malformed as error:
            report(DataError(path, number, error.found, error.expected, unit=TABLES[format]))
            continue
        if row.id != current:
            if current is not None and events:
                yield Document(current, tuple(events))
            current, events = row.id, []
            again = row.id in seen
            seen.add(row.id)
            if again:
                found = f"document {shorten(row.id)} again, after another document"
                hint = "sort the table by document, keeping the order of the events"
                expected = "the rows of a document to stand together"
                report(DataError(path, number, found, expected, hint, unit=TABLES[format]))
        if not again:
            events.extend(row.events)
    if current is not None and events:
        yield Document(current, tuple(events))


def _read_whole_documents(path: Path, report: Report, slots: Slots) -> Iterator[Document]:
    """Yield the documents of a Parquet table with one in each row, such as our own shards."""
    names = {"id": ("id",), "events": ("events",)}
    for number, cells in named_rows(path, "parquet", report, names, tuple(names)):
        try:
            document = document_from_record(_drop_nulls(cells), slots)
        except Malformed as error:
            report(DataError(path, number, error.found, error.expected, unit="row"))
        else:
            yield document


def _drop_nulls(value: Any) -> Any:
    """Return a cell without the fields that only other rows have."""
    if isinstance(value, dict):
        return {key: _drop_nulls(inner) for key, inner in value.items() if inner is not None}
    return [_drop_nulls(inner) for inner in value] if isinstance(value, list) else value


# Tables and logs whose columns the user names


def column_rows(
    path: Path, format: str, columns: Columns, report: Report, strict: bool
) -> Iterator[tuple[int, Cells]]:
    """Yield the number of each row, and its cells in the order of ``columns.read``.

    If ``strict``, all columns must exist. Otherwise there may be no labels and, where each row has its own
    names, no arguments: they are the columns of the table that a model was trained on.
    """
    if format in ("csv", "parquet"):
        choose = lambda names: find_places(path, columns.read, names, columns.optional(strict))  # noqa: E731
        return table_cells(path, format, report, choose)
    records = json_records(path, report) if format == "jsonl" else xes_events(path, report)
    arguments = XES.arguments if strict else columns.arguments
    return _record_rows(path, records, columns, {*arguments, *columns.optional(strict)})


def _record_rows(
    path: Path,
    records: Iterator[tuple[int, Mapping[str, Any]]],
    columns: Columns,
    optional: Collection[str | None],
) -> Iterator[tuple[int, Cells]]:
    """Yield the rows of a file in which each row has its own names."""
    wanted, needed = columns.read, {columns.case, columns.head, columns.time}
    unseen = {name for name in wanted if name not in optional}
    there: dict[str, None] = {}
    number = 0
    for number, record in records:
        if len(there) < MOST_NAMES:
            there.update(dict.fromkeys(record))
        cells = tuple([record[name] if name in record else _nested(record, name) for name in wanted])
        if unseen:
            unseen -= {name for name, cell in zip(wanted, cells, strict=True) if cell is not None}
            if absent := [name for name in wanted if name in unseen & needed and name not in record]:
                raise no_column(path, number, absent[0], list(there))
        yield number, cells
    if number and (absent := [name for name in wanted if name in unseen and name not in there]):
        raise no_column(path, None, absent[0], list(there))


def _nested(record: Mapping[str, Any], name: str) -> Any:
    """Return the value of ``outer.inner``."""
    value: Any = record
    for key in name.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def json_records(path: Path, report: Report) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the number and the mapping of each line of JSON."""
    for number, text in filled_lines(path, report):
        try:
            record = parse_json(text)
            if not isinstance(record, dict):
                raise Malformed(shorten(record), 'a row such as {"case": "a", "action": "opened"}')
        except Malformed as error:
            report(DataError(path, number, error.found, error.expected))
        else:
            yield number, record


def column_names(path: Path, format: str) -> list[str]:
    """Return the names of the columns, of the header or of the first row."""
    ignore: Report = lambda error: None  # noqa: E731  # whoever reads the whole file reports it
    if format == "csv":
        return [name.strip() for name in next(csv_cells(path, ignore), (0, []))[1]]
    if format == "parquet":
        return _parquet_columns(path)
    records = json_records if format == "jsonl" else xes_events
    return list(next(records(path, ignore), (0, {}))[1])


def has_rows(path: Path, format: str) -> bool:
    """Tell whether a file is a table: lines of JSON may be rows, or documents, which have events."""
    return format in TABLES and not (format == "jsonl" and "events" in column_names(path, format))
