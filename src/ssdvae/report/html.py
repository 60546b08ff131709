"""HTML and SVG as nested calls: text is escaped unless it was made here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

VOID = {"br", "input", "link", "meta"}


class Html(str):
    """Markup. Any other string is text."""

    def join(self, parts: Iterable[str]) -> Html:
        """The parts, which must be markup too, with this between them."""
        return Html(str.join(self, parts))


@dataclass(frozen=True)
class Section:
    """A part of a page with a name."""

    id: str
    title: str
    content: Html
    short: str | None = None  # its name where there is little room


def tag(name: str, /, *children: str | None, **attributes: object) -> Html:
    """An element: ``tag("a", "here", href="#x", aria_label="…")``.

    Attributes that are None or False are left out, and True stands alone. An underscore at the end keeps
    Python's own words apart (``class_``), one inside is a hyphen.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{escape(_shown(value))}"')
    opening = f"<{' '.join(words)}>"
    return Html(opening if name in VOID else f"{opening}{join(children)}</{name}>")


def join(children: Iterable[str | None]) -> Html:
    return Html("".join(c if isinstance(c, Html) else escape(c) for c in children if c is not None))


def absent(reason: str) -> Html:
    """A sentence in the place of what cannot be shown."""
    return tag("p", reason, class_="absent")


def breakable(name: str) -> Html:
    """A name that may go on in the next line after an underscore."""
    return Html("_<wbr>").join(map(escape, name.split("_")))


def percent(share: float) -> str:
    """A share as people read it; one that is not quite nothing or all does not look so."""
    text = "<1" if 0 < share < 0.005 else ">99" if 0.995 <= share < 1 else f"{100 * share:.0f}"
    return f"{text}\N{NO-BREAK SPACE}%"


def _shown(value: object) -> str:
    """Places in a picture need no more than a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def searchable(caption: str, id: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Html:
    """A long table of words, and a box to look for a row; where there is none, the page says so."""
    box = tag("input", type="search", data_filter=id, autocomplete="off", aria_controls=id)
    return join(
        [
            tag("label", f"Find a {head[0]}, or what stands beside it", box, class_="filter"),
            tag("p", class_="absent", role="status", data_nothing=id, hidden=True),
            table(caption, head, rows, names=len(head), id=id),
        ]
    )


def table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, names: int = 1, id: str | None = None
) -> Html:
    """A table whose first column names the row; after ``names`` columns come figures.

    One with an ``id`` is long, and looked through in a box of its own.
    """

    def cells(kind: str, row: Sequence[str]) -> Iterator[Html]:
        for place, content in enumerate(row):
            heading = kind == "col" or place == 0
            yield tag(
                "th" if heading else "td",
                content,
                scope=kind if heading else None,
                class_="figure" if place >= names else None,
            )

    # A wide table scrolls in its own box; a box that scrolls must be reachable by keyboard.
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", *cells("col", head))),
            tag("tbody", *(tag("tr", *cells("row", row)) for row in rows)),
        ),
        id=id,
        class_="scroll tall" if id else "scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
