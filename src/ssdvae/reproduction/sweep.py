"""A sweep: many trials, some at a time, each in a process of its own, here or on a Ray cluster.

A trial that fails does not stop the others. However the sweep ends, its trials end too: each watches its
standard input, which closes with the sweep, saves a checkpoint and stops.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import mean
from typing import Any, Protocol

import torch

from ssdvae.data.options import EngineOptions, cores
from ssdvae.io.files import translate_os_errors
from ssdvae.io.locks import lock_file, lock_path
from ssdvae.io.progress import Progress
from ssdvae.io.run import LOCK
from ssdvae.models.base import fastest_device
from ssdvae.reproduction.job import Job
from ssdvae.reproduction.paper import Trial
from ssdvae.training.trainer import Interrupted, Signals

log = logging.getLogger(__name__)

PAUSE = 0.1
"""Seconds between two looks at the running trials."""

LAST_LINES = 8
"""Lines of a failed trial's log that are shown."""


class SweepState:
    """The trials of a sweep, each in one of four states, and how long the rest may take."""

    def __init__(self, left: Iterable[Trial], done: Iterable[Trial], workers: int) -> None:
        self.left, self.done = dict.fromkeys(left), dict.fromkeys(done)
        self.running: dict[Trial, float] = {}  # since when
        self.failed: list[Trial] = []
        self.seconds: dict[Trial, float] = {}  # of the trials that this sweep has made
        self.total = len(self.left) + len(self.done)
        self.workers = workers
        self.kinds = list(dict.fromkeys(_kind(trial) for trial in (*self.done, *self.left)))

    def start(self, trial: Trial) -> None:
        del self.left[trial]
        self.running[trial] = time.monotonic()

    def finish(self, trial: Trial) -> float:
        """Return the seconds that a trial took."""
        self.seconds[trial] = time.monotonic() - self.running.pop(trial)
        self.done[trial] = None
        return self.seconds[trial]

    def fail(self, trial: Trial) -> None:
        del self.running[trial]
        self.failed.append(trial)

    @property
    def counts(self) -> str:
        names = ("done", "running", "left", "failed")
        return ", ".join(f"{number} {name}" for name in names if (number := len(getattr(self, name))))

    @property
    def summary(self) -> str:
        remaining = self.remaining()
        return self.counts + ("" if remaining is None else f", about {duration(remaining)} left")

    def counts_by_kind(self) -> list[tuple[str, int, int, int, int]]:
        """Return how many trials of each kind are done, running, left and failed."""
        done, running, left, failed = (
            Counter(map(_kind, trials)) for trials in (self.done, self.running, self.left, self.failed)
        )
        return [(name, done[name], running[name], left[name], failed[name]) for name in self.kinds]

    def at_work(self) -> str:
        """Return the running trials, and for how long they have run."""
        now = time.monotonic()
        return ", ".join(f"{trial.name} ({duration(now - since)})" for trial, since in self.running.items())

    def remaining(self) -> float | None:
        """Return the seconds to the end, by the finished trials of the same kind, else by all finished."""
        if not self.seconds or not (self.left or self.running):
            return None
        now = time.monotonic()
        work = sum(map(self._expected, self.left))
        work += sum(max(0.0, self._expected(trial) - (now - since)) for trial, since in self.running.items())
        return work / self.workers

    def _expected(self, trial: Trial) -> float:
        same = [seconds for made, seconds in self.seconds.items() if _kind(made) == _kind(trial)]
        return mean(same or self.seconds.values())


def _kind(trial: Trial) -> str:
    """Return a name that is shared by trials of about the same cost."""
    return trial.row.kind + (", single events" if trial.row.single else "")


def duration(seconds: float) -> str:
    """Return a duration in the two units that matter."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


# Launchers: how a trial is started, on this machine or on a cluster.

Environment = dict[str, str]
"""The environment variables that a worker sets."""


class TrialProcess(Protocol):
    """A trial that was started: ``stop`` lets it save and end."""

    def poll(self) -> int | None: ...

    def stop(self) -> None: ...

    def wait(self) -> object: ...


Launch = Callable[[Job, Environment, Path], TrialProcess]
"""Starts a job in an environment, with a file that its log is appended to."""


@contextmanager
def open_launcher(
    options: EngineOptions, trials: int, lock: int
) -> Iterator[tuple[Sequence[Environment], Launch]]:
    """Yield an environment for each trial that runs at the same time, and what starts a job in one.

    ``lock`` is the open file that says that a sweep is at work: processes of this machine hold it, too.
    """
    if options.engine == "processes":
        yield environments(options.jobs, trials), partial(_start_here, lock=lock)
        return
    from ssdvae.engine.ray_cluster import Call, connect, size  # an extra

    with connect(options) as ray:
        gpu = ray.cluster_resources().get("GPU", 0) > 0
        workers: list[Environment] = [{} for _ in range(min(trials, size(ray, options, gpu)))]
        yield (
            workers,
            lambda job, place, log: Call(ray, _run_on_node, os.getcwd(), job.to_json(), str(log), gpu=gpu),
        )


def environments(jobs: int, trials: int) -> list[Environment]:
    """Return the environment of each of the trials that run at the same time: its GPU, or its threads."""
    if torch.cuda.is_available():
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        gpus = visible.split(",") if visible else [str(n) for n in range(torch.cuda.device_count())]
        count = min(jobs or len(gpus), trials)
        return [{"CUDA_VISIBLE_DEVICES": gpus[n % len(gpus)]} for n in range(count)]
    count = min(jobs or (cores() if fastest_device().type == "cpu" else 1), trials)
    # Who has chosen a number of threads has a reason.
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, cores() // max(1, count)))
    return [{"OMP_NUM_THREADS": threads} for _ in range(count)]


class _JobProcess(subprocess.Popen[bytes]):
    """A job, which watches its standard input and stops when that closes."""

    def __init__(self, job: str, log: Path, **options: Any) -> None:
        with open(log, "ab") as file:
            command = [sys.executable, "-m", "ssdvae.reproduction.job", job]
            super().__init__(command, stdin=subprocess.PIPE, stdout=file, stderr=subprocess.STDOUT, **options)

    def stop(self) -> None:
        assert self.stdin is not None
        self.stdin.close()


def _start_here(job: Job, environment: Environment, log: Path, lock: int) -> _JobProcess:
    # Ctrl-C at a terminal goes to all processes; a trial is stopped by us, once, so that it can save.
    # What is blocked here stays blocked in the new process.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return _JobProcess(job.to_json(), log, env={**os.environ, **environment}, pass_fds=[lock])
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _run_on_node(folder: str, job: str, log: str) -> int:
    """Run a job on a machine of the cluster; returns its exit code."""
    os.chdir(folder)
    run = Job.from_json(job).run
    if run.is_dir():
        # The process that a lost machine left may still be saving.
        with lock_path(run / LOCK, None):
            pass
    process = _JobProcess(job, Path(log))
    try:
        return process.wait()
    except BaseException:
        process.stop()
        process.wait()
        raise


# The sweep itself.


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[int]:
    """Refuse a folder in which another sweep, or a trial of one, is at work; yields the lock to hand on."""
    with translate_os_errors(folder, "write"):
        folder.mkdir(parents=True, exist_ok=True)
        file = open(folder / ".lock", "w")  # noqa: SIM115  # closed below
    with file:
        busy = f"another sweep is at work in {folder}, or its trials are still stopping"
        lock_file(file, f"{busy}\nwait for it, or choose another --out")
        yield file.fileno()


@dataclass
class _Running:
    trial: Trial
    process: TrialProcess
    environment: Environment
    log: Path
    log_start: int  # the end of what an earlier attempt has written


def sweep(
    jobs: Mapping[Trial, Job],
    logs: Path,
    workers: Sequence[Environment],
    launch: Launch,
    state: SweepState,
    after_each: Callable[[], object],
    progress: Progress,
    watch: Callable[[SweepState], None] | None = None,
) -> dict[Trial, str]:
    """Run all jobs; returns the last lines of the logs of the trials that failed."""
    waiting, free = deque(jobs), list(workers)
    running: list[_Running] = []
    failed: dict[Trial, str] = {}
    logs.mkdir(parents=True, exist_ok=True)
    # Who watches sees the start of each trial without a message.
    start_level = logging.INFO if watch is None else logging.DEBUG
    log.info(state.summary)
    with Signals() as signals, progress.task("trials", state.total, done=len(state.done)) as advance:
        try:
            while waiting or running:
                while waiting and free and not signals.received:
                    trial = waiting.popleft()
                    running.append(_start(trial, jobs[trial], free.pop(), logs, launch))
                    state.start(trial)
                    log.log(start_level, f"started {trial.name}")
                if signals.received:
                    break
                for one in list(running):
                    if (code := one.process.poll()) is None:
                        continue
                    running.remove(one)
                    free.append(one.environment)
                    if code:
                        failed[one.trial] = _end_of_log(one, code)
                        state.fail(one.trial)
                        log.warning(failed[one.trial])
                    else:
                        took = duration(state.finish(one.trial))
                        log.info(f"finished {one.trial.name} in {took}; {state.summary}")
                        after_each()
                    advance()
                if watch is not None:
                    watch(state)
                time.sleep(PAUSE)
        finally:
            # First all, so that they save at the same time.
            for one in running:
                one.process.stop()
            for one in running:
                one.process.wait()
        if signals.received:
            raise Interrupted(
                f"stopped with {len(state.done)} of {state.total} trials done; the others have saved\n"
                "go on with the same command",
                signals.received,
            )
    return failed


def _start(trial: Trial, job: Job, environment: Environment, logs: Path, launch: Launch) -> _Running:
    path = logs / f"{trial.name}.log"
    log_start = path.stat().st_size if path.exists() else 0
    return _Running(trial, launch(job, environment, path), environment, path, log_start)


def _end_of_log(one: _Running, code: int) -> str:
    with open(one.log, "rb") as file:
        file.seek(one.log_start)
        lines = file.read().decode("utf-8", "replace").strip().splitlines()[-LAST_LINES:]
    how = f"exit code {code}" if code > 0 else f"killed by signal {-code}; was the memory full?"
    return "\n".join([f"{one.trial.name} failed ({how}); its log is {one.log}", *(f"  {x}" for x in lines)])
