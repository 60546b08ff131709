"""What a person sees while waiting: bars on a terminal, plain lines elsewhere; always on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

console = Console(stderr=True, highlight=False)

Item = TypeVar("Item")


def say(message: str) -> None:
    """One line (or more) for the person at the terminal."""
    console.print(message, markup=False, soft_wrap=True)


def counted(
    items: Iterable[Item],
    label: str,
    size: Callable[[Item], int] = lambda item: 1,
    total: int | None = None,
) -> Iterator[Item]:
    """Items going by, whose number need not be known beforehand; each may count for several."""
    if not console.is_terminal:
        yield from items
        return
    known = () if total is None else (BarColumn(), TimeRemainingColumn())
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TextColumn("{task.completed:,.0f}"), *known)
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(label, total=total)
        pending, shown = 0, time.monotonic()
        for place, item in enumerate(items):
            yield item
            pending += size(item)
            # Asking for the time is cheap, drawing is not.
            if (place % 64 == 63 or pending > 64) and time.monotonic() - shown > 0.1:
                progress.advance(task, pending)
                pending, shown = 0, time.monotonic()


@contextmanager
def bar(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar to be advanced by calling what this yields."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=total)
        yield lambda amount: progress.advance(task, amount)


def table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table whose first columns are names and whose other columns are figures."""
    # As text: what stands in brackets may be a word of the data, and is no markup.
    shown = Table(title=Text(title), title_justify="left")
    for name in head:
        shown.add_column(Text(name))
    for row in rows:
        shown.add_row(*map(Text, row))
    return shown


class TrainingDisplay:
    """Loss, speed and time left; a line for each validation."""

    LINE_SECONDS = 60.0

    def __init__(self, enabled: bool = True) -> None:
        self.enabled = enabled
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.2f}  {task.fields[speed]:,.0f} documents/s"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not (enabled and console.is_terminal),
        )
        self.task = self.progress.add_task("training", total=None, loss=float("nan"), speed=0.0)

    def __enter__(self) -> Self:
        self.progress.start()
        self.shown = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.progress.stop()

    def say(self, message: str) -> None:
        if self.enabled:
            say(message)

    def step(self, step: int, total: int, epoch: int, loss: float, speed: float) -> None:
        self.progress.update(
            self.task, completed=step, total=total, description=f"epoch {epoch}", loss=loss, speed=speed
        )
        if not console.is_terminal and time.monotonic() - self.shown > self.LINE_SECONDS:
            self.shown = time.monotonic()
            self.say(f"step {step} of {total}  epoch {epoch}  loss {loss:.2f}  {speed:,.0f} documents/s")

    def validation(self, record: dict[str, Any], best: bool) -> None:
        perplexity, accuracy = record.get("ppl"), record.get("frame_accuracy")
        figures = [] if perplexity is None else [f"ppl {_short(perplexity)}"]
        figures += [f"bound {_short(record['ppl_bound'])}"] if "ppl_bound" in record else []
        figures += [] if accuracy is None else [f"frames {accuracy:.1%}"]
        self.say(
            f"epoch {record['epoch']:g}  step {record['step']}  train loss {record['train_loss']:.2f}"
            f"  valid {'  '.join(figures)}  {record['seconds']:.0f} s{'  *' if best else ''}"
        )


def _short(figure: float) -> str:
    """With two digits after the point, unless it has more before it than anybody reads."""
    return f"{figure:.2f}" if figure < 1e7 else f"{figure:.3g}"
