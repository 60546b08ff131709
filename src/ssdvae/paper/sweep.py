"""Many cells, some at a time, each in a process of its own, here or on a cluster.

A cell that fails does not stop the others. However the sweep ends, its cells end too: each watches its
standard input, which closes with the sweep, saves a checkpoint and stops.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ssdvae.files import translate_os_errors
from ssdvae.locks import lock
from ssdvae.paper.cells import Cells, duration
from ssdvae.paper.grid import Cell
from ssdvae.paper.job import Job
from ssdvae.paper.places import CellProcess, Environment, Start
from ssdvae.progress import Progress
from ssdvae.training.signals import Interrupted, Signals

log = logging.getLogger(__name__)

PAUSE = 0.1
"""Seconds between two looks at the running cells."""

LAST_LINES = 8
"""Lines of a failed cell's log that are shown."""


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[int]:
    """Refuse a folder in which another sweep, or a cell of one, is still at work; yields what to hand on."""
    with translate_os_errors(folder, "write"):
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".lock", "w")  # noqa: SIM115  # closed below
    with file:
        busy = f"another sweep is at work in {folder}, or its cells are still stopping"
        lock(file, f"{busy}\nwait for it, or choose another --out")
        yield file.fileno()


@dataclass
class _Running:
    cell: Cell
    process: CellProcess
    place: Environment
    log: Path
    log_start: int  # what an earlier attempt has written is not ours
    started: float


def sweep(
    jobs: Mapping[Cell, Job],
    logs: Path,
    places: Sequence[Environment],
    start: Start,
    cells: Cells,
    after_each: Callable[[], object],
    progress: Progress,
    watch: Callable[[Cells], None] | None = None,
) -> dict[Cell, str]:
    """Run all jobs; returns the last words of the cells that failed."""
    waiting, free = deque(jobs), list(places)
    running: list[_Running] = []
    failed: dict[Cell, str] = {}
    logs.mkdir(parents=True, exist_ok=True)
    # Who watches sees the start of each cell by himself.
    start_level = logging.INFO if watch is None else logging.DEBUG
    log.info(cells.summary)
    task = progress.task("cells", cells.total, done=len(cells.done))
    with Signals() as signals, task as advance:
        try:
            while waiting or running:
                while waiting and free and not signals.received:
                    cell = waiting.popleft()
                    running.append(_started(cell, jobs[cell], free.pop(), logs, start))
                    cells.start(cell)
                    log.log(start_level, f"started {cell.name}")
                if signals.received:
                    break
                for one in list(running):
                    if (code := one.process.poll()) is None:
                        continue
                    running.remove(one)
                    free.append(one.place)
                    if code:
                        failed[one.cell] = _end_of_log(one, code)
                        cells.fail(one.cell)
                        log.warning(failed[one.cell])
                    else:
                        seconds = time.monotonic() - one.started
                        cells.finish(one.cell, seconds)
                        log.info(f"finished {one.cell.name} in {duration(seconds)}; {cells.summary}")
                        after_each()
                    advance()
                if watch is not None:
                    watch(cells)
                time.sleep(PAUSE)
        finally:
            _stop(running)
        if signals.received:
            raise Interrupted(
                f"stopped with {len(cells.done)} of {cells.total} cells done; the others have saved\n"
                "go on with the same command",
                signals.received,
            )
    return failed


def _started(cell: Cell, job: Job, place: Environment, logs: Path, start: Start) -> _Running:
    path = logs / f"{cell.name}.log"
    log_start = path.stat().st_size if path.exists() else 0
    return _Running(cell, start(job, place, path), place, path, log_start, time.monotonic())


def _stop(running: Sequence[_Running]) -> None:
    """Let all cells save and stop, at the same time."""
    for one in running:
        one.process.stop()
    for one in running:
        one.process.wait()


def _end_of_log(one: _Running, code: int) -> str:
    with open(one.log, "rb") as file:
        file.seek(one.log_start)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()[-LAST_LINES:]
    how = f"exit code {code}" if code > 0 else f"killed by signal {-code}; was the memory full?"
    return "\n".join([f"{one.cell.name} failed ({how}); its log is {one.log}", *(f"  {x}" for x in lines)])
