"""A picture of what leads to what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ssdvae.report.charts import TOP, WIDTH, Drawing
from ssdvae.report.html import Html, breakable, join, percent, tag

ROW, EDGE = 22.0, 150.0
"""The height of a name, and where the bands begin."""

LONGEST = 23
"""Letters of a name that there is room for."""


@dataclass(frozen=True)
class Link:
    source: str
    target: str
    weight: float
    note: str


def link_graph(label: str, given: Sequence[Link]) -> Drawing:
    """Names on the left, names on the right, and bands between them as wide as the links are strong."""
    left = list(dict.fromkeys(link.source for link in given))
    # A name stands at the mean height of what leads to it, so that few bands cross.
    heights: dict[str, list[int]] = {}
    for link in given:
        heights.setdefault(link.target, []).append(left.index(link.source))
    right = sorted(heights, key=lambda name: sum(heights[name]) / len(heights[name]))
    widest = max(link.weight for link in given)
    height = ROW * max(len(left), len(right)) + 2 * TOP

    def level(names: list[str], name: str) -> float:
        return TOP + (names.index(name) + 0.5) * (height - 2 * TOP) / len(names)

    bands = []
    for link in given:
        start, end = level(left, link.source), level(right, link.target)
        middle = f"{WIDTH / 2:g}"
        bands.append(
            tag(
                "path",
                d=f"M{EDGE:g} {start:.1f}C{middle} {start:.1f} {middle} {end:.1f} {WIDTH - EDGE:g} {end:.1f}",
                stroke_width=1 + 9 * link.weight / widest,
                data_from=link.source,
                data_to=link.target,
                data_tip=link.note,
            )
        )
    nodes = [
        _node(side, name, [link.note for link in given if getattr(link, side) == name], x, level(names, name))
        for side, names, x in (("source", left, EDGE - 8), ("target", right, WIDTH - EDGE + 8))
        for name in names
    ]
    return Drawing(label, join([*bands, *nodes]), height, kind="links")


def _node(side: str, name: str, notes: Sequence[str], x: float, y: float) -> Html:
    text = tag("text", _cut(name), x=x, y=y + 4, text_anchor="end" if side == "source" else "start")
    return tag(
        "g",
        text,
        class_="node",
        tabindex="0",
        role="img",
        aria_label=f"{name}: {'; '.join(notes)}",
        data_tip=f"{name}\n" + "\n".join(notes),
        **{"data_node_from" if side == "source" else "data_node_to": name},
    )


def walk(
    label: str,
    name: str,
    before: Sequence[tuple[str, float | None]],
    after: Sequence[tuple[str, float | None]],
    href: Callable[[str], str],
) -> Html:
    """A name in the middle, what leads to it on the left, what it leads to on the right: each a link.

    Where there is no room for a picture, two lists say the same.
    """
    rows = max(len(before), len(after), 1)
    height = 1.4 * ROW * rows + 2 * TOP
    middle, gap = height / 2, 62.0
    shapes: list[Html] = []
    for names, sign in ((before, -1), (after, 1)):
        widest = max((share or 0 for _, share in names), default=1) or 1
        inner, outer = WIDTH / 2 + sign * gap, WIDTH / 2 + sign * (WIDTH / 2 - EDGE + 20)
        for place, (other, share) in enumerate(names):
            y = TOP + (place + 0.5) * (height - 2 * TOP) / len(names)
            bend = (inner + outer) / 2
            shapes.append(
                tag(
                    "path",
                    d=f"M{inner:g} {middle:.1f}C{bend:g} {middle:.1f} {bend:g} {y:.1f} {outer:g} {y:.1f}",
                    stroke_width=1 + 9 * (share or 0) / widest,
                )
            )
            text = tag(
                "text",
                f"{_cut(other)} {percent(share or 0)}",
                x=outer + sign * 6,
                y=y + 4,
                text_anchor="start" if sign > 0 else "end",
            )
            shapes.append(tag("a", text, href=href(other), aria_label=f"{other}, {percent(share or 0)}"))
    centre = tag("text", _cut(name, 16), x=WIDTH / 2, y=middle + 4, text_anchor="middle", class_="centre")
    picture = tag(
        "svg",
        *shapes,
        centre,
        viewBox=f"-60 0 {WIDTH + 120:g} {height:g}",
        class_="links walk",
        role="group",
        aria_label=label,
    )
    lists = [
        tag(
            "ul",
            tag("li", side),
            *(
                tag(
                    "li",
                    tag("a", breakable(other), href=href(other)),
                    tag("small", f" {percent(share or 0)}"),
                )
                for other, share in names
            ),
            class_="steps",
        )
        for side, names in (("Before", before), ("After", after))
        if names
    ]
    return tag("figure", tag("figcaption", tag("strong", label + ".")), join([picture, *lists]))


def _cut(name: str, most: int = LONGEST) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
