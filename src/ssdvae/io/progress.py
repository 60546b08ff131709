"""Progress reporting: the protocol, and its terminal and notebook implementations.

    with progress.task("evaluating", total=len(documents)) as advance:
        for batch in batches:
            ...
            advance(len(batch))

rich is imported only when a bar is drawn.
"""

from __future__ import annotations

import importlib.util
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from queue import Queue

    from rich.console import Console
    from rich.progress import ProgressColumn

Item = TypeVar("Item")


@runtime_checkable
class Advance(Protocol):
    """A function that is called when ``amount`` more is done; ``fields`` fill in the status of the task."""

    def __call__(self, amount: int = 1, /, **fields: Any) -> None: ...


@runtime_checkable
class Progress(Protocol):
    """A listener to the progress of tasks."""

    def task(
        self, label: str, total: int | None = None, *, status: str = "", done: int = 0
    ) -> AbstractContextManager[Advance]:
        """Begin a task of ``total`` pieces (None: unknown), ``done`` of which are done already.

        ``status`` is a format string that is filled in by the fields of each advance: "loss {loss:.2f}".
        """
        ...


def no_advance(amount: int = 1, /, **fields: Any) -> None:
    """Do nothing."""


class Silent:
    """A listener that shows nothing."""

    @contextmanager
    def task(
        self, label: str, total: int | None = None, *, status: str = "", done: int = 0
    ) -> Iterator[Advance]:
        yield no_advance


SILENT = Silent()


ABANDONED = "ssdvae, abandoned"
"""The name of threads whose work nobody wants any more; the process ends without them."""

INTERRUPT: ContextVar[Callable[[], None]] = ContextVar("interrupt", default=lambda: None)
"""A function that raises if the work of this thread is to be given up."""


def checkpoint() -> None:
    """Give up the work if nobody wants it any more; called between batches."""
    INTERRUPT.get()()


def track(
    progress: Progress,
    items: Iterable[Item],
    label: str,
    total: int | None = None,
    size: Callable[[Item], int] = lambda item: 1,
) -> Iterator[Item]:
    """Yield the items; each counts, as ``size`` of it, when the next one is asked for."""
    with progress.task(label, total) as advance:
        for item in items:
            yield item
            advance(size(item))


def resolve(progress: bool | Progress) -> Progress:
    """Return the listener of an argument ``progress``: True is ``Bars``, False is ``SILENT``."""
    if isinstance(progress, bool):
        return Bars() if progress else SILENT
    return progress


@cache
def console() -> Console:
    """Return the console on standard error; bars and messages share it, so that they do not mix."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)


class Bars:
    """Progress bars on a terminal and in a notebook; elsewhere, a line a minute for a task with a status."""

    LINE_SECONDS: ClassVar[float] = 60.0
    DRAW_SECONDS: ClassVar[float] = 0.1
    PROCESS_SECONDS: ClassVar[float] = 20.0  # between two lines of a process
    _busy: ClassVar[bool] = False  # one bar at a time: a task within a task is not shown

    def __init__(self, on: Console | None = None) -> None:
        self.console = console() if on is None else on

    @property
    def can_draw(self) -> bool:
        """True if bars can be drawn; in a notebook rich needs ipywidgets."""
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
            if self.can_draw:
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


class Sender:
    """A listener in a process that works for another one, which shows its tasks in one line."""

    SEND_SECONDS: ClassVar[float] = 0.2

    def __init__(self, queue: Queue[Any], line: str) -> None:
        self.queue, self.line, self.busy = queue, line, False

    @contextmanager
    def task(
        self, label: str, total: int | None = None, *, status: str = "", done: int = 0
    ) -> Iterator[Advance]:
        if self.busy:  # a task within a task is not shown
            yield no_advance
            return
        self.busy, sent = True, time.monotonic()
        self.queue.put((self.line, label, done, total, True))

        def advance(amount: int = 1, /, **fields: Any) -> None:
            nonlocal done, sent
            done += amount
            if time.monotonic() - sent > self.SEND_SECONDS:
                self.queue.put((self.line, label, done, total, False))
                sent = time.monotonic()

        try:
            yield advance
        finally:
            self.queue.put((self.line, label, done, total, False))
            self.busy = False


@contextmanager
def lines_of_processes(lines: Iterable[str], progress: Progress) -> Iterator[Queue[Any]]:
    """Show one line for each process; its ``Sender`` writes to the queue that is returned.

    On a terminal each line is a bar with the time that is left; elsewhere it is printed every 20 seconds.
    """
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    with multiprocessing.get_context("spawn").Manager() as manager:
        queue = manager.Queue()
        shown = progress.console if isinstance(progress, Bars) else None
        drawn = isinstance(progress, Bars) and progress.can_draw
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:3.0f}%"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[label]}"),
        )
        bars = RichProgress(*columns, console=shown, disable=not drawn, transient=True)
        tasks = {line: bars.add_task(line, total=None, label="waits") for line in lines}

        def show() -> None:
            said: dict[str, float] = {}
            while (message := queue.get()) is not None:
                line, label, done, total, begins = message
                if begins:
                    bars.reset(tasks[line], total=total, completed=done, label=label)
                    said[line] = time.monotonic()
                bars.update(tasks[line], completed=done)
                if shown and not drawn and total and time.monotonic() - said[line] > Bars.PROCESS_SECONDS:
                    said[line] = time.monotonic()
                    left = bars.tasks[tasks[line]].time_remaining
                    ends = "" if left is None else f", {left:.0f} s left"
                    shown.print(f"{line}: {label}, {done / total:.0%}{ends}", markup=False, soft_wrap=True)

        thread = threading.Thread(target=show, daemon=True)
        with bars:
            thread.start()
            try:
                yield queue
            finally:
                queue.put(None)
                thread.join()
