"""Messages on standard error, results on standard output, in tables that fit the terminal."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ssdvae.io.progress import console

WIDE = 160
"""Columns of what is piped into a file, which has no width of its own."""

TableText = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A title, a head, and rows; the first column has names."""

NUMBER = re.compile(r"[\d–.,%±\s()-]*( MB)?")


def say(message: str) -> None:
    """Print a message for the person at the terminal."""
    console().print(message, markup=False, soft_wrap=True)


Column = tuple[str, str | Callable[[Any], str]]
"""A head, and the text of a cell: a function of the record, or a format of its fields.

Fields of a mapping are ``{count:.1f}``, those of an object ``{0.count:.1f}``."""


def table_of(title: str, records: Iterable[Any], *columns: Column) -> TableText:
    """Return a table with a row for each record."""

    def cell(record: Any, form: str | Callable[[Any], str]) -> str:
        if isinstance(form, str):
            return form.format_map(record) if isinstance(record, Mapping) else form.format(record)
        return form(record)

    rows = [[cell(record, form) for _, form in columns] for record in records]
    return title, [head for head, _ in columns], rows


class _Lines(logging.Handler):
    """Shows what the library logs, as it is."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


@contextmanager
def messages() -> Iterator[None]:
    """Show what the library has to say while a command runs."""
    log, lines = logging.getLogger("ssdvae"), _Lines()
    level = log.level
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(level)


def output(wide: int = WIDE) -> Console:
    """Return standard output, as wide as the terminal or as COLUMNS says."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if known else wide)


def show(tables: Iterable[TableText], on: Console | None = None, plain: bool = False) -> None:
    """Print tables, each laid out so that it fits."""
    out = on or output()
    for title, head, rows in tables:
        out.print(Text(title, style="italic"))
        for table in fitted(head, rows, out.width, plain):
            out.print(table)


def fitted(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, plain: bool = False
) -> list[Table]:
    """Return the table, or several, no wider than ``width`` unless a word is; ``plain`` has no lines."""
    columns = [list(column) for column in zip(head, *rows, strict=True)]
    if _total(map(_narrowest, columns)) <= width:
        return [_table(columns, width, plain)]
    turned = [list(column) for column in zip(*columns, strict=True)]
    if 1 < len(turned) < len(columns) and _total(map(_longest, turned)) <= width:
        return [_table(turned, width, plain)]
    return [_table(part, width, plain) for part in _parts(columns, width)]


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _total(widths: Iterable[int]) -> int:
    return 1 + sum(width + 3 for width in widths)  # with the lines and spaces between columns


def _is_number(cells: Sequence[str]) -> bool:
    return all(map(NUMBER.fullmatch, cells))


def _narrowest(column: Sequence[str]) -> int:
    """Return the width that a column needs: numbers are never broken, texts only between words."""
    cells = column[1:]
    words = [word for text in column for word in text.split()]
    return max(_longest(words), _longest(cells) if _is_number(cells) else 0)


def _parts(columns: Sequence[list[str]], width: int) -> Iterator[list[list[str]]]:
    """Yield groups of columns that fit side by side, each after the first column.

    A column without a name belongs to the one at its left.
    """
    units: list[list[list[str]]] = []
    for column in columns[1:]:
        if column[0] or not units:
            units.append([column])
        else:
            units[-1].append(column)
    part = [columns[0]]
    for unit in units:
        if len(part) > 1 and _total(map(_narrowest, [*part, *unit])) > width:
            yield part
            part = [columns[0]]
        part += unit
    yield part


def _table(columns: Sequence[list[str]], width: int, plain: bool) -> Table:
    """Return a table whose widest columns give way until it fits."""
    table = Table(box=None, padding=(0, 3, 0, 0)) if plain else Table()
    least, natural = [*map(_narrowest, columns)], [*map(_longest, columns)]
    widths = natural
    for most in range(width, 0, -1):
        if _total(widths) <= width:
            break
        widths = [max(low, min(high, most)) for low, high in zip(least, natural, strict=True)]
    for (name, *cells), cell_width in zip(columns, widths, strict=True):
        numbers = any(cells) and _is_number(cells)
        # As text: words of the data may stand in brackets and are no markup.
        table.add_column(
            Text(name), width=cell_width, overflow="fold", justify="right" if numbers else "left"
        )
    for row in zip(*(cells for _, *cells in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def chance(p: float) -> str:
    """Return a probability in per cent, with more digits where it is small."""
    return f"{p:.1%}" if p >= 0.001 else f"{p:.1e}"
