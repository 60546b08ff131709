"""A layered drawing of a graph: nodes in rows from the top, edges between them through free places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

Edge = tuple[int, int]
Place = tuple[float, int]
"""Where something is in a row, and the row."""

SWEEPS = 24


@dataclass(frozen=True)
class Layout:
    """The place of each node, and the places that each edge goes through, from its source to its target."""

    places: Sequence[Place]
    routes: Mapping[Edge, Sequence[Place]]


def lay_out(count: int, edges: Sequence[Edge], node: float = 1.0, bend: float = 0.3) -> Layout:
    """Return a layout of nodes 0, 1, … and of the edges between them; the most important edges come first.

    The last node stands below all others.

    Sugiyama's method: edges that would close a circle are turned around, a node stands below all that lead
    to it, neighbouring rows are sorted by the mean place of neighbours so that few edges cross, and each row
    is placed by least squares. ``node`` and ``bend`` are the widths of a node and of an edge that passes.
    """
    down = _without_circles(count, edges)
    rows = _rows(count, down)
    rows[-1] = max(rows[-1], *(1 + row for row in rows[:-1]))
    layers: list[list[int]] = [[] for _ in range(rows[-1] + 1)]
    for number, row in enumerate(rows):
        layers[row].append(number)
    chains: dict[Edge, list[int]] = {}
    for source, target in dict.fromkeys(down):
        passing = list(range(len(rows), len(rows) + rows[target] - rows[source] - 1))
        for place, number in enumerate(passing, start=rows[source] + 1):
            rows.append(place)
            layers[place].append(number)
        chains[source, target] = [source, *passing, target]
    near: list[list[int]] = [[] for _ in rows]
    for chain in chains.values():
        for above, below in pairwise(chain):
            near[above].append(below)
            near[below].append(above)
    wide = [node if number < count else bend for number in range(len(rows))]
    x = [0.0] * len(rows)
    for layer in layers:
        for place, number in enumerate(layer):
            x[number] = place - len(layer) / 2
    for sweep in range(SWEEPS):
        step = 1 if sweep % 2 == 0 else -1
        for layer in layers[::step]:
            # First the order, by the row before; once it is settled, straight lines.
            ordering = sweep < SWEEPS - 6
            beside = {n: [o for o in near[n] if not ordering or rows[o] == rows[n] - step] for n in layer}
            towards = {n: sum(x[o] for o in some) / len(some) if some else x[n] for n, some in beside.items()}
            if ordering:
                layer.sort(key=towards.__getitem__)
            _place_row(layer, towards, wide, x)
    found = {edge: [(x[n], rows[n]) for n in chain] for edge, chain in chains.items()}
    routes = {
        (s, t): found[s, t] if (s, t) in found and rows[s] < rows[t] else found[t, s][::-1]
        for s, t in edges
        if s != t
    }
    return Layout([(x[number], rows[number]) for number in range(count)], routes)


def _without_circles(count: int, edges: Sequence[Edge]) -> list[Edge]:
    """Return the edges, turned around where they would close a circle with those before."""
    below: list[set[int]] = [{number} for number in range(count)]  # what can be reached
    down = []
    for source, target in edges:
        if source == target:
            continue
        if source in below[target]:
            source, target = target, source
        down.append((source, target))
        for reached in below:
            if source in reached:
                reached |= below[target]
    return down


def _rows(count: int, down: Sequence[Edge]) -> list[int]:
    """Return the row of each node: one below the lowest that leads to it."""
    rows = [0] * count
    for _ in range(count):
        for source, target in down:
            rows[target] = max(rows[target], rows[source] + 1)
    return rows


def _place_row(
    layer: Sequence[int], towards: Mapping[int, float], wide: Sequence[float], x: list[float]
) -> None:
    """Place a row as near to what is wanted as its order and widths allow: pool adjacent violators."""
    apart = [(wide[before] + wide[number]) / 2 for before, number in pairwise(layer)]
    offsets = list(accumulate(apart, initial=0.0))
    pools: list[tuple[float, int]] = []  # mean and size
    for number, offset in zip(layer, offsets, strict=True):
        mean, size = towards[number] - offset, 1
        while pools and pools[-1][0] > mean:
            other, more = pools.pop()
            mean, size = (mean * size + other * more) / (size + more), size + more
        pools.append((mean, size))
    starts = [mean for mean, size in pools for _ in range(size)]
    for number, start, offset in zip(layer, starts, offsets, strict=True):
        x[number] = start + offset
