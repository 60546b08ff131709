"""What is seen of a sweep: a table on a terminal, a line for each event elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import mean
from types import TracebackType
from typing import Self

from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from ssdvae.cli.console import console, say
from ssdvae.paper.grid import Cell


class Progress:
    """Which cells are done, running, left and failed, and how long it may take."""

    def __init__(self, left: Iterable[Cell], done: Iterable[Cell], places: int) -> None:
        self.left, self.done = dict.fromkeys(left), dict.fromkeys(done)
        self.running: dict[Cell, float] = {}  # since when
        self.failed: list[Cell] = []
        self.seconds: dict[Cell, float] = {}  # of the cells that this sweep has made
        self.total = len(self.left) + len(self.done)
        self.places = places
        self.kinds = list(dict.fromkeys(_kind(cell) for cell in (*self.done, *self.left)))
        self.live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        if console.is_terminal:
            self.live.start()
        say(self.summary)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.live.stop()

    def start(self, cell: Cell) -> None:
        del self.left[cell]
        self.running[cell] = time.monotonic()
        if not console.is_terminal:
            say(f"started {cell.name}")

    def finish(self, cell: Cell, seconds: float) -> None:
        del self.running[cell]
        self.done[cell], self.seconds[cell] = None, seconds
        say(f"finished {cell.name} in {duration(seconds)}; {self.summary}")

    def fail(self, cell: Cell, words: str) -> None:
        del self.running[cell]
        self.failed.append(cell)
        say(words)

    @property
    def counts(self) -> str:
        parts = (("done", self.done), ("running", self.running), ("left", self.left), ("failed", self.failed))
        return ", ".join(f"{len(cells)} {name}" for name, cells in parts if cells) or "nothing to do"

    @property
    def summary(self) -> str:
        remaining = self.remaining()
        return self.counts + ("" if remaining is None else f", about {duration(remaining)} left")

    def remaining(self) -> float | None:
        """Seconds to the end, by the cells that this sweep has made: those of the same model, else all."""
        if not self.seconds or not (self.left or self.running):
            return None
        now = time.monotonic()
        work = sum(map(self._expected, self.left))
        work += sum(max(0.0, self._expected(cell) - (now - since)) for cell, since in self.running.items())
        return work / self.places

    def _expected(self, cell: Cell) -> float:
        alike = [seconds for made, seconds in self.seconds.items() if _kind(made) == _kind(cell)]
        return mean(alike or self.seconds.values())

    def draw(self) -> None:
        if not self.live.is_started:
            return
        table = Table("model", "done", "running", "left", "failed")
        states: Sequence[Iterable[Cell]] = (self.done, self.running, self.left, self.failed)
        counts = [Counter(map(_kind, cells)) for cells in states]
        for kind in self.kinds:
            table.add_row(kind, *(str(count[kind]) for count in counts))
        now = time.monotonic()
        at_work = ", ".join(f"{cell.name} ({duration(now - since)})" for cell, since in self.running.items())
        self.live.update(Group(table, Text(f"now: {at_work}"), Text(self.summary)), refresh=True)


def _kind(cell: Cell) -> str:
    """Cells that cost about the same."""
    return cell.row.kind + (", single events" if cell.row.single else "")


def duration(seconds: float) -> str:
    """In the two units that matter."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
