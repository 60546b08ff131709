"""A table as Markdown, LaTeX, CSV and HTML: the same numbers in all of them."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssdvae.evaluation.published import PublishedFigure
from ssdvae.evaluation.summary import Spread
from ssdvae.evaluation.tasks.base import Figure
from ssdvae.markdown import markdown_table, markdown_text
from ssdvae.report.html import Html, join, tag
from ssdvae.report.html import table as html_table

NOTHING = "–"


@dataclass(frozen=True)
class Number:
    """A mean and its deviation, and how they are written."""

    mean: float
    deviation: float | None
    text: str
    mark: str = ""  # is in the text, too

    @classmethod
    def from_spread(cls, spread: Spread | None, figure: Figure) -> Number | None:
        return (
            None if spread is None else cls(spread.mean, spread.deviation, spread.text(figure), spread.mark)
        )

    @classmethod
    def from_paper(cls, figure: PublishedFigure | None) -> Number | None:
        """As printed: the paper's digits, not ours."""
        return None if figure is None else cls(figure.mean, figure.deviation, figure.printed)


Row = tuple[tuple[str, ...], tuple[Number | None, ...]]
"""The names of a row, and its numbers."""


@dataclass(frozen=True)
class Table:
    name: str  # of its files
    title: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str

    @property
    def names(self) -> int:
        """Columns before the numbers."""
        return len(self.rows[0][0]) if self.rows else len(self.head)

    def lines(self) -> list[list[str]]:
        """The rows as they are read."""
        return [
            [*names, *(NOTHING if number is None else number.text for number in numbers)]
            for names, numbers in self.rows
        ]


def markdown(table: Table) -> str:
    body = markdown_table(table.head, table.lines())
    return f"**{markdown_text(table.title)}**\n\n{body}\n\n{markdown_text(table.note)}\n"


def _folded(text: str) -> str:
    return " ".join(text.split())


def csv_text(table: Table) -> str:
    """A number has two columns, with all digits; an empty one was not measured, or has no deviation.

    Figures of which some are marked have a third column, with the mark.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    figures = table.head[table.names :]
    columns = zip(*(values for _, values in table.rows), strict=True)
    marked = [any(value is not None and value.mark for value in column) for column in columns]
    heads = [*table.head[: table.names]]
    for figure, mark in zip(figures, marked, strict=True):
        heads += [figure, f"{figure}, deviation", *([f"{figure}, mark"] if mark else [])]
    writer.writerow(map(_folded, heads))
    for names, values in table.rows:
        numbers: list[str] = []
        for value, mark in zip(values, marked, strict=True):
            pair = (None, None) if value is None else (value.mean, value.deviation)
            numbers += ["" if x is None else repr(float(x)) for x in pair]
            numbers += ["" if value is None else value.mark.strip()] if mark else []
        # A name has one line in any format; a lone carriage return would break the file.
        writer.writerow([*map(_folded, names), *numbers])
    return out.getvalue()


LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    **{character: f"{{{character}}}" for character in "[]*"},  # at the start of a line, of a line's options
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "±": r"$\pm$",
    "†": r"\dag{}",
    "ε": r"$\varepsilon$",
    "–": "--",
    "“": "``",
    "”": "''",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
}
"""What LaTeX would take for something else, or does not know."""

WIDE = 40
"""A column with a longer text than this is broken into lines."""


def _in_latex(text: str) -> str:
    return "".join(LATEX.get(character) or _plain(character) for character in _folded(text))


def _plain(character: str) -> str:
    """An ASCII character as it is; any other by the letter it is made of, where there is one."""
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain if plain.isalnum() or character.isascii() else "?"


def latex(table: Table) -> str:
    """A floating table that needs no package."""
    lines = table.lines()
    columns = [
        "p{0.35\\linewidth}"
        if any(len(line[place]) > WIDE for line in lines)
        else ("l" if place < table.names else "r")
        for place in range(len(table.head))
    ]
    body = [" & ".join(map(_in_latex, line)) + r" \\" for line in [list(table.head), *lines]]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{{''.join(columns)}}}",
            r"\hline",
            body[0],
            r"\hline",
            *body[1:],
            r"\hline",
            r"\end{tabular}",
            rf"\caption{{{_in_latex(f'{table.title}. {table.note}')}}}",
            rf"\label{{tab:{table.name}}}",
            r"\end{table}",
            "",
        ]
    )


def html(table: Table) -> Html:
    shown = html_table(table.title, table.head, table.lines(), names=table.names)
    return join([shown, tag("p", table.note, class_="note")])


FORMATS: Sequence[tuple[str, Callable[[Table], str]]] = (
    (".md", markdown),
    (".tex", latex),
    (".csv", csv_text),
)
"""The files of a table."""
