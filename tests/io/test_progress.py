"""Progress: what is counted, who sees it, and when nothing is shown."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from rich.console import Console

from ssdvae.io.progress import SILENT, Advance, Bars, Progress, Sender, lines_of_processes, resolve, track


class Recorded:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.tasks: list[tuple[str, int | None]] = []
        self.done = 0

    @contextmanager
    def task(
        self, label: str, total: int | None = None, *, status: str = "", done: int = 0
    ) -> Iterator[Advance]:
        self.tasks.append((label, total))

        def advance(amount: int = 1, /, **fields: Any) -> None:
            self.done += amount

        yield advance


def terminal() -> Console:
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("progress", [SILENT, Bars(terminal()), Recorded()])
def test_all_are_progress_and_items_go_by_unchanged(progress: Progress) -> None:
    assert isinstance(progress, Progress)
    items = ["a", "bb", "ccc"]
    assert list(track(progress, items, "reading", total=6, size=len)) == items


def test_items_count_as_much_as_they_weigh_when_they_are_done() -> None:
    seen = Recorded()
    items = track(seen, ["a", "bb", "ccc"], "reading", total=6, size=len)
    next(items)
    assert seen.done == 0
    next(items)
    assert seen.done == 1
    list(items)
    assert seen.done == 6
    assert seen.tasks == [("reading", 6)]


def test_true_is_a_bar_false_is_silence_and_any_other_is_taken() -> None:
    mine = Recorded()
    assert isinstance(resolve(True), Bars)
    assert resolve(False) is SILENT
    assert resolve(mine) is mine


def test_a_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bars, "DRAW_SECONDS", -1.0)
    console = terminal()
    bars = Bars(console)
    with bars.task("step", 4, status="loss {loss:.2f}", done=1) as advance:
        advance(2, loss=1.5)
        # A task within a task is not shown: there is one bar at a time.
        with bars.task("within", 9) as inner:
            inner(3)
    shown = text(console)
    assert "step" in shown
    assert "3/4" in shown
    assert "loss 1.50" in shown
    assert "within" not in shown
    with bars.task("again") as advance:
        advance()
    assert "again" in text(console)


def test_elsewhere_a_task_with_a_status_says_it_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    console = Console(file=io.StringIO(), width=100)
    with Bars(console).task("step", 9, status="epoch {epoch}  loss {loss:.2f}", done=2) as advance:
        for _ in range(5):
            now += 25.0
            advance(1, epoch=1, loss=3.456)
    assert text(console) == "step 5 of 9  epoch 1  loss 3.46\n"
    with Bars(console).task("reading", 9) as advance:
        now += 1000.0
        advance()
    assert text(console).count("\n") == 1


def test_a_notebook_has_bars_where_it_can_draw_them(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = Console(file=io.StringIO(), force_jupyter=True)
    for installed in (True, False):
        monkeypatch.setattr("importlib.util.find_spec", lambda name, there=installed: there or None)
        assert Bars(notebook).can_draw == installed
    assert not Bars(Console(file=io.StringIO())).can_draw


def test_a_task_that_fails_makes_place_for_the_next() -> None:
    console = terminal()
    with pytest.raises(ValueError, match="it failed"), Bars(console).task("first", 1):
        raise ValueError("it failed")
    with Bars(console).task("second", 1):
        pass
    assert "second" in text(console)


def test_lines_of_processes_say_the_time_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Bars, "PROCESS_SECONDS", 0.0)
    monkeypatch.setattr(Sender, "SEND_SECONDS", 0.0)
    out = io.StringIO()
    bars = Bars(Console(file=out, width=80))
    with lines_of_processes(["one", "other"], bars) as queue:
        for name in ("one", "other"):
            sender = Sender(queue, name)
            with sender.task("step", 40) as advance, sender.task("inner", 7) as inner:
                for _ in range(40):
                    advance(1)
                    inner(1)
                    time.sleep(0.005)
    shown = out.getvalue().splitlines()
    for name in ("one", "other"):
        mine = [line for line in shown if line.startswith(f"{name}: ")]
        assert mine
        assert all("step" in line and "%" in line for line in mine)
        assert any(" s left" in line for line in mine)
    assert "inner" not in out.getvalue()
