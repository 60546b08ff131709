"""The state of a sweep: which cells are done, running, left and failed, and how long it may take."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from statistics import mean

from ssdvae.paper.grid import Cell


class Cells:
    """The cells of a sweep, each in one of four states."""

    def __init__(self, left: Iterable[Cell], done: Iterable[Cell], places: int) -> None:
        self.left, self.done = dict.fromkeys(left), dict.fromkeys(done)
        self.running: dict[Cell, float] = {}  # since when
        self.failed: list[Cell] = []
        self.seconds: dict[Cell, float] = {}  # of the cells that this sweep has made
        self.total = len(self.left) + len(self.done)
        self.places = places
        self.kinds = list(dict.fromkeys(kind(cell) for cell in (*self.done, *self.left)))

    def start(self, cell: Cell) -> None:
        del self.left[cell]
        self.running[cell] = time.monotonic()

    def finish(self, cell: Cell, seconds: float) -> None:
        del self.running[cell]
        self.done[cell], self.seconds[cell] = None, seconds

    def fail(self, cell: Cell) -> None:
        del self.running[cell]
        self.failed.append(cell)

    @property
    def counts(self) -> str:
        parts = (("done", self.done), ("running", self.running), ("left", self.left), ("failed", self.failed))
        return ", ".join(f"{len(cells)} {name}" for name, cells in parts if cells) or "nothing to do"

    @property
    def summary(self) -> str:
        remaining = self.remaining()
        return self.counts + ("" if remaining is None else f", about {duration(remaining)} left")

    def counts_by_kind(self) -> list[tuple[str, int, int, int, int]]:
        """How many cells of each kind are done, running, left and failed."""
        done, running, left, failed = (
            Counter(map(kind, cells)) for cells in (self.done, self.running, self.left, self.failed)
        )
        return [(name, done[name], running[name], left[name], failed[name]) for name in self.kinds]

    def at_work(self) -> str:
        """The running cells, and for how long."""
        now = time.monotonic()
        return ", ".join(f"{cell.name} ({duration(now - since)})" for cell, since in self.running.items())

    def remaining(self) -> float | None:
        """Seconds to the end, by the cells that this sweep has made: those of the same model, else all."""
        if not self.seconds or not (self.left or self.running):
            return None
        now = time.monotonic()
        work = sum(map(self._expected, self.left))
        work += sum(max(0.0, self._expected(cell) - (now - since)) for cell, since in self.running.items())
        return work / self.places

    def _expected(self, cell: Cell) -> float:
        alike = [seconds for made, seconds in self.seconds.items() if kind(made) == kind(cell)]
        return mean(alike or self.seconds.values())


def kind(cell: Cell) -> str:
    """Cells of one kind cost about the same."""
    return cell.row.kind + (", single events" if cell.row.single else "")


def duration(seconds: float) -> str:
    """In the two units that matter."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
