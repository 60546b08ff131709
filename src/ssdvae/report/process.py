"""The process of a log on a page: its directly-follows graph, variants, starts and ends, throughput times."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from ssdvae.data.process import Edge, Process, duration_text
from ssdvae.report.charts import Axis, Curves, Drawing, Mark, Series, cut, percent
from ssdvae.report.layout import Place, lay_out
from ssdvae.report.render import Figure, Section, Table, Tile, Tiles

DRAWN = 30
"""Activities in the picture: the most frequent."""

PATHS = 1.6
"""Paths that are shown at first for each activity, beside its main ones."""

MOST_PATHS = 6
"""Paths in the picture for each activity; the table has all of them."""

VARIANTS, STEPS = 20, 12
"""Variants in the table, and activities of each."""

WIDE, HIGH, ACROSS, DOWN = 148.0, 48.0, 166.0, 104.0
"""Width and height of an activity, and how far apart two of them are."""

LETTERS = 23
"""Letters of a line of a name."""

LETTER, LINE = 5.9, 13.0
"""The width of a letter of a label, and its height."""

Point = tuple[float, float]
Box = tuple[float, float, float, float]


@dataclass(frozen=True)
class Node:
    """An activity, or where cases start and end."""

    id: int
    name: str
    count: int
    x: float
    y: float
    share: float  # of the count of the most frequent activity
    note: str
    kind: str = "activity"

    @property
    def lines(self) -> list[str]:
        """The name, in two lines at most."""
        first = ""
        for piece in re.findall(r"[^\s_]*[\s_]*", self.name):
            if len(first + piece.rstrip()) > LETTERS:
                break
            first += piece
        first = first or self.name[:LETTERS]
        rest = self.name[len(first) :]
        return [first, cut(rest, LETTERS)] if rest else [first]


@dataclass(frozen=True)
class Path:
    """A line from one activity to the next one, with its label and where that stands."""

    source: int
    target: int
    count: int
    main: bool  # the most frequent into an activity, or out of it
    hidden: bool  # until somebody wants to see rarer ones
    line: str
    width: float
    note: str
    label: str
    at: Point | None


@dataclass(frozen=True)
class ProcessGraph(Drawing):
    """A directly-follows graph of the most frequent activities, from the start at the top to the end."""

    process: Process

    style, margin, wide, high = "process", 16.0, WIDE, HIGH

    @cached_property
    def drawn(self) -> int:
        return min(DRAWN, len(self.process.activities))

    @cached_property
    def edges(self) -> list[Edge]:
        """The paths between the drawn activities, from the start and to the end; the most frequent first."""
        start, end = self.drawn, self.drawn + 1
        activities = list(enumerate(self.process.activities[: self.drawn]))
        found = [e for e in self.process.edges if max(e.source, e.target) < self.drawn]
        found += [
            Edge(source=start, target=n, count=a.starts, seconds=None) for n, a in activities if a.starts
        ]
        found += [Edge(source=n, target=end, count=a.ends, seconds=None) for n, a in activities if a.ends]
        found.sort(key=lambda edge: -edge.count)
        return found

    @cached_property
    def main(self) -> list[tuple[int, int]]:
        """The paths of two trees: frequent ways from the start to each activity, and from it to the end."""
        start, end = self.drawn, self.drawn + 1
        ahead = _tree([(edge.source, edge.target) for edge in self.edges], start)
        back = _tree([(edge.target, edge.source) for edge in self.edges], end)
        return list(dict.fromkeys([*ahead, *((target, source) for source, target in back)]))

    @cached_property
    def least(self) -> int:
        """The count of the rarest path that is shown at first, main ones apart."""
        others = [edge.count for edge in self.edges if (edge.source, edge.target) not in self.main]
        room = max(0, round(PATHS * (self.drawn + 2)) - len(self.main))
        return others[room - 1] if room and others[room - 1 : room] else max(others, default=0) + 1

    def is_shown(self, edge: Edge) -> bool:
        return edge.count >= self.least or (edge.source, edge.target) in self.main

    @cached_property
    def shapes(self) -> tuple[list[Node], list[Path]]:
        """The activities and paths, with their places; labels do not cover one another."""
        shown = [(e.source, e.target) for e in self.edges if self.is_shown(e)]
        # Main paths first: they shall lead down.
        layout = lay_out(self.drawn + 2, list(dict.fromkeys([*self.main, *shown])), node=ACROSS, bend=26.0)
        left = min(x for x, _ in layout.places) - WIDE / 2
        left = min(left, min((x for route in layout.routes.values() for x, _ in route), default=left))

        def at(place: Place) -> Point:
            return place[0] - left, place[1] * DOWN + HIGH

        nodes = list(self._nodes([at(place) for place in layout.places]))
        taken = [(n.x - WIDE / 2, n.y - HIGH / 2, n.x + WIDE / 2, n.y + HIGH / 2) for n in nodes]
        most = max(edge.count for edge in self.edges)
        paths = []
        for number, edge in enumerate(self.edges):
            pair = (edge.source, edge.target)
            if number >= MOST_PATHS * (self.drawn + 2) and pair not in self.main:
                continue
            source, target = nodes[edge.source], nodes[edge.target]
            route = [at(place) for place in layout.routes.get(pair, ())]
            points = _route(source, target, route)
            label = f"{edge.count:,}"
            if edge.seconds is not None:
                label += f" · {duration_text(edge.seconds, short=True)}"
            there = _label_place(points, LETTER * len(label), taken) if self.is_shown(edge) else None
            if there is not None:
                taken.append(there[1])
            note = f"{source.name} → {target.name}: {edge.count:,} times"
            if edge.seconds is not None:
                note += f", median {duration_text(edge.seconds)}"
            paths.append(
                Path(
                    *pair,
                    edge.count,
                    pair in self.main,
                    not self.is_shown(edge),
                    _curve(points),
                    1 + 5 * edge.count / most,
                    note,
                    label,
                    None if there is None else there[0],
                )
            )
        return nodes, paths

    def _nodes(self, places: Sequence[Point]) -> Iterator[Node]:
        most = self.process.activities[0].count
        for number, (activity, place) in enumerate(zip(self.process.activities, places, strict=False)):
            if number < self.drawn:
                note = (
                    f"{activity.name}: {activity.count:,} events, {activity.starts:,} cases start with it, "
                    f"{activity.ends:,} end"
                )
                yield Node(number, activity.name, activity.count, *place, activity.count / most, note)
        for number, name in enumerate(("start", "end"), start=self.drawn):
            cases = self.process.cases
            yield Node(number, name, cases, *places[number], 0.0, f"{name}: {cases:,} cases", name)

    @property
    def width(self) -> float:
        nodes, paths = self.shapes
        return max(max(n.x for n in nodes) + WIDE / 2, 200.0, *(p.at[0] + 50 for p in paths if p.at)) + 20

    @property
    def height(self) -> float:
        return max(node.y for node in self.shapes[0]) + HIGH

    @property
    def counts(self) -> dict[str, list[int]]:
        """The steps of the two filters: the counts of activities and of paths, rising."""
        nodes, paths = self.shapes
        activities = sorted({node.count for node in nodes if node.kind == "activity"})
        return {"activities": activities, "paths": sorted({path.count for path in paths if not path.main})}

    def first(self, kind: str) -> int:
        """Return the step of a filter at first."""
        return sum(count < self.least for count in self.counts["paths"]) if kind == "paths" else 0


def _tree(edges: Sequence[tuple[int, int]], root: int) -> list[tuple[int, int]]:
    """Return the edges of a tree that begins at the root; the first possible edge is always taken next."""
    reached, found = {root}, []
    while new := next(((s, t) for s, t in edges if s in reached and t not in reached), None):
        reached.add(new[1])
        found.append(new)
    return found


def _route(source: Node, target: Node, between: Sequence[Point]) -> list[Point]:
    """Return the points of a path: from the border of an activity to that of the next one."""
    if source is target:
        side, y = source.x + WIDE / 2, source.y
        return [(side, y - 9), (side + 26, y), (side, y + 9)]
    sign = 1 if target.y > source.y else -1
    # Paths back stand beside those forth.
    lean = 14 if sign < 0 else -6
    inner = list(between[1:-1])
    after, before = (inner or [(target.x, 0.0)])[0], (inner or [(source.x, 0.0)])[-1]
    begin = (source.x + lean + _clamp((after[0] - source.x) / 5), source.y + sign * HIGH / 2)
    end = (target.x + lean + _clamp((before[0] - target.x) / 5), target.y - sign * (HIGH / 2 + 7))
    if source.y == target.y:
        begin, end = (source.x, source.y + HIGH / 2), (target.x, target.y + HIGH / 2 + 7)
        return [begin, ((begin[0] + end[0]) / 2, source.y + HIGH), end]
    return [begin, *((x + (lean if sign < 0 else 0), y) for x, y in inner), end]


def _clamp(x: float) -> float:
    return max(-WIDE / 3, min(WIDE / 3, x))


def _curve(points: Sequence[Point]) -> str:
    """Return the words of SVG for a curve through points, vertical at each; a loop is one bend."""
    (x, y), *others = points
    if len(points) == 3 and points[0][0] == points[2][0] and abs(y - points[2][1]) < HIGH:
        (side, _), (end, bottom) = others
        bend = f"{side + 8:.1f} {y - 8:.1f} {side + 8:.1f} {bottom + 8:.1f}"
        return f"M{x:.1f} {y:.1f}C{bend} {end + 6:.1f} {bottom:.1f}"
    text = f"M{x:.1f} {y:.1f}"
    for to_x, to_y in others:
        middle = (y + to_y) / 2
        text += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}"
        x, y = to_x, to_y
    return text


def _label_place(points: Sequence[Point], width: float, taken: Sequence[Box]) -> tuple[Point, Box] | None:
    """Return where a label stands on a path without covering anything, and its box; None if nowhere."""
    pieces = list(pairwise(points))
    if len(points) == 3 and points[0][0] == points[2][0]:
        pieces = [((points[1][0] + width / 2 + 2, points[1][1]),) * 2]
    middle = len(pieces) // 2
    for (x, y), (to_x, to_y) in [*pieces[middle:], *pieces[:middle]]:
        for u in (0.5, 0.38, 0.62, 0.28, 0.72):
            here = (x + (to_x - x) * (3 * u**2 - 2 * u**3), y + (to_y - y) * u)
            box = (here[0] - width / 2, here[1] - LINE / 2, here[0] + width / 2, here[1] + LINE / 2)
            if not any(_overlap(box, other) for other in taken):
                return here, box
    return None


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def process_section(process: Process, id: str = "process") -> Section:
    """Return the first part of the page about a log."""
    blocks: list[Any] = [
        _headline(process),
        graph_figure(process, f"{id}-paths"),
        _variants(process, f"{id}-variants"),
    ]
    if process.percentiles is not None:
        blocks.append(_throughput(process))
    return Section(id, "The process", [*blocks, _activities(process, f"{id}-activities")], "Process")


def _headline(process: Process) -> Tiles:
    tiles = [
        Tile(
            "cases", f"{process.cases:,}", [f"{process.events / process.cases:.1f} events each, on average"]
        ),
        Tile("events", f"{process.events:,}", [f"{len(process.activities):,} activities"]),
        Tile(
            "variants",
            f"{process.variants:,}",
            [f"the most frequent: {percent(process.top_variants[0].count / process.cases)} of the cases"],
        ),
    ]
    if process.percentiles is not None and process.mean_seconds is not None:
        lines = [
            f"mean {duration_text(process.mean_seconds)}",
            f"80 % between {duration_text(process.percentiles[10])} "
            f"and {duration_text(process.percentiles[90])}",
        ]
        tiles.append(Tile("throughput time, median", duration_text(process.percentiles[50]), lines))
    return Tiles(tiles)


def graph_figure(process: Process, id: str | None = None) -> Figure:
    """Return the directly-follows graph as a picture with filters, and as a table."""
    names = [activity.name for activity in process.activities]
    more = len(names) - DRAWN
    rest = f" Drawn are the {DRAWN} most frequent of {len(names):,} activities." if more > 0 else ""
    rows = [
        [
            names[edge.source],
            names[edge.target],
            f"{edge.count:,}",
            "–" if edge.seconds is None else duration_text(edge.seconds),
        ]
        for edge in process.edges[:1000]
    ]
    return Figure(
        "Which activity directly follows which.",
        "On a line, how often and, if the log has times, the median time from one activity to the next. The "
        "main path into and out of each activity is always there; show more or fewer of the others below. "
        f"Point at an activity, or tab to it, to see its paths, the rare ones too.{rest}",
        ProcessGraph("Directly-follows graph", process),
        legend="filters",
        table=Table(
            "Directly-follows graph",
            ["activity", "next activity", "times", "median time"],
            rows,
            names=2,
            id=id,
        ),
    )


def _variants(process: Process, id: str) -> Table:
    names = [activity.name for activity in process.activities]
    rows = []
    for number, variant in enumerate(process.top_variants[:VARIANTS], start=1):
        more = len(variant.activities) - STEPS
        steps = [names[activity] for activity in variant.activities[:STEPS]]
        rows.append(
            [
                str(number),
                " → ".join([*steps, f"{more:,} more"] if more > 0 else steps),
                f"{variant.count:,}",
                percent(variant.count / process.cases),
                "–" if variant.seconds is None else duration_text(variant.seconds),
            ]
        )
    caption = f"The {len(rows)} most frequent of {process.variants:,} variants"
    return Table(
        caption, ["variant", "its activities", "cases", "share", "median time"], rows, names=2, id=id
    )


def _throughput(process: Process) -> Figure:
    assert process.percentiles is not None
    size, unit = (86400, "days") if process.percentiles[75] >= 86400 else (3600, "hours")
    marks = [
        Mark(
            seconds / size, share / 100, f"{share} % of the cases take {duration_text(seconds)} or less", 2.5
        )
        for share, seconds in enumerate(process.percentiles)
        if share % 5 == 0
    ]
    return Figure(
        "Throughput times.",
        "The share of the cases that are over after so much time, from their first to their last event.",
        Curves(
            "Throughput times",
            Axis(f"{unit} (square-root scale)", 0, max(mark.x for mark in marks) or 1.0, root=True),
            Axis("share of the cases", 0, 1),
            [Series("cases", 0, marks)],
        ),
        table=Table(
            "Throughput times",
            ["share of the cases", "at most"],
            [[f"{share} %", duration_text(process.percentiles[share])] for share in range(0, 101, 10)],
        ),
    )


def _activities(process: Process, id: str) -> Table:
    rows = [
        [
            activity.name,
            f"{activity.count:,}",
            percent(activity.count / process.events),
            *(f"{n:,}" if n else "–" for n in (activity.starts, activity.ends)),
        ]
        for activity in process.activities[:200]
    ]
    head = ["activity", "events", "share", "cases start", "cases end"]
    return Table(f"The {len(rows)} most frequent activities; where cases start and end", head, rows, id=id)
