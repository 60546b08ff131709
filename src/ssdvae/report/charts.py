"""Pictures as plain SVG: they are text, take the colours of the page, and need no script to be seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ssdvae.report.html import Html, join, tag

COLOURS = 8
"""Colours of the style sheet; the ninth is the first again."""

# The same for all pictures: narrow enough that the letters can be read on a phone.
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 480.0, 52.0, 14.0, 14.0, 46.0


@dataclass(frozen=True)
class Drawing:
    """A picture, as wide as all of them, and what its colours stand for."""

    label: str
    content: Html
    height: float
    keys: Sequence[tuple[str, int]] = ()  # a name and its colour
    kind: str | None = None  # its class in the style sheet

    def svg(self) -> Html:
        box = f"0 0 {WIDTH:g} {self.height:g}"
        return tag("svg", self.content, viewBox=box, class_=self.kind, role="group", aria_label=self.label)


@dataclass(frozen=True)
class Axis:
    """A range of numbers on a line; with ``root`` on a square-root scale, which begins at 0."""

    title: str
    low: float
    high: float
    root: bool = False

    def share(self, value: float) -> float:
        """Where a value stands: 0 at the low end, 1 at the high end."""
        if self.root:
            return math.sqrt(value / self.high) if self.high else 0.0
        return (value - self.low) / (self.high - self.low)

    def ticks(self, apart: float = 0.09) -> list[float]:
        """Round numbers; on a square-root scale those that do not crowd one another."""
        if self.high <= self.low:
            return [self.low]
        step = _round_step((self.high - self.low) / 5)
        if not self.root:
            first = math.ceil(self.low / step - 1e-9)
            return [step * n for n in range(first, math.floor(self.high / step + 1e-9) + 1)]
        kept, unit = [0.0], min(1.0, step)
        while True:
            # The first multiple of the unit that is far enough from the last one.
            n = math.ceil(self.high * (self.share(kept[-1]) + apart) ** 2 / unit - 1e-9)
            if unit * n > self.high * (1 + 1e-9):
                return kept
            kept.append(unit * n)


def _round_step(step: float) -> float:
    """1, 2 or 5 times a power of ten, not below the given step."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


@dataclass(frozen=True)
class Mark:
    """A point of a curve, and the words that say what it is."""

    x: float
    y: float
    note: str
    radius: float = 3.5


@dataclass(frozen=True)
class Series:
    name: str
    colour: int
    marks: Sequence[Mark]


def padded_range(values: Sequence[float]) -> tuple[float, float]:
    """A range that holds the values, with some room."""
    room = 0.06 * (max(values) - min(values)) or 0.5
    return min(values) - room, max(values) + room


def curves(label: str, x: Axis, y: Axis, series: Sequence[Series], *, diagonal: bool = False) -> Drawing:
    """Curves over two axes. Each is one stop of the tab key; the arrow keys go along it."""
    height = 320.0

    def at(mark: Mark) -> tuple[float, float]:
        across = LEFT + x.share(mark.x) * (WIDTH - LEFT - RIGHT)
        return across, height - BOTTOM - y.share(mark.y) * (height - TOP - BOTTOM)

    drawn = [_curve(number, one, [at(mark) for mark in one.marks]) for number, one in enumerate(series)]
    corners = [at(Mark(axis_x, axis_y, "")) for axis_x, axis_y in ((x.low, y.low), (x.high, y.high))]
    line = {f"{axis}{end + 1}": corners[end][axis == "y"] for end in (0, 1) for axis in "xy"}
    reference = tag("line", class_="reference", **line) if diagonal else None
    keys = [(one.name, one.colour % COLOURS) for one in series]
    return Drawing(label, join([_axes(x, y, height), reference, *drawn]), height, keys)


def _axes(x: Axis, y: Axis, height: float) -> Html:
    right, floor = WIDTH - RIGHT, height - BOTTOM
    parts = []
    for value in x.ticks():
        place = LEFT + x.share(value) * (right - LEFT)
        parts += [
            tag("line", x1=place, x2=place, y1=TOP, y2=floor),
            tag("text", f"{value:g}", x=place, y=floor + 18, text_anchor="middle"),
        ]
    for value in y.ticks():
        place = floor - y.share(value) * (floor - TOP)
        parts += [
            tag("line", x1=LEFT, x2=right, y1=place, y2=place),
            tag("text", f"{value:g}", x=LEFT - 7, y=place + 4, text_anchor="end"),
        ]
    middle = (TOP + floor) / 2
    titles = [
        tag("text", x.title, x=(LEFT + right) / 2, y=height - 6, text_anchor="middle"),
        tag("text", y.title, x=13.0, y=middle, text_anchor="middle", transform=f"rotate(-90 13 {middle:g})"),
    ]
    # Each tick says less than the table below the picture does.
    return tag("g", *parts, *titles, class_="axes", aria_hidden="true")


def _curve(number: int, series: Series, places: Sequence[tuple[float, float]]) -> Html:
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    marks = [
        tag(
            "circle",
            cx=x,
            cy=y,
            r=mark.radius,
            tabindex="0" if place == 0 else "-1",
            role="img",
            aria_label=mark.note,
            data_tip=mark.note,
        )
        for place, (mark, (x, y)) in enumerate(zip(series.marks, places, strict=True))
    ]
    return tag(
        "g",
        tag("polyline", points=line),
        *marks,
        class_=f"curve c{series.colour % COLOURS}",
        data_series=number,
        data_roving="",
        role="group",
        aria_label=f"{series.name}, {len(marks)} points; arrow keys go along",
    )


def with_buttons(drawing: Drawing) -> Html:
    """Curves, and buttons that show and hide them."""
    buttons = (
        tag(
            "button",
            tag("span", class_=f"swatch c{colour}"),
            name,
            type="button",
            aria_pressed="true",
            data_toggle=number,
        )
        for number, (name, colour) in enumerate(drawing.keys)
    )
    legend = tag("div", *buttons, class_="legend", role="group", aria_label="Show or hide a run")
    return join([drawing.svg(), legend if len(drawing.keys) > 1 else None])


Parts = Sequence[tuple[str, float]]
"""What a bar is made of: names and lengths."""


def with_keys(drawing: Drawing) -> Html:
    """Bars, and below them what their colours stand for."""
    keys = (tag("li", tag("span", class_=f"swatch c{colour}"), name) for name, colour in drawing.keys)
    return join([drawing.svg(), tag("ul", *keys, class_="legend")])


def bars(label: str, rows: Sequence[tuple[str, Parts]], unit: str) -> Drawing:
    """Bars made of parts, one bar for each row; the parts have the same names in all of them."""
    longest = max(sum(value for _, value in parts) for _, parts in rows) or 1.0
    drawn = []
    for row, (name, parts) in enumerate(rows):
        top, start = TOP + 48 * row, LEFT / 2
        drawn.append(tag("text", name, x=start, y=top + 12))
        for number, (part, value) in enumerate(parts):
            width = max(0.0, value) / longest * (WIDTH - LEFT)
            note = f"{name}: {part} {value:.2f} {unit}"
            drawn.append(
                tag(
                    "rect",
                    x=start,
                    y=top + 18,
                    width=width,
                    height=20.0,
                    class_=f"c{number}",
                    tabindex="0",
                    role="img",
                    aria_label=note,
                    data_tip=note,
                )
            )
            start += width
    keys = [(part, number) for number, (part, _) in enumerate(rows[0][1])]
    return Drawing(label, join(drawn), TOP + 48 * len(rows), keys)
