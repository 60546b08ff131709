"""Work shared by many processes, with its results in order, whatever the number of processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, TypeVar

from ssdvae.config import EngineSettings, cores
from ssdvae.errors import UserError

Item = TypeVar("Item")
Chunk = TypeVar("Chunk")
Result = TypeVar("Result")


def chunked(
    items: Iterable[Item], size: int, weight: Callable[[Item], int] = lambda item: 1
) -> Iterator[list[Item]]:
    """Items in lists that weigh ``size`` at least, but for the last.

    An error in the items comes after those before it, as it would without lists.
    """
    chunk: list[Item] = []
    total = 0
    try:
        for item in items:
            chunk.append(item)
            total += weight(item)
            if total >= size:
                yield chunk
                chunk, total = [], 0
    except UserError:
        if chunk:
            yield chunk
        raise
    if chunk:
        yield chunk


def map_in_processes(
    chunks: Iterable[Chunk],
    work: Callable[[Chunk], Result],
    engine: EngineSettings,
    advice: str = "",
    gpu: bool = False,
) -> Iterator[Result]:
    """Apply ``work`` to each chunk in many processes; results come in their order, wherever they are made.

    ``work`` is pickled and sent to each process once. ``advice`` is added to the message if a process dies.
    With ``gpu``, each process takes a GPU for itself, so that by default there is one on this machine.
    """
    if engine.engine == "ray":
        from ssdvae.cluster import map_on_cluster  # an extra

        yield from map_on_cluster(chunks, work, engine, advice, gpu)
        return
    jobs, chunks = engine.jobs or (1 if gpu else cores()), iter(chunks)
    first = list(islice(chunks, 1 if jobs == 1 else 2))
    if len(first) < 2:
        # One chunk is done sooner than a process is started.
        yield from map(work, chain(first, chunks))
        return
    # Fresh processes, not copies of this one, in which the threads of torch may be at work.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, spawn, initializer=_begin, initargs=(work,))
    try:
        waiting: deque[Future[Result]] = deque()
        for future in _submitted(pool, chain(first, chunks)):
            waiting.append(future)
            # What waits is held in memory, so there is a limit to reading ahead.
            if len(waiting) >= 3 * jobs:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process that shared the work died; is the memory full? then try fewer --jobs\n"
            f"{advice and advice + chr(10)}"
            "(in a script of your own, make the call under: if __name__ == '__main__')"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _submitted(pool: ProcessPoolExecutor, chunks: Iterable[Chunk]) -> Iterator[Future[Any]]:
    """The result of each chunk, to be waited for; where reading fails, one that fails, in its place."""
    try:
        for chunk in chunks:
            yield pool.submit(_work_there, chunk)
    except UserError as error:
        failed: Future[Any] = Future()
        failed.set_exception(error)
        yield failed


_work: Callable[[Any], Any]
"""What this process does, if it is one of the pool."""


def _begin(work: Callable[[Any], Any]) -> None:
    """The start of a process of the pool."""
    global _work
    _work = work
    # Nobody else tells it that the process it works for was killed; it would wait for work for ever.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work_there(chunk: Any) -> Any:
    return _work(chunk)
