"""Ray as the engine of `pool`: the same work, on as many machines as there are.

Every machine has this package and sees the same files. What a lost machine had to do is done again by
another; Ray's own settings (``RAY_AUTH_MODE``, ``RAY_AUTH_TOKEN_PATH``, …) are left as they are.
"""

from __future__ import annotations

import logging
import os
import pickle
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ssdvae.config import EngineSettings, cores
from ssdvae.errors import UserError, not_installed

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

RETRIES = 5
"""How often a piece of work is given to another process when the one that had it dies."""

AHEAD = 3
"""Results that may wait for those before them, for each process: what waits is held in memory."""

STORE = 2**28
"""Bytes of the object store of a cluster that is started here; more goes to the disk."""


@contextmanager
def joined(engine: EngineSettings) -> Iterator[Any]:
    """The library, connected: to the cluster that is named, to one that is there, or to one made for this."""
    try:
        import ray
    except ImportError as error:
        raise not_installed("ray", "ray", "--engine ray") from error
    if ray.is_initialized():
        yield ray
        return
    mine: dict[str, Any] = {"address": engine.address}
    if engine.address is None:
        # Nobody is told of a cluster that lives for one command, and its processes give way to others as
        # much as the command does, and no more.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")
        size = {"num_cpus": engine.jobs or cores(), "object_store_memory": STORE}
        mine = {"address": "local", "include_dashboard": False, **size}
    try:
        _knock(engine.address or "")
        ray.init(**mine, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        where = engine.address or "of this machine"
        hint = "is it running (ray start --head), and is its token the one that is used here?"
        raise UserError(f"cannot join the Ray cluster {where}: {_first_line(error)}\n{hint}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Whether anybody is at HOST:PORT; Ray itself would go on asking for minutes."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def size(ray: Any, engine: EngineSettings, gpu: bool = False) -> int:
    """How many pieces of work go on at once: as many as were asked for, or as there is room for now."""
    return engine.jobs or max(1, int(ray.cluster_resources().get("GPU" if gpu else "CPU", 1)))


def task(ray: Any, function: Callable[..., Result], gpu: bool = False) -> Any:
    """A function to be called by ``.remote(…)``, on one core, and again elsewhere if a machine is lost."""
    return ray.remote(num_cpus=1, num_gpus=int(gpu), max_retries=RETRIES)(function)


def map_on_cluster(
    chunks: Iterable[Chunk],
    work: Callable[[Chunk], Result],
    engine: EngineSettings,
    advice: str = "",
    gpu: bool = False,
) -> Iterator[Result]:
    """As ``map_in_processes``. Reading ahead is bounded: no more is held than can be done soon."""
    with joined(engine) as ray:
        # In bytes, so that each process makes the work itself, once, and may change it.
        packed = ray.put(pickle.dumps((os.getcwd(), work)))
        there = task(ray, _work_there, gpu)
        waiting: deque[Any] = deque()
        try:
            for chunk in _until_error(chunks):
                waiting.append(
                    _Failed(chunk.error) if isinstance(chunk, _Failed) else there.remote([packed], chunk)
                )
                while len(waiting) >= AHEAD * size(ray, engine, gpu):
                    yield _result(ray, waiting.popleft(), advice)
                _wait_for_room(ray, waiting, engine)
            while waiting:
                yield _result(ray, waiting.popleft(), advice)
        finally:
            for left in waiting:
                if not isinstance(left, _Failed):
                    ray.cancel(left, force=True)


class Call:
    """A function that returns an exit code, called somewhere on the cluster."""

    def __init__(self, ray: Any, function: Callable[..., int], *args: Any, gpu: bool = False) -> None:
        self.ray, self.ref = ray, task(ray, function, gpu).remote(*args)

    def poll(self) -> int | None:
        """The exit code, once it is known."""
        done, _ = self.ray.wait([self.ref], timeout=0)
        if not done:
            return None
        try:
            code: int = self.ray.get(self.ref)
            return code
        except self.ray.exceptions.RayError:
            return -signal.SIGKILL

    def stop(self) -> None:
        """Ctrl-C, where it is called."""
        self.ray.cancel(self.ref)

    def wait(self) -> None:
        self.ray.wait([self.ref])


class _Failed:
    """In the place of the first chunk that could not be read: what comes before it is done first."""

    def __init__(self, error: UserError) -> None:
        self.error = error


def _until_error(chunks: Iterable[Any]) -> Iterator[Any]:
    try:
        yield from chunks
    except UserError as error:
        yield _Failed(error)


def _wait_for_room(ray: Any, waiting: Iterable[Any], engine: EngineSettings) -> None:
    """Where --jobs is given, no more than so many go on at once, even if the cluster is larger."""
    refs = [ref for ref in waiting if not isinstance(ref, _Failed)]
    if engine.jobs and len(refs) >= engine.jobs:
        ray.wait(refs, num_returns=len(refs) - engine.jobs + 1, fetch_local=False)


def _result(ray: Any, ref: Any, advice: str) -> Any:
    if isinstance(ref, _Failed):
        raise ref.error
    try:
        return ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        # What the work itself raised, as it was raised there.
        raise error.cause from error
    except ray.exceptions.RayError as error:
        raise UserError(
            f"Ray gave up a piece of work after {RETRIES} new attempts: {_first_line(error)}\n"
            f"{advice and advice + chr(10)}is the memory of a machine full? then try fewer --jobs"
        ) from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


_work: tuple[str, Callable[[Any], Any]] | None = None
"""What this process did last, with the name of its bytes: parsers and models are loaded once."""


def _work_there(packed: list[Any], chunk: Any) -> Any:
    global _work
    name = packed[0].hex()
    if _work is None or _work[0] != name:
        import ray

        folder, work = pickle.loads(ray.get(packed[0]))
        os.chdir(folder)  # to which the names of files may be relative
        _work = name, work
    return _work[1](chunk)
