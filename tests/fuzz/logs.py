"""Tables and logs that are damaged: read by their columns, and held against what other readers have."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq

from ssdvae.data.columns import XES, Columns
from ssdvae.data.readers import read_documents
from ssdvae.storyworld.tickets import generate_tickets, write_log
from tests.fuzz.damage import NASTY, bytes_changed, columns_changed, lines_changed
from tests.fuzz.kinds import Kind

TICKETS = Columns(
    case="ticket",
    head="action",
    time="when",
    arguments=("agent", "product", "amount"),
    label="stage",
    gaps=True,
    bins={"amount": (2.0, 5.0)},
)
BOM = b"\xef\xbb\xbf"

Row = dict[str, Any]


def log_kinds(folder: Path) -> list[Kind]:
    """The same tickets in every format that has rows."""
    table, log = folder / "damaged-log.csv", folder / "damaged-log.xes"
    for path in (table, log):
        write_log(path, generate_tickets(5, seed=2, known=0.5))
    with open(table, newline="") as file:
        rows = [{**row, "amount": str(n % 8)} for n, row in enumerate(csv.DictReader(file))]
    _write_text(table, rows, ",")
    tabs, lines, parquet = (folder / f"damaged-log.{kind}" for kind in ("tsv", "rows.jsonl", "parquet"))
    _write_text(tabs, rows, "\t")
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    pq.write_table(pa.Table.from_pylist(rows), parquet)
    text = (bytes_changed, cells_changed)
    return [
        _kind("log.csv", table, text, TICKETS, _csv_rows),
        _kind("log.tsv", tabs, text, TICKETS, _csv_rows),
        _kind("log.jsonl", lines, (lines_changed, bytes_changed), TICKETS, _json_rows),
        _kind("log.parquet", parquet, (bytes_changed, parquet_changed), TICKETS, _parquet_rows),
        _kind("log.xes", log, (bytes_changed, xml_changed), XES, _xes_rows),
    ]


def _write_text(path: Path, rows: list[Row], delimiter: str) -> None:
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)


def _kind(
    name: str, path: Path, damages: Any, columns: Columns, rows: Callable[[Path], Iterable[Row]]
) -> Kind:
    def read() -> list[Any]:
        return list(read_documents(path, columns=columns, strict=True))

    def holds(found: list[Any]) -> bool:
        """Each case has its events, in the order of their times where another reader understands them."""
        cases: dict[str, list[tuple[Any, str]]] = defaultdict(list)
        for row in rows(path):
            case, head = (_joined(_text(row[name])) for name in (columns.case, columns.head))
            cases[case].append((_time(row[columns.time or ""]), head))
        known = all(time is not None for events in cases.values() for time, _ in events)
        if known:
            cases = {case: sorted(events, key=lambda event: event[0]) for case, events in cases.items()}
        expected = {case: [head for _, head in events] for case, events in cases.items()}
        there = {
            _joined(document.id): [_joined(event.head) for event in document.events] for document in found
        }
        if not known:
            expected, there = (
                {case: sorted(heads) for case, heads in side.items()} for side in (expected, there)
            )
        return there == expected and len(there) == len(found)

    return Kind(name, path, damages, read, holds)


def _text(value: Any) -> str:
    if hasattr(value, "nanosecond"):  # of pandas; words and times have whole microseconds
        value = datetime(1970, 1, 1) + timedelta(microseconds=math.trunc(Fraction(value.value, 1000)))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _joined(case: str) -> str:
    return "_".join(case.split())


def _time(value: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(_text(value).strip())
    except ValueError:
        return None


# Other readers


def _csv_rows(path: Path) -> Iterable[Row]:
    text = io.StringIO(path.read_bytes().removeprefix(BOM).decode(), newline="")
    header = text.readline()
    delimiter = max(",\t;|", key=header.count)
    names = [name.strip() for name in next(csv.reader([header], delimiter=delimiter))]
    for cells in csv.reader(text, delimiter=delimiter):
        if any(cell.strip() for cell in cells):
            yield dict(zip(names, cells, strict=True))


def _json_rows(path: Path) -> Iterable[Row]:
    lines = path.read_bytes().removeprefix(BOM).decode().split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def _parquet_rows(path: Path) -> Iterable[Row]:
    wanted = [name for name in TICKETS.read if name in pq.read_schema(path).names]  # others may be damaged
    return pq.read_table(path, columns=wanted).to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types


def _xes_rows(path: Path) -> Iterable[Row]:
    """All at once, with the library of Python."""
    root = ElementTree.fromstring(path.read_bytes())

    def attributes(element: ElementTree.Element, before: str = "") -> Row:
        kinds = ("string", "date", "int", "float", "boolean", "id")
        there = [each for each in element if each.tag.rpartition("}")[2] in kinds]
        return {before + each.attrib["key"]: each.attrib["value"] for each in there}

    traces = [each for each in root if each.tag.rpartition("}")[2] == "trace"]
    for number, trace in enumerate(traces, start=1):
        of_trace = {"case:concept:name": f"trace-{number}", **attributes(trace, "case:")}
        for event in trace:
            if event.tag.rpartition("}")[2] == "event":
                yield {**of_trace, **attributes(event)}


# Damages of what stands in them


def cells_changed(content: bytes, rng: Random) -> bytes:
    """A cell of a table in text changed, a row doubled or dropped, or two rows exchanged."""
    delimiter = "\t" if content.split(b"\n")[0].count(b"\t") else ","
    rows = list(csv.reader(io.StringIO(content.decode(), newline=""), delimiter=delimiter))
    at, other = rng.randrange(len(rows)), rng.randrange(1, len(rows))
    match rng.randrange(6):
        case 0:
            rows.insert(at, rows[other])
        case 1:
            del rows[at]
        case 2:
            rows[at], rows[other] = rows[other], rows[at]
        case 3:
            rows[at] = rows[at][: rng.randrange(len(rows[at]))]
        case _:
            rows[at][rng.randrange(len(rows[at]))] = rng.choice(CELLS)
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


CELLS = (
    *(str(value) for value in NASTY),
    "2024-02-30", "2024-01-01T25:00", "2024-01-01T10:00+99:00", "2024-01-01T10:00Z", "9999-12-31T23:59:59",
    "0001-01-01", "20240101", "1e400", "-0", "1_000", " ", "\u2028", "a\nb", 'a"b', "a,b", "None", "nan",
    "²", "٣", "1700000000", "1700000000000", "00:00",
)  # fmt: skip
"""Values of a cell."""


def parquet_changed(content: bytes, rng: Random) -> bytes:
    """A cell, the type of a column, or the columns of a table changed, in a file that is well made."""
    table = pq.read_table(io.BytesIO(content))
    index = rng.randrange(table.num_columns)
    name, way = table.column_names[index], rng.random()
    if (changed := columns_changed(table, index, way, rng)) is not None:
        table = changed
    elif way < 0.4:
        kinds = (pa.int64(), pa.float32(), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.date32())
        kind = rng.choice((*kinds, pa.list_(pa.string()), pa.binary(), pa.decimal128(38, 3), pa.time64("us")))
        table = table.set_column(index, name, pa.nulls(len(table), kind))
        if rng.random() < 0.7 and pa.types.is_timestamp(kind):
            ticks = pa.array([rng.randrange(-(2**62), 2**62) for _ in range(len(table))], pa.int64())
            table = table.set_column(index, name, ticks.cast(kind))
    else:
        values = table.column(index).to_pylist()
        at = rng.randrange(len(values))
        values[at] = rng.choice((None, *CELLS)) if way < 0.8 else rng.choice((*range(3), 0.5))
        with contextlib.suppress(pa.ArrowException, UnicodeEncodeError):  # a column has one type
            table = table.set_column(index, name, pa.array(values, from_pandas=False))
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def xml_changed(content: bytes, rng: Random) -> bytes:
    """An element doubled, dropped, moved, renamed or with another value."""
    root = ElementTree.fromstring(content)
    parents = [each for each in root.iter() if len(each)]
    parent = rng.choice(parents)
    at = rng.randrange(len(parent))
    element = parent[at]
    match rng.randrange(6):
        case 0:
            parent.insert(rng.randrange(len(parent)), element)
        case 1:
            parent.remove(element)
        case 2:
            parent.remove(element)
            rng.choice(list(root.iter())).append(element)
        case 3:
            element.tag = rng.choice(("log", "trace", "event", "string", "list", "date", "container", "x"))
        case 4 if element.attrib:
            del element.attrib[rng.choice(list(element.attrib))]
        case _:
            element.attrib[rng.choice(("key", "value"))] = rng.choice(
                [cell for cell in CELLS if cell.isprintable()] + ["concept:name", "time:timestamp"]
            )
    return ElementTree.tostring(root)
