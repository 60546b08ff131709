"""A picture of what leads to what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdvae.report.charts import TOP, WIDTH
from ssdvae.report.html import Html, tag

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


def link_graph(label: str, given: Sequence[Link]) -> Html:
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
    return tag(
        "svg",
        *bands,
        *nodes,
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        class_="links",
        role="group",
        aria_label=label,
    )


def _node(side: str, name: str, notes: Sequence[str], x: float, y: float) -> Html:
    shown = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
    text = tag("text", shown, x=x, y=y + 4, text_anchor="end" if side == "source" else "start")
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
