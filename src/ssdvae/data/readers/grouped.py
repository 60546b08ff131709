"""Rows to documents: grouped by case and sorted by time, in a memory that does not grow with the file.

Rows are read once, with every mistake told by its line, and given to DuckDB, which sorts them, and puts on
disk what is more than `SSDVAE_SORT_MEMORY`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdvae.data.columns import Bins, Columns, no_column, number_of, quantile_edges, slot_name, word_of
from ssdvae.data.events import Document, Event
from ssdvae.data.readers.rows import TABLES, Cells, column_names, table_rows
from ssdvae.data.shards import list_shards
from ssdvae.data.times import Clock, gap_word
from ssdvae.errors import DataError, Malformed, UserError, shorten
from ssdvae.files import Report
from ssdvae.limits import LINE, PIECE, SORTED, Held, shown
from ssdvae.progress import SILENT, Progress

ROWS = 2**15
"""Rows that are put into the database at once."""

EVENTS = """
SELECT * EXCLUDE (number, counted, first)
FROM (SELECT *, min(number) OVER (PARTITION BY "case") AS first FROM rows)
ORDER BY first, time, number
"""
# Cases come in the order in which they begin in the file, and events of the same time as they stand there.


@contextmanager
def grouped(
    path: Path,
    format: str,
    columns: Columns,
    report: Report,
    *,
    binned: frozenset[str] = frozenset(),
    counts: Callable[[str], bool] = lambda case: True,
    asked: bool = True,
    folder: Path | None = None,
    progress: Progress = SILENT,
) -> Iterator[Grouped]:
    """The rows of a file, or of all shards of a folder together, read and ready to be sorted.

    ``asked`` is whether somebody asked for these columns, or they are those of an older table. ``binned`` are
    the columns of numbers, and ``counts`` says of which cases their quantiles are taken. What does
    not fit into memory is put into ``folder``, or where temporary files are.
    """
    with (
        tempfile.TemporaryDirectory(prefix="ssdvae-", dir=folder) as temporary,
        _translated(path, temporary),
        _database(Path(temporary)) as database,
    ):
        found = Grouped(database, path, columns, binned | columns.bins.keys(), counts, TABLES[format])
        files = list_shards(path) or [path]
        # A line of JSON may leave out what it has not, and so may all lines of a shard.
        anywhere = asked and format == "jsonl" and len(files) > 1
        with progress.task("reading rows") as advance:
            for file in files:
                rows = table_rows(file, format, columns, report, asked and not anywhere)
                for count in found.fill(file, rows, report):
                    advance(count)
        if anywhere and (absent := found.empty()):
            raise no_column(path, None, absent[0], column_names(files[0], format))
        yield found


@contextmanager
def _database(folder: Path) -> Iterator[Any]:
    import duckdb  # only who reads tables waits for it

    limits: Any = {
        "memory_limit": f"{SORTED.bytes // 1024} KiB",
        "temp_directory": str(folder / "spilled"),
        "preserve_insertion_order": False,
        # As few as on any machine: each thread takes memory of its own.
        "threads": 2,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    with duckdb.connect(":memory:", config=limits) as database:
        yield database


@contextmanager
def _translated(path: Path, folder: str) -> Iterator[None]:
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


class Grouped:
    """The rows of a table in a database, one file after another. ``unit`` is what a place is called."""

    def __init__(
        self,
        database: Any,
        path: Path,
        columns: Columns,
        binned: frozenset[str],
        counts: Callable[[str], bool],
        unit: str,
    ) -> None:
        self.database, self.path, self.columns, self.binned = database, path, columns, binned
        self.unit, self.clock, self.before = unit, Clock(unit), 0
        self.counts = lru_cache(2**12)(counts)
        slots = [(f"slot{place}", name) for place, name in enumerate((columns.head, *columns.arguments))]
        self.names = {**dict(slots), **({} if columns.label is None else {"label": columns.label})}
        self.numbers = {name: column for column, name in slots if name in binned}
        kinds = {column: pa.float64() if name in binned else pa.string() for column, name in slots}
        known = {"number": pa.int64(), "case": pa.string(), "counted": pa.bool_(), "time": pa.int64()}
        self.schema = pa.schema({**known, **kinds, "label": pa.string()})
        database.register("empty", self.schema.empty_table())
        database.execute("CREATE TABLE rows AS FROM empty")

    def fill(self, file: Path, rows: Iterator[tuple[int, Cells]], report: Report) -> Iterator[int]:
        """Put all rows of a file in; yields how many at a time. Bad ones are told to ``report``."""
        parse = self._parser(file)
        waiting: list[tuple[Any, ...]] = []
        number = 0
        for number, cells in rows:
            try:
                waiting.append((self.before + number, *parse(number, cells)))
            except Malformed as error:
                report(DataError(file, number, error.found, error.expected, unit=self.unit))
            if len(waiting) == ROWS:
                self._insert(waiting)
                yield len(waiting)
                waiting.clear()
        if waiting:
            self._insert(waiting)
            yield len(waiting)
        self.before += number

    def _insert(self, rows: list[tuple[Any, ...]]) -> None:
        values = zip(*rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(values, self.schema, strict=True)]
        self.database.register("waiting", pa.table(arrays, schema=self.schema))
        self.database.execute("INSERT INTO rows FROM waiting")
        self.database.unregister("waiting")

    def _parser(self, file: Path) -> Callable[[int, Cells], tuple[Any, ...]]:
        """From the cells of a row to what is put in; ``Malformed`` for a bad row."""
        columns, clock = self.columns, self.clock
        where = "" if file == self.path else f" of {file.name}"
        place = {name: number for number, name in enumerate(columns.read)}
        case_at, head_at = place[columns.case], place[columns.head]
        time_at = None if columns.time is None else place[columns.time]
        label_at = None if columns.label is None else place[columns.label]
        kinds = [
            (place[name], number_of if name in self.binned else word_of, name) for name in columns.arguments
        ]

        def parse(number: int, cells: Cells) -> tuple[Any, ...]:
            case = cells[case_at]
            case = case.strip() if isinstance(case, str) else word_of(case, columns.case)
            if not case:
                raise Malformed(f"no case under {columns.case!r}", "the case that the row belongs to")
            head = word_of(cells[head_at], columns.head)
            if head is None:
                raise Malformed(f"nothing under {columns.head!r}", "what happened, since it is the --head")
            time = None if time_at is None else clock.read(cells[time_at], number, where)
            arguments = [kind(cells[at], name) for at, kind, name in kinds]
            label = None if label_at is None else word_of(cells[label_at], columns.label or "")
            return (case, self.counts(case), time, head, *arguments, label)

        return parse

    def empty(self) -> list[str]:
        """The columns of which no row has anything."""
        counts = ", ".join(f"count({column})" for column in self.names)
        [found] = self.database.execute(f"SELECT {counts} FROM rows").fetchall()
        return [name for name, count in zip(self.names.values(), found, strict=True) if not count]

    def edges(self, bins: Mapping[str, int]) -> dict[str, tuple[float, ...]]:
        """The edges of so many bins of each column, by quantiles of the rows that count."""
        found = {}
        for name, count in bins.items():
            column = self.numbers[name]
            there = f"FROM rows WHERE counted AND {column} IS NOT NULL"
            [(total,)] = self.database.execute(f"SELECT count(*) {there}").fetchall()
            ordered = f"SELECT {column}, count(*) {there} GROUP BY {column} ORDER BY {column}"
            found[name] = quantile_edges(self._stream(ordered), total, count)
        return found

    def documents(self, columns: Columns) -> Iterator[Document]:
        """The events of each case; ``columns`` have the edges of the bins."""
        names = (columns.head, *columns.arguments)
        bins = [Bins(slot_name(name), columns.bins[name]) if name in self.numbers else None for name in names]
        held = Held(self.path, "", LINE)
        for case, rows in groupby(self._stream(EVENTS), itemgetter(0)):
            events: list[Event] = []
            before = None
            held.begin(None)
            for _, time, *cells, label in rows:
                words = [
                    cell if some is None or cell is None else some[cell]
                    for some, cell in zip(bins, cells, strict=True)
                ]
                if columns.gaps:
                    words.append(None if before is None else gap_word(time - before))
                    before = time
                try:
                    held.add_size(sum([PIECE + len(word or "") for word in words]))
                except DataError as error:
                    found = f"{shorten(case)}, a case of more than {shown(held.most)}"
                    hint = f"is {columns.case!r} the column of the case? {error.hint.partition('? ')[2]}"
                    raise DataError(self.path, None, found, error.expected, hint) from error
                events.append(Event(*words, frame=label))
            yield Document(case, tuple(events))

    def _stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        """The rows of a result, of which no more than a batch is held."""
        for batch in self.database.sql(query).to_arrow_reader(ROWS):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def read_table(
    path: Path, format: str, columns: Columns, report: Report, asked: bool = False
) -> Iterator[Document]:
    """The documents of a table, by columns that somebody asked for, or by those of an older one."""
    with grouped(path, format, columns, report, asked=asked) as rows:
        yield from rows.documents(columns)
