"""Pictures: their shapes and where these are. ``templates/charts.html.j2`` draws them as SVG."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

COLOURS = 8
"""Colours of the style sheet; the ninth is the first again."""

# The same for all pictures: narrow enough that the letters can be read on a phone.
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 480.0, 52.0, 14.0, 14.0, 46.0

ROW, EDGE = 22.0, 150.0
"""In pictures of links, the height of a name, and where the bands begin."""

LONGEST = 23
"""Letters of a name that there is room for."""

Shares = Sequence[tuple[str, float]]
"""Names and their shares."""


def percent(share: float) -> str:
    """Return a share in per cent, to two digits; one that is not quite nothing or all does not look so."""
    value = 100 * share
    small, large = 0 < value < 0.01, 99.5 <= value < 100
    text = "<0.01" if small else ">99" if large else f"{value:.2g}" if 0 < value < 9.95 else f"{value:.0f}"
    return f"{text}\N{NO-BREAK SPACE}%"


@dataclass(frozen=True)
class Drawing:
    """A picture; ``keys`` are the names of its colours."""

    label: str

    style = ""  # its class in the style sheet
    margin = 0.0  # at the left and at the right

    @property
    def width(self) -> float:
        """The width without the margins: the same for all pictures but wide graphs."""
        return WIDTH

    @property
    def height(self) -> float:
        """The height."""
        raise NotImplementedError

    @property
    def keys(self) -> Sequence[tuple[str, int]]:
        """Names and the colours that stand for them."""
        return ()


@dataclass(frozen=True)
class Axis:
    """A range of numbers on a line; with ``root`` on a square-root scale, which begins at 0."""

    title: str
    low: float
    high: float
    root: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value: 0 at the low end, 1 at the high end."""
        if self.root:
            return math.sqrt(value / self.high) if self.high else 0.0
        return (value - self.low) / (self.high - self.low)

    def ticks(self, apart: float = 0.09) -> list[float]:
        """Return round numbers; on a square-root scale those that do not crowd one another."""
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
    """Return 1, 2 or 5 times a power of ten, not below the given step."""
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
    """A curve by its name."""

    name: str
    colour: int
    marks: Sequence[Mark]


def padded_range(values: Sequence[float]) -> tuple[float, float]:
    """Return a range that holds the values, with some room."""
    room = 0.06 * (max(values) - min(values)) or 0.5
    return min(values) - room, max(values) + room


@dataclass(frozen=True)
class Curves(Drawing):
    """Curves over two axes. Each is one stop of the tab key; the arrow keys go along it."""

    x: Axis
    y: Axis
    series: Sequence[Series]
    diagonal: bool = False

    left, right, top, floor, height = LEFT, WIDTH - RIGHT, TOP, 320.0 - BOTTOM, 320.0

    @property
    def keys(self) -> Sequence[tuple[str, int]]:
        """The names of the curves."""
        return [(one.name, one.colour % COLOURS) for one in self.series]

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return the place of a point."""
        across = self.left + self.x.share(x) * (self.right - self.left)
        return across, self.floor - self.y.share(y) * (self.floor - self.top)


@dataclass(frozen=True)
class Bars(Drawing):
    """A bar for each row, made of parts that have the same names in all of them."""

    rows: Sequence[tuple[str, Shares]]
    unit: str

    left, top, row = LEFT / 2, TOP, 48.0

    @property
    def height(self) -> float:
        """The height of all rows."""
        return self.top + self.row * len(self.rows)

    @property
    def keys(self) -> Sequence[tuple[str, int]]:
        """The names of the parts."""
        return [(part, number) for number, (part, _) in enumerate(self.rows[0][1])]

    def parts(self, name: str, parts: Shares) -> Iterator[tuple[float, float, str]]:
        """Yield the start, the width and the meaning of each part of a bar."""
        longest = max(sum(value for _, value in row) for _, row in self.rows) or 1.0
        widths = [max(0.0, value) / longest * (WIDTH - LEFT) for _, value in parts]
        starts = accumulate(widths, initial=self.left)
        for (part, value), width, start in zip(parts, widths, starts, strict=False):
            yield start, width, f"{name}: {part} {value:.2f} {self.unit}"


@dataclass(frozen=True)
class Link:
    """A link between two names, and the words that say what it is."""

    source: str
    target: str
    weight: float
    note: str


@dataclass(frozen=True)
class LinkGraph(Drawing):
    """Names on the left, names on the right, and bands between them as wide as the links are strong."""

    links: Sequence[Link]

    style = "links"

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """The names of the left and of the right side, from the top."""
        left = list(dict.fromkeys(link.source for link in self.links))
        # A name stands at the mean height of what leads to it, so that few bands cross.
        heights: dict[str, list[int]] = {}
        for link in self.links:
            heights.setdefault(link.target, []).append(left.index(link.source))
        return left, sorted(heights, key=lambda name: sum(heights[name]) / len(heights[name]))

    @property
    def height(self) -> float:
        """The height of the longer side."""
        return ROW * max(map(len, self.names)) + 2 * TOP

    def _level(self, side: int, name: str) -> float:
        names = self.names[side]
        return _level(names.index(name), len(names), self.height)

    def bands(self) -> Iterator[tuple[Link, str, float]]:
        """Yield each link with the path and the width of its band."""
        widest = max(link.weight for link in self.links)
        for link in self.links:
            start, end = (EDGE, self._level(0, link.source)), (WIDTH - EDGE, self._level(1, link.target))
            yield link, _path(start, end), 1 + 9 * link.weight / widest

    def labels(self) -> Iterator[tuple[str, str, float, float, list[str]]]:
        """Yield each name with its side, its place and the notes of its links."""
        for name in self.names[0]:
            notes = [link.note for link in self.links if link.source == name]
            yield name, "from", EDGE - 8, self._level(0, name), notes
        for name in self.names[1]:
            notes = [link.note for link in self.links if link.target == name]
            yield name, "to", WIDTH - EDGE + 8, self._level(1, name), notes


@dataclass(frozen=True)
class NeighbourGraph(Drawing):
    """A name in the middle, what leads to it on the left, what it leads to on the right: each a link."""

    name: str
    before: Shares
    after: Shares
    href: Callable[[str], str]

    style, margin, gap = "links walk", 60.0, 62.0

    @property
    def height(self) -> float:
        """The height of the longer side."""
        return 1.4 * ROW * max(len(self.before), len(self.after), 1) + 2 * TOP

    def neighbours(self) -> Iterator[tuple[str, float, float, float, str, float]]:
        """Yield each neighbour with its share and place, and the path and the width of its band."""
        for names, sign in ((self.before, -1), (self.after, 1)):
            widest = max((share for _, share in names), default=1) or 1
            inner, outer = WIDTH / 2 + sign * self.gap, WIDTH / 2 + sign * (WIDTH / 2 - EDGE + 20)
            for place, (name, share) in enumerate(names):
                y = _level(place, len(names), self.height)
                path = _path((inner, self.height / 2), (outer, y))
                yield name, share, outer + sign * 6, y, path, 1 + 9 * share / widest


def _level(place: int, count: int, height: float) -> float:
    return TOP + (place + 0.5) * (height - 2 * TOP) / count


def _path(start: tuple[float, float], end: tuple[float, float]) -> str:
    """Return a curved line in the words of SVG."""
    (x, y), (to_x, to_y), middle = start, end, (start[0] + end[0]) / 2
    return f"M{x:g} {y:.1f}C{middle:g} {y:.1f} {middle:g} {to_y:.1f} {to_x:g} {to_y:.1f}"


def cut(name: str, most: int = LONGEST) -> str:
    """Return as much of a name as there is room for."""
    return name if len(name) <= most else name[: most - 1] + "…"
