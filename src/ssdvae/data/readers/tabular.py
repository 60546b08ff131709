"""Tables with one row per event: CSV (also with tabs or semicolons) and Parquet.

The rows of a document stand together, in the order of the text. A bad row that is passed over is as if it
were not there: the document keeps its other events.
"""

from __future__ import annotations

import contextlib
import csv
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ssdvae.data.events import SLOTS, Document, Event, Slots, document_from_record
from ssdvae.errors import DataError, Malformed, UserError, shorten, shorten_text
from ssdvae.files import DAMAGE, Report, open_bytes, text_lines
from ssdvae.limits import LINE, Held

# What a column means, and the names it may have, the most telling first: a table that has both
# "document" and "id" is likely to number its events with the latter.
DOCUMENT = ("document", "doc", "doc_id", "document_id", "id")
ALSO = {"subj": "subject", "obj": "object", "mod": "modifier"}

Columns = Mapping[str, Sequence[str]]
"""What each column means, and the names it may have."""

Row = tuple[int, dict[str, Any]]
"""The place of a row in its file, and its cells by their meaning."""


def read_csv(path: Path, report: Report, slots: Slots = SLOTS) -> Iterator[Document]:
    """The documents of a table in text."""
    rows = csv_rows(path, report, event_columns(slots), ("document", slots[0]))
    return _documents(path, rows, report, slots, unit="line")


def read_parquet(path: Path, report: Report, slots: Slots = SLOTS) -> Iterator[Document]:
    """The documents of a table in Parquet; a row is an event or, where it has a list of them, a document."""
    if "events" in _parquet_columns(path):
        return _whole_documents(path, report, slots)
    rows = parquet_rows(path, event_columns(slots), ("document", slots[0]))
    return _documents(path, rows, report, slots, unit="row")


def event_columns(slots: Slots) -> Columns:
    """The columns of a table of events: one a slot."""
    words = {slot: (slot, ALSO[slot]) if slot in ALSO else (slot,) for slot in slots}
    return {"document": tuple(name for name in DOCUMENT if name not in slots), **words, "frame": ("frame",)}


def _documents(
    path: Path, rows: Iterator[Row], report: Report, slots: Slots, unit: str
) -> Iterator[Document]:
    """Put the events of each document together, holding one document and the ids seen so far."""
    seen: set[str] = set()
    current: str | None = None
    events: list[Event] = []
    for number, cells in rows:
        name = cells.pop("document")
        try:
            row = document_from_record({"id": None if name == "" else name, "events": [cells]}, slots)
        except Malformed as error:
            report(DataError(path, number, error.found, error.expected, unit=unit))
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
                report(DataError(path, number, found, expected, hint, unit=unit))
        if not again:
            events.extend(row.events)
    if current is not None and events:
        yield Document(current, tuple(events))


def _places(path: Path, names: Sequence[str], columns: Columns, needed: Sequence[str]) -> dict[str, int]:
    """Where each column stands in the table."""
    plain = [name.strip().lower() for name in names]
    places = {}
    for meaning, accepted in columns.items():
        for name in map(str.lower, accepted):
            if plain.count(name) > 1:
                raise DataError(path, None, f"{plain.count(name)} columns {name!r}", "each column once")
            if name in plain:
                places[meaning] = plain.index(name)
                break
    if any(meaning not in places for meaning in needed):
        hint = f"the columns may be: {', '.join(columns)}; all but {' and '.join(needed)} may be left out"
        if "document" in needed:
            hint += "\nor say what yours are: --case, --head, --arguments, --time, --label (docs/logs.md)"
        found = f"the columns {', '.join(names[:20])}" if names else "no columns"
        raise DataError(path, None, shorten_text(found), f"the columns {' and '.join(needed)}", hint)
    return places


def csv_rows(path: Path, report: Report, columns: Columns, needed: Sequence[str]) -> Iterator[Row]:
    """The rows of a table in text."""
    table = csv_cells(path, report)
    _, names = next(table, (0, []))
    places = _places(path, names, columns, needed)
    for number, cells in table:
        yield number, {meaning: cells[place] for meaning, place in places.items()}


def csv_cells(path: Path, report: Report) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row, the header first, with the line on which the row begins.

    A cell in quotes may go on over many lines. So a quote mark that is never closed swallows good rows;
    these are given back and read again, and one bad line costs one line.
    """
    lines, row = text_lines(path, report), Held(path, "a row", LINE)
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
        # The header has no text but the names of the columns, so what it has most of is what parts them.
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


def _parquet_columns(path: Path) -> list[str]:
    """The names of the columns; none where the file cannot be read, which is told when its rows are."""
    import pyarrow
    from pyarrow import parquet

    with contextlib.suppress(pyarrow.ArrowException, OSError, ValueError), open_bytes(path) as file:
        names: list[str] = parquet.ParquetFile(file).schema_arrow.names
        return names
    return []


def _whole_documents(path: Path, report: Report, slots: Slots) -> Iterator[Document]:
    """The documents of a table that has one in each row, as our own shards have."""
    columns = {"id": ("id",), "events": ("events",)}
    for number, cells in parquet_rows(path, columns, tuple(columns)):
        try:
            document = document_from_record(_without_nothing(cells), slots)
        except Malformed as error:
            report(DataError(path, number, error.found, error.expected, unit="row"))
        else:
            yield document


def _without_nothing(value: Any) -> Any:
    """A cell without the fields that only other rows have."""
    if isinstance(value, dict):
        return {key: _without_nothing(inner) for key, inner in value.items() if inner is not None}
    return [_without_nothing(inner) for inner in value] if isinstance(value, list) else value


def parquet_rows(path: Path, columns: Columns, needed: Sequence[str]) -> Iterator[Row]:
    """The rows of a table in Parquet."""
    places: dict[str, int] = {}

    def choose(names: list[str]) -> list[int]:
        places.update(_places(path, names, columns, needed))
        return list(places.values())

    cells = parquet_cells(path, choose)
    next(cells)
    for number, row in enumerate(cells, start=1):
        yield number, dict(zip(places, row, strict=True))


def parquet_cells(path: Path, choose: Callable[[list[str]], Sequence[int]]) -> Iterator[Sequence[Any]]:
    """The names of the columns, then the cells of each row in the columns that are chosen by their places."""
    # Only who reads Parquet waits for its library to load.
    import pyarrow
    from pyarrow import parquet

    with open_bytes(path) as file:
        try:
            table = parquet.ParquetFile(file)
            names = table.schema_arrow.names
            yield names
            wanted = [names[place] for place in choose(names)]
            read, promised = 0, table.metadata.num_rows
            for batch in table.iter_batches(batch_size=8192, columns=wanted):
                yield from zip(*[_values(batch.column(name)) for name in wanted], strict=True)
                read += batch.num_rows
            if wanted and read != promised:  # a damaged column may end early, and nobody complains
                raise ValueError(f"{read:,} rows where it says {promised:,}")
        except UserError:
            raise
        except (pyarrow.ArrowException, OSError, KeyError, MemoryError, *DAMAGE) as error:
            found = f"data that cannot be read ({shorten_text(str(error))})"
            hint = "the file is cut short, damaged or misnamed: make or download it again"
            raise DataError(path, None, found, "a Parquet file", hint) from error


def _values(column: Any) -> list[Any]:
    """The cells of a Parquet column; one that is not UTF-8 stays bytes, which are not taken for a word."""
    import pyarrow

    if pyarrow.types.is_timestamp(column.type):  # Python has no nanoseconds, and not all time zones
        kind = pyarrow.timestamp("us", column.type.tz and "UTC")
        column = column.cast(kind, safe=False)
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast(pyarrow.binary()).to_pylist()
        for place, value in enumerate(values):
            try:
                values[place] = value.decode() if value is not None else None
            except UnicodeDecodeError:
                continue
    return values
