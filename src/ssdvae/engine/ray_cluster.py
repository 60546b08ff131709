"""Ray as the engine of `pool`: the same work on many machines.

Every machine has this package and sees the same files. The work of a lost machine is done again by another.
Ray's own settings (``RAY_AUTH_MODE``, ``RAY_AUTH_TOKEN_PATH``, …) are respected.
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

from ssdvae.data.options import EngineOptions, cores
from ssdvae.engine.pool import AHEAD, in_order
from ssdvae.io.errors import UserError, not_installed

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")

RETRIES = 5
"""Attempts at a piece of work whose process dies."""

STORE = 2**28
"""Bytes of the object store of a local cluster; the rest is written to disk."""


@contextmanager
def connect(engine: EngineOptions) -> Iterator[Any]:
    """Yield Ray, connected to the named cluster, to the present one, or to a new one on this machine."""
    try:
        import ray
    except ImportError as error:
        raise not_installed("ray", "ray", "--engine ray") from error
    if ray.is_initialized():
        yield ray
        return
    mine: dict[str, Any] = {"address": engine.address}
    if engine.address is None:
        # No usage statistics for one command; its processes have the priority of the command itself.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_worker_niceness", "0")
        size = {"num_cpus": engine.jobs or cores(), "object_store_memory": STORE}
        mine = {"address": "local", "include_dashboard": False, **size}
    try:
        _knock(engine.address or "")
        ray.init(**mine, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # a node that is not up in time is an Exception of no other class
        where = engine.address or "of this machine"
        hint = "is it running (ray start --head), and is its token the one that is used here?"
        raise UserError(f"cannot join the Ray cluster {where}: {_first_line(error)}\n{hint}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Raise ``OSError`` if nobody listens at HOST:PORT; Ray itself would go on asking for minutes."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def size(ray: Any, engine: EngineOptions, gpu: bool = False) -> int:
    """Return the number of tasks that run at once: --jobs, or the resources of the cluster now."""
    return engine.jobs or max(1, int(ray.cluster_resources().get("GPU" if gpu else "CPU", 1)))


def task(ray: Any, function: Callable[..., Result], gpu: bool = False) -> Any:
    """Return a function with ``.remote(…)``, which takes one core and is retried if a machine is lost."""
    return ray.remote(num_cpus=1, num_gpus=int(gpu), max_retries=RETRIES)(function)


def map_on_cluster(
    chunks: Iterable[Chunk],
    work: Callable[[Chunk], Result],
    engine: EngineOptions,
    advice: str = "",
    gpu: bool = False,
) -> Iterator[Result]:
    """Apply ``work`` to each chunk on the cluster, as ``map_in_processes``."""
    with connect(engine) as ray:
        # In bytes, so that each process unpickles its own copy, once.
        packed = ray.put(pickle.dumps((os.getcwd(), work)))
        there = task(ray, _work_there, gpu)
        waiting: deque[Any] = deque()

        def submit(chunk: Chunk) -> Any:
            # With --jobs, no more than that many run at once, even if the cluster is larger.
            if engine.jobs and (more := len(waiting) - engine.jobs + 1) > 0:
                ray.wait(list(waiting), num_returns=more, fetch_local=False)
            return there.remote([packed], chunk)

        try:
            yield from in_order(
                chunks,
                submit,
                lambda ref: _result(ray, ref, advice),
                lambda: AHEAD * size(ray, engine, gpu),
                waiting,
            )
        finally:
            for ref in waiting:
                ray.cancel(ref, force=True)


class Call:
    """A function that returns an exit code, running on the cluster."""

    def __init__(self, ray: Any, function: Callable[..., int], *args: Any, gpu: bool = False) -> None:
        self.ray, self.ref = ray, task(ray, function, gpu).remote(*args)

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        done, _ = self.ray.wait([self.ref], timeout=0)
        if not done:
            return None
        try:
            code: int = self.ray.get(self.ref)
            return code
        except self.ray.exceptions.RayError:
            return -signal.SIGKILL

    def stop(self) -> None:
        """Interrupt the function, as Ctrl-C does."""
        self.ray.cancel(self.ref)

    def wait(self) -> None:
        self.ray.wait([self.ref])


def _result(ray: Any, ref: Any, advice: str) -> Any:
    try:
        return ray.get(ref)
    except ray.exceptions.RayTaskError as error:
        # The error that the work itself raised.
        raise error.cause from error
    except ray.exceptions.RayError as error:
        raise UserError(
            f"Ray gave up a piece of work after {RETRIES} new attempts: {_first_line(error)}\n"
            f"{advice and advice + chr(10)}is the memory of a machine full? then try fewer --jobs"
        ) from error


def _first_line(error: BaseException) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


_work: tuple[str, Callable[[Any], Any]] | None = None
"""The last work of this process and the id of its bytes: parsers and models are loaded once."""


def _work_there(packed: list[Any], chunk: Any) -> Any:
    global _work
    name = packed[0].hex()
    if _work is None or _work[0] != name:
        import ray

        folder, work = pickle.loads(ray.get(packed[0]))
        os.chdir(folder)  # to which the names of files may be relative
        _work = name, work
    return _work[1](chunk)
