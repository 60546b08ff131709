"""Pages from data: the blocks that sections are made of, and the templates that lay them out.

A block is a dataclass without markup; ``templates/blocks.html.j2`` has a macro for each. A plain string is a
paragraph, or a cell of a table. The report and the explorer use the same blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any, Literal

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from ssdvae import __version__
from ssdvae.data.events import MISSING
from ssdvae.report import charts
from ssdvae.report.charts import Drawing


@dataclass(frozen=True)
class Text:
    """A paragraph: a ``note`` in small letters, or the reason why something is ``absent``."""

    text: str
    style: Literal["note", "absent"]


@dataclass(frozen=True)
class Heading:
    """A heading inside a section."""

    text: str
    level: int = 3


@dataclass(frozen=True)
class Name:
    """A name, perhaps with its probability, and with a link to more about it."""

    text: str
    share: float | None = None
    href: str | None = None


@dataclass(frozen=True)
class Chips:
    """Names in a row."""

    names: Sequence[Name]


@dataclass(frozen=True)
class Cell:
    """A cell of a table that is more than its text."""

    text: str
    element: Literal["", "em", "mark"] = ""
    title: str = ""  # shown when it is pointed at
    small: str = ""  # below the text
    paper: str = ""  # the published figure, below the text


AnyCell = str | Cell | Name | Chips


@dataclass(frozen=True)
class Table:
    """A table whose first column names the row; after ``names`` columns come figures.

    One with an ``id`` is long: it scrolls in a box of its own, and its rows are searched by typing.
    """

    caption: str
    head: Sequence[str | Cell]
    rows: Sequence[Sequence[AnyCell]]
    names: int = 1
    id: str | None = None


@dataclass(frozen=True)
class Steps:
    """Chains of names, one in a line: a picture in words, for a screen on which it would be too small."""

    title: str | None
    lines: Sequence[Sequence[Name]]


@dataclass(frozen=True)
class Figure:
    """A picture with its title, what to see in it, and its numbers as a table."""

    title: str
    caption: str
    drawing: Drawing
    # What the colours are; buttons show and hide a curve, filters what is rare.
    legend: Literal["", "buttons", "keys", "filters"] = ""
    table: Table | None = None
    steps: Sequence[Steps] = ()


@dataclass(frozen=True)
class Tile:
    """A headline figure, and lines beside it."""

    title: str
    value: str
    lines: Sequence[str]


@dataclass(frozen=True)
class Tiles:
    """The figures that one looks for first."""

    tiles: Sequence[Tile]


@dataclass(frozen=True)
class Details:
    """Blocks that are shown on a click."""

    summary: str | Heading
    blocks: Sequence[Any]
    open: bool = False
    style: str = ""


@dataclass(frozen=True)
class Section:
    """A part of a page with a name; ``short`` is its name where there is little room."""

    id: str
    title: str
    blocks: Sequence[Any]
    short: str | None = None


@dataclass(frozen=True)
class Terms:
    """The names of documents, frames and heads on a page."""

    document: str
    frame: str
    heads: str

    @property
    def frames(self) -> str:
        """The title of what shows the frames."""
        return f"{self.frame.capitalize()}s"


TEXT, LOG = Terms("document", "frame", "words"), Terms("case", "stage", "activities")


def absent(reason: str) -> Text:
    """Return the sentence that stands in the place of what cannot be shown."""
    return Text(reason, "absent")


def word_text(word: str) -> str:
    """Return a word of an event, or a dash for an empty slot."""
    return "–" if word == MISSING else word


def breakable(name: str) -> Markup:
    """Return a name that may go on in the next line after an underscore."""
    return Markup("_<wbr>").join(map(escape, name.split("_")))


TEMPLATES = Environment(
    loader=PackageLoader(__package__),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
TEMPLATES.filters |= {
    "percent": charts.percent,
    "breakable": breakable,
    "shown": word_text,
    "cut": charts.cut,
    "px": lambda x: f"{x:.1f}".removesuffix(".0"),  # a picture needs no more than a tenth of a pixel
    "kind": lambda block: type(block).__name__,
}
TEMPLATES.globals |= {"version": __version__, "WIDTH": charts.WIDTH, "MISSING": MISSING}


def render(template: str, **data: Any) -> str:
    """Return the page that a template makes of some data."""
    return TEMPLATES.get_template(f"{template}.j2").render(data)


def asset(name: str, package: str = __package__) -> str:
    """Return a style sheet or a script of a package."""
    return (resources.files(package) / name).read_text(encoding="utf-8")


def style() -> str:
    """Return the style sheet: of the pictures, which may stand alone, and of all around them."""
    return asset("picture.css") + asset("style.css")
