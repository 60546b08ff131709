"""How far a piece of work is: one small protocol for all rooms, and who shows it.

    with progress.task("evaluating", total=len(documents)) as advance:
        for batch in batches:
            ...
            advance(len(batch))

Nothing here imports rich before a bar is drawn, so the library costs nothing to those who want none.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import ProgressColumn

Item = TypeVar("Item")


@runtime_checkable
class Advance(Protocol):
    """Called whenever ``amount`` more is done; ``fields`` fill in the status of the task."""

    def __call__(self, amount: int = 1, /, **fields: Any) -> None: ...


@runtime_checkable
class Progress(Protocol):
    """Whoever wants to know how far the work is."""

    def task(
        self, label: str, total: int | None = None, *, status: str = "", done: int = 0
    ) -> AbstractContextManager[Advance]:
        """A task of ``total`` pieces (None: nobody knows how many), ``done`` of which are done already.

        ``status`` is a format string that is filled in by the fields of each advance: "loss {loss:.2f}".
        """
        ...


def no_advance(amount: int = 1, /, **fields: Any) -> None:
    """For when nobody waits."""


class Silent:
    """Shows nothing."""

    @contextmanager
    def task(
        self, label: str, total: int | None = None, *, status: str = "", done: int = 0
    ) -> Iterator[Advance]:
        yield no_advance


SILENT = Silent()


def track(
    progress: Progress,
    items: Iterable[Item],
    label: str,
    total: int | None = None,
    size: Callable[[Item], int] = lambda item: 1,
) -> Iterator[Item]:
    """The same items; each counts, as ``size`` of them, when the next one is asked for."""
    with progress.task(label, total) as advance:
        for item in items:
            yield item
            advance(size(item))


def resolve(progress: bool | Progress) -> Progress:
    """What the functions of the API take: True is a bar where there is a place for one, False is silence."""
    if isinstance(progress, bool):
        return Bars() if progress else SILENT
    return progress


@cache
def console() -> Console:
    """Standard error. Bars and messages share it, so that a message appears above the bar, not inside it."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


class Bars:
    """Bars on a terminal and in a notebook. Elsewhere, a task that has a status says it once a minute."""

    LINE_SECONDS: ClassVar[float] = 60.0
    DRAW_SECONDS: ClassVar[float] = 0.1
    _busy: ClassVar[bool] = False  # one bar at a time: a task within a task is not shown

    def __init__(self, on: Console | None = None) -> None:
        self.console = console() if on is None else on

    @property
    def drawn(self) -> bool:
        """Whether there is a place for bars; rich draws them in a notebook with the help of ipywidgets."""
        notebook = self.console.is_jupyter and importlib.util.find_spec("ipywidgets") is not None
        return self.console.is_terminal or notebook

    @contextmanager
    def task(
        self, label: str, total: int | None = None, *, status: str = "", done: int = 0
    ) -> Iterator[Advance]:
        if Bars._busy:
            yield no_advance
            return
        Bars._busy = True
        try:
            if self.drawn:
                with self._bar(label, total, status, done) as advance:
                    yield advance
            else:
                yield self._lines(label, total, status, done) if status else no_advance
        finally:
            Bars._busy = False

    @contextmanager
    def _bar(self, label: str, total: int | None, status: str, done: int) -> Iterator[Advance]:
        from rich.progress import Progress as RichProgress

        with RichProgress(*_columns(total), console=self.console, transient=True) as shown:
            bar = shown.add_task(label, total=total, completed=done, status="")
            pending, drawn = 0, time.monotonic()

            def advance(amount: int = 1, /, **fields: Any) -> None:
                nonlocal pending, drawn
                pending += amount
                # Asking for the time is cheap, telling rich is not.
                if time.monotonic() - drawn > self.DRAW_SECONDS:
                    shown.update(bar, advance=pending, status=status.format(**fields) if fields else "")
                    pending, drawn = 0, time.monotonic()

            yield advance

    def _lines(self, label: str, total: int | None, status: str, done: int) -> Advance:
        said = time.monotonic()

        def advance(amount: int = 1, /, **fields: Any) -> None:
            nonlocal done, said
            done += amount
            if time.monotonic() - said > self.LINE_SECONDS:
                said = time.monotonic()
                place = f"{label} {done}" + ("" if total is None else f" of {total}")
                self.console.print(f"{place}  {status.format(**fields)}", markup=False, soft_wrap=True)

        return advance


def _columns(total: int | None) -> list[ProgressColumn]:
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeRemainingColumn

    label, status = TextColumn("{task.description}"), TextColumn("{task.fields[status]}")
    if total is None:
        return [SpinnerColumn(), label, TextColumn("{task.completed:,.0f}"), status]
    return [label, BarColumn(), MofNCompleteColumn(), status, TimeRemainingColumn()]
