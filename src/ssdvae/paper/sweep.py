"""Many cells, some at a time, each in a process of its own.

A cell that fails does not stop the others. However the sweep ends, its cells end too: each watches its
standard input, which closes with the sweep, saves a checkpoint and stops.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import torch

from ssdvae.config import cores
from ssdvae.files import translate_os_errors
from ssdvae.locks import lock
from ssdvae.models.base import fastest_device
from ssdvae.paper.cells import Cells, duration
from ssdvae.paper.grid import Cell
from ssdvae.paper.job import Job
from ssdvae.progress import Progress
from ssdvae.training.signals import Interrupted, Signals

log = logging.getLogger(__name__)

PAUSE = 0.1
"""Seconds between two looks at the running cells."""

LAST_LINES = 8
"""Lines of a failed cell's log that are shown."""

Environment = dict[str, str]


def environments(jobs: int, cells: int) -> list[Environment]:
    """What sets the environment of each of the cells that run at the same time apart from ours."""
    if torch.cuda.is_available():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        gpus = visible.split(",") if visible else [str(n) for n in range(torch.cuda.device_count())]
        count = min(jobs or len(gpus), cells)
        return [{"CUDA_VISIBLE_DEVICES": gpus[n % len(gpus)]} for n in range(count)]
    count = min(jobs or (cores() if fastest_device().type == "cpu" else 1), cells)
    # Who has chosen a number of threads has a reason.
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, cores() // max(1, count)))
    return [{"OMP_NUM_THREADS": threads} for _ in range(count)]


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
    process: subprocess.Popen[bytes]
    place: Environment
    log: Path
    log_start: int  # what an earlier attempt has written is not ours
    started: float


def sweep(
    jobs: Mapping[Cell, Job],
    logs: Path,
    places: Sequence[Environment],
    lock: int,
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
                    running.append(_start(cell, jobs[cell], free.pop(), logs, lock))
                    cells.start(cell)
                    log.log(start_level, f"started {cell.name}")
                if signals.received:
                    break
                for one in [one for one in running if one.process.poll() is not None]:
                    running.remove(one)
                    free.append(one.place)
                    if one.process.returncode:
                        failed[one.cell] = _end_of_log(one)
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


def _start(cell: Cell, job: Job, place: Environment, logs: Path, lock: int) -> _Running:
    path = logs / f"{cell.name}.log"
    # Ctrl-C at a terminal goes to all processes; a cell is stopped by us, once, so that it can save. What
    # is blocked here stays blocked in the new process.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with open(path, "ab") as log:
            start = log.tell()
            process = subprocess.Popen(
                [sys.executable, "-m", "ssdvae.paper.job", job.to_json()],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, **place},
                pass_fds=[lock],
            )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    return _Running(cell, process, place, path, start, time.monotonic())


def _stop(running: Sequence[_Running]) -> None:
    """Let all cells save and stop, at the same time."""
    for one in running:
        pipe: IO[bytes] | None = one.process.stdin
        if pipe is not None:
            pipe.close()
    for one in running:
        one.process.wait()


def _end_of_log(one: _Running) -> str:
    with open(one.log, "rb") as file:
        file.seek(one.log_start)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()[-LAST_LINES:]
    code = one.process.returncode
    how = f"exit code {code}" if code > 0 else f"killed by signal {-code}; was the memory full?"
    return "\n".join([f"{one.cell.name} failed ({how}); its log is {one.log}", *(f"  {x}" for x in lines)])
