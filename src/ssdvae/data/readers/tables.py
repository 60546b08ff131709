"""Documents from the rows of a table or a log, grouped by case and sorted by time.

Rows are read once, so that an error names its line, and inserted into DuckDB. It sorts and counts them, with
at most `SSDVAE_SORT_MEMORY` bytes of memory and the rest on disk. Times are parsed while rows are read, not
in SQL: the first time fixes the kind of the others, and an error names its line.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdvae.data.columns import (
    TRANSITION,
    Bins,
    Clock,
    Columns,
    case_name,
    gap_word,
    no_column,
    number_of,
    slot_name,
    word_of,
)
from ssdvae.data.events import Document, Event
from ssdvae.data.process import Process, read_process
from ssdvae.data.readers.rows import TABLES, Cells, column_names, column_rows
from ssdvae.data.shards import list_shards
from ssdvae.io.errors import DataError, Malformed, UserError, shorten, shorten_text
from ssdvae.io.files import Report
from ssdvae.io.limits import LINE, SORTED, STRING_OVERHEAD, SizeCounter, format_bytes
from ssdvae.io.progress import SILENT, Progress

log = logging.getLogger("ssdvae")

ROWS = 2**15
"""Rows that are inserted at once."""

EVENTS = """
SELECT * EXCLUDE (number, counted, first)
FROM (SELECT *, min(number) OVER (PARTITION BY "case") AS first FROM rows)
ORDER BY first, time, number
"""
# Cases in the order of their first rows; events of the same time in the order of the file.

EDGES = """
SELECT value
FROM (
    SELECT value, (sum(count) OVER (ORDER BY value) - count) * {bins} // sum(count) OVER () AS bin
    FROM (
        SELECT {column} AS value, count(*) AS count
        FROM rows WHERE counted AND {column} IS NOT NULL GROUP BY {column}
    )
)
QUALIFY bin > lag(bin) OVER (ORDER BY value)
ORDER BY value
"""
# The least values that at least k/bins of all are below, k = 1, 2, …; equal values stay together.


def read_table(
    path: Path, format: str, columns: Columns, report: Report, strict: bool = False
) -> Iterator[Document]:
    """Yield the documents of a table, or of all shards of a folder; if ``strict``, all columns must exist."""
    with sort_rows(path, format, columns, report, strict=strict) as rows:
        yield from rows.documents(columns)


@contextmanager
def sort_rows(
    path: Path,
    format: str,
    columns: Columns,
    report: Report,
    *,
    binned: frozenset[str] = frozenset(),
    in_training: Callable[[str], bool] = lambda case: True,
    strict: bool = True,
    folder: Path | None = None,
    progress: Progress = SILENT,
) -> Iterator[SortedRows]:
    """Read the rows of a file, or of all shards of a folder together, into a temporary database.

    ``binned`` are columns of numbers; their quantiles are those of the cases ``in_training``. Rows that do
    not fit into memory are written to ``folder``, by default that of temporary files.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ssdvae-", dir=folder) as temporary,
        _translate_errors(path, temporary),
        _database(Path(temporary)) as database,
    ):
        found = SortedRows(database, path, columns, binned | columns.bins.keys(), in_training, TABLES[format])
        files = list_shards(path) or [path]
        # A line of JSON may leave out columns without a value, and so may all lines of a shard.
        anywhere = strict and format == "jsonl" and len(files) > 1
        with progress.task("reading rows") as advance:
            for file in files:
                rows = column_rows(file, format, columns, report, strict and not anywhere)
                for count in found.insert(file, rows, report):
                    advance(count)
        if anywhere and (absent := found.empty_columns()):
            raise no_column(path, None, absent[0], column_names(files[0], format))
        if columns.lifecycle is None and len(found.transitions) > 1:
            names = shorten_text(", ".join(sorted(found.transitions)))
            log.warning(
                f"{path}: events of {len(found.transitions)} lifecycle transitions ({names}) are kept alike; "
                "--lifecycle complete keeps those that complete an activity, separate tells them apart"
            )
        yield found


def find_process(path: Path, files: Sequence[Path], folder: Path) -> Process:
    """Return the process of the rows that were exported to files; ``path`` is named in errors."""
    with _translate_errors(path, str(folder)), _database(folder) as database:
        return read_process(database, files)


@contextmanager
def _database(folder: Path) -> Iterator[Any]:
    import duckdb  # only who reads tables waits for it

    limits: Any = {
        "memory_limit": f"{SORTED.bytes // 1024} KiB",
        "temp_directory": str(folder / "spilled"),
        "preserve_insertion_order": False,
        "threads": 2,  # each takes memory of its own
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    with duckdb.connect(":memory:", config=limits) as database:
        yield database


@contextmanager
def _translate_errors(path: Path, folder: str) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise UserError(
            f"{path}: its rows cannot be sorted within {SORTED.bytes:,} bytes\n"
            f"give them more: {SORTED.doubled}"
        ) from error
    except duckdb.IOException as error:
        raise UserError(
            f"{path}: its rows cannot be sorted in {folder}: {str(error).splitlines()[0]}\n"
            "is the disk full? TMPDIR names another place"
        ) from error


class SortedRows:
    """The rows of a table in a database. ``unit`` is what a row is called in messages."""

    def __init__(
        self,
        database: Any,
        path: Path,
        columns: Columns,
        binned: frozenset[str],
        in_training: Callable[[str], bool],
        unit: str,
    ) -> None:
        self.database, self.path, self.columns, self.binned = database, path, columns, binned
        self.unit, self.clock, self.before = unit, Clock(unit), 0
        self.transitions: set[str] = set()
        self.in_training = lru_cache(2**12)(in_training)
        slots = [(f"slot{place}", name) for place, name in enumerate((columns.head, *columns.arguments))]
        self.names = {**dict(slots), **({} if columns.label is None else {"label": columns.label})}
        self.numbers = {name: column for column, name in slots if name in binned}
        kinds = {column: pa.float64() if name in binned else pa.string() for column, name in slots}
        known = {"number": pa.int64(), "case": pa.string(), "counted": pa.bool_(), "time": pa.int64()}
        self.schema = pa.schema({**known, **kinds, "label": pa.string()})
        database.register("empty", self.schema.empty_table())
        database.execute("CREATE TABLE rows AS FROM empty")

    def insert(self, file: Path, rows: Iterator[tuple[int, Cells]], report: Report) -> Iterator[int]:
        """Insert the rows of a file and yield how many at a time. Bad ones are reported."""
        parse = self._parser(file)
        waiting: list[tuple[Any, ...]] = []
        number = 0
        for number, cells in rows:
            try:
                if (row := parse(number, cells)) is not None:
                    waiting.append((self.before + number, *row))
            except Malformed as error:
                report(DataError(file, number, error.found, error.expected, unit=self.unit))
            if len(waiting) == ROWS:
                yield self._insert(waiting)
                waiting.clear()
        if waiting:
            yield self._insert(waiting)
        self.before += number

    def _insert(self, rows: list[tuple[Any, ...]]) -> int:
        values = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(values, self.schema, strict=True)]
        self.database.register("waiting", pa.table(arrays, schema=self.schema))
        self.database.execute("INSERT INTO rows FROM waiting")
        self.database.unregister("waiting")
        return len(rows)

    def _parser(self, file: Path) -> Callable[[int, Cells], tuple[Any, ...] | None]:
        """Return a function from the cells of a row to the values that are inserted; None leaves it out."""
        columns, clock = self.columns, self.clock
        where = "" if file == self.path else f" of {file.name}"
        place = {name: number for number, name in enumerate(columns.read)}
        case_at, head_at = place[columns.case], place[columns.head]
        time_at = None if columns.time is None else place[columns.time]
        label_at = None if columns.label is None else place[columns.label]
        kinds = [
            (place[name], number_of if name in self.binned else word_of, name) for name in columns.arguments
        ]

        step_at = place[TRANSITION] if columns.has_transitions else None

        def parse(number: int, cells: Cells) -> tuple[Any, ...] | None:
            case = case_name(cells[case_at], columns.case)
            if case is None:
                raise Malformed(f"no case under {columns.case!r}", "the case that the row belongs to")
            head = word_of(cells[head_at], columns.head)
            if head is None:
                raise Malformed(f"nothing under {columns.head!r}", "what happened, since it is the --head")
            step = None if step_at is None else word_of(cells[step_at], TRANSITION)
            if step is not None:
                self.transitions.add(step)
                if columns.lifecycle == "complete" and step.lower() != "complete":
                    return None
                head = f"{head}+{step}" if columns.lifecycle == "separate" else head
            time = None if time_at is None else clock.read(cells[time_at], number, where)
            arguments = [kind(cells[at], name) for at, kind, name in kinds]
            label = None if label_at is None else word_of(cells[label_at], columns.label or "")
            return (case, self.in_training(case), time, head, *arguments, label)

        return parse

    def empty_columns(self) -> list[str]:
        """Return the columns without any value."""
        counts = ", ".join(f"count({column})" for column in self.names)
        [found] = self.database.execute(f"SELECT {counts} FROM rows").fetchall()
        return [name for name, count in zip(self.names.values(), found, strict=True) if not count]

    def export(self, file: Path) -> None:
        """Write case, time, order and activity of all rows to a Parquet file, for ``read_process``."""
        kept = self.database.sql('SELECT "case", time, number, slot0 AS activity FROM rows')
        kept.write_parquet(str(file))

    def edges(self, bins: Mapping[str, int]) -> dict[str, tuple[float, ...]]:
        """Return the inner edges of the bins of each column: quantiles of the cases in training."""
        return {
            name: tuple(edge for (edge,) in self._stream(EDGES.format(bins=count, column=self.numbers[name])))
            for name, count in bins.items()
        }

    def documents(self, columns: Columns) -> Iterator[Document]:
        """Yield the document of each case; ``columns`` have the edges of the bins."""
        names = (columns.head, *columns.arguments)
        bins = [Bins(slot_name(name), columns.bins[name]) if name in self.numbers else None for name in names]
        held = SizeCounter(self.path, "", LINE)
        for case, rows in groupby(self._stream(EVENTS), itemgetter(0)):
            events: list[Event] = []
            before = None
            held.begin(None)
            for _, time, *cells, label in rows:
                words = [
                    cell if edges is None or cell is None else edges[cell]
                    for edges, cell in zip(bins, cells, strict=True)
                ]
                if columns.gaps:
                    words.append(None if before is None else gap_word(time - before))
                    before = time
                try:
                    held.add_size(sum([STRING_OVERHEAD + len(word or "") for word in words]))
                except DataError as error:
                    found = f"{shorten(case)}, a case of more than {format_bytes(held.most)}"
                    hint = f"is {columns.case!r} the column of the case? {error.hint.partition('? ')[2]}"
                    raise DataError(self.path, None, found, error.expected, hint) from error
                events.append(Event(*words, frame=label, time=None if time is None else time / 10**6))
            yield Document(case, tuple(events))

    def _stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a result, a batch at a time."""
        for batch in self.database.sql(query).to_arrow_reader(ROWS):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
