"""Tables that fit: the first of some layouts that is not wider than the terminal.

As it is; with the words of its heads below each other; turned on its side; with its texts broken between
words; and, if nothing else helps, as several tables one after another, each with the first column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

TableText = tuple[str, Sequence[str], Sequence[Sequence[str]]]
"""A title, a head, and lines; the first column has names."""

BORDER, BETWEEN = 1, 3
"""Columns of a terminal that a table takes beside its cells: at its left, and at the right of each cell."""

NARROW = 16
"""No text is made narrower than this for the sake of the others."""

FIGURE = re.compile(r"[\d–.,%±\s()-]*( MB)?")


def fitted(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, plain: bool = False
) -> Iterator[Table]:
    """The table, or several, no wider than ``width`` as long as no single word is; ``plain`` has no lines."""
    natural = [_longest(column) for column in _columns(head, rows)]
    heads_broken = [_longest([*name.split(), *cells]) for name, *cells in _columns(head, rows)]
    for widths in (natural, heads_broken):
        if _total(widths) <= width:
            yield _table(head, rows, widths, plain)
            return
    if rows and len(rows) < len(head):
        turned_head, *turned_rows = _columns(head, rows)
        turned = [_longest(column) for column in _columns(turned_head, turned_rows)]
        if _total(turned) <= width:
            yield _table(turned_head, turned_rows, turned, plain)
            return
    least = [min(wide, _least(column)) for wide, column in zip(natural, _columns(head, rows), strict=True)]
    for part in _parts(head, least, width):
        widths = _narrowed([natural[i] for i in part], [least[i] for i in part], width)
        yield _table([head[i] for i in part], [[row[i] for i in part] for row in rows], widths, plain)


def _columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[list[str]]:
    return [list(column) for column in zip(head, *rows, strict=True)]


def _longest(texts: Iterable[str]) -> int:
    return max(map(cell_len, texts), default=0)


def _total(widths: Sequence[int]) -> int:
    return BORDER + sum(width + BETWEEN for width in widths)


def _least(column: Sequence[str]) -> int:
    """How narrow a column may be: figures are never broken, and texts only between words."""
    name, *cells = column
    broken = [name, *cells] if not all(map(FIGURE.fullmatch, cells)) else [name]
    whole = [] if len(broken) > 1 else cells
    words = _longest(word for text in broken for word in text.split())
    return max(words, _longest(whole), NARROW if len(broken) > 1 else 0)


def _parts(head: Sequence[str], least: Sequence[int], width: int) -> Iterator[list[int]]:
    """Columns that stand side by side; the first one stands before all.

    A column without a name belongs to the one at its left.
    """
    units: list[list[int]] = []
    for column in range(1, len(head)):
        if head[column] or not units:
            units.append([column])
        else:
            units[-1].append(column)
    part = [0]
    for unit in units:
        if len(part) > 1 and _total([least[i] for i in (*part, *unit)]) > width:
            yield part
            part = [0]
        part += unit
    yield part


def _narrowed(natural: Sequence[int], least: Sequence[int], width: int) -> list[int]:
    """The natural widths, of which the widest gives way until all fit or none is left to give."""
    widths = list(natural)
    while _total(widths) > width:
        wide = [place for place, enough in enumerate(least) if widths[place] > enough]
        if not wide:
            break
        widths[max(wide, key=lambda place: widths[place])] -= 1
    return widths


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int], plain: bool) -> Table:
    shown = Table(box=None, padding=(0, 3, 0, 0)) if plain else Table()
    for (name, *cells), width in zip(_columns(head, rows), widths, strict=True):
        figures = any(cells) and all(map(FIGURE.fullmatch, cells))
        # As text: what stands in brackets may be a word of the data, and is no markup.
        shown.add_column(Text(name), width=width, overflow="fold", justify="right" if figures else "left")
    for row in rows:
        shown.add_row(*map(Text, row))
    return shown
