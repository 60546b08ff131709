"""HTML and SVG as nested calls: text is escaped unless it was made here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

VOID = {"input", "meta", "br"}


class Html(str):
    """Markup. Any other string is text."""


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


def _shown(value: object) -> str:
    """Places in a picture need no more than a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    names: int = 1,
    class_: str | None = None,
) -> Html:
    """A table whose first column names the row; after ``names`` columns come figures."""

    def cell(place: int, content: str) -> Html:
        kind = None if place < names else "figure"
        if place == 0:
            return tag("th", content, scope="row")
        return tag("td", content, class_=kind)

    titles = (tag("th", h, scope="col", class_=None if i < names else "figure") for i, h in enumerate(head))
    body = (tag("tr", *(cell(i, c) for i, c in enumerate(row))) for row in rows)
    # A wide table scrolls in its own box; a box that scrolls must be reachable by keyboard.
    return tag(
        "div",
        tag(
            "table",
            tag("caption", caption),
            tag("thead", tag("tr", *titles)),
            tag("tbody", *body),
            class_=class_,
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
