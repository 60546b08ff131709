"""Where cells run: in processes of this machine, or of a Ray cluster."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import torch

from ssdvae.config import EngineSettings, cores
from ssdvae.locks import held
from ssdvae.models.base import fastest_device
from ssdvae.paper.job import Job
from ssdvae.runs import LOCK

Environment = dict[str, str]


class CellProcess(Protocol):
    """A cell that was started, wherever it is."""

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        ...

    def stop(self) -> None:
        """Let it save and stop."""
        ...

    def wait(self) -> object:
        """Until it has ended."""
        ...


Start = Callable[[Job, Environment, Path], CellProcess]
"""Starts a cell in a place, with a file that its log is added to."""


@contextlib.contextmanager
def open_places(
    engine: EngineSettings, cells: int, lock: int
) -> Iterator[tuple[Sequence[Environment], Start]]:
    """One place for each cell that runs at the same time, and how one is started there.

    ``lock`` is the open file that says that a sweep is at work: processes of this machine hold it, too.
    """
    if engine.engine == "processes":
        yield environments(engine.jobs, cells), lambda job, place, log: _Local(job, place, log, lock)
        return
    from ssdvae.cluster import Call, joined, size  # an extra

    with joined(engine) as ray:
        gpu = ray.cluster_resources().get("GPU", 0) > 0
        places: list[Environment] = [{} for _ in range(min(cells, size(ray, engine, gpu)))]
        yield (
            places,
            lambda job, place, log: Call(ray, _run_there, os.getcwd(), job.to_json(), str(log), gpu=gpu),
        )


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


def _command(job: str, log: Path, **options: Any) -> subprocess.Popen[bytes]:
    """A cell watches its standard input, which closes when whoever started it ends, in whatever way."""
    with open(log, "ab") as file:
        return subprocess.Popen(
            [sys.executable, "-m", "ssdvae.paper.job", job],
            stdin=subprocess.PIPE,
            stdout=file,
            stderr=subprocess.STDOUT,
            **options,
        )


class _Local:
    def __init__(self, job: Job, place: Environment, log: Path, lock: int) -> None:
        # Ctrl-C at a terminal goes to all processes; a cell is stopped by us, once, so that it can save. What
        # is blocked here stays blocked in the new process.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process = _command(job.to_json(), log, env={**os.environ, **place}, pass_fds=[lock])
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def poll(self) -> int | None:
        return self.process.poll()

    def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()

    def wait(self) -> int:
        return self.process.wait()


def _run_there(folder: str, text: str, log: str) -> int:
    """A cell on some machine of the cluster; returns its exit code."""
    os.chdir(folder)
    run = Job.from_json(text).run
    if run.is_dir():
        # The process that a lost machine left may still be saving.
        with held(run / LOCK, None):
            pass
    process = _command(text, Path(log))
    try:
        return process.wait()
    except BaseException:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        raise
