"""Work shared by many processes, on this machine or on a Ray cluster; results come in order."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice
from typing import Any, TypeVar

from ssdvae.data.options import EngineOptions, cores
from ssdvae.io.errors import UserError

Item = TypeVar("Item")
Chunk = TypeVar("Chunk")
Ref = TypeVar("Ref")
Result = TypeVar("Result")

AHEAD = 3
"""Results per process that may wait for earlier ones: they are held in memory."""


def chunked(
    items: Iterable[Item], size: int, weight: Callable[[Item], int] = lambda item: 1
) -> Iterator[list[Item]]:
    """Yield items in lists whose weight is at least ``size``, except the last.

    If reading an item raises an error, the items before it are yielded first.
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
    engine: EngineOptions,
    advice: str = "",
    gpu: bool = False,
) -> Iterator[Result]:
    """Apply ``work`` to each chunk in many processes; yield the results in the order of the chunks.

    ``work`` is pickled and sent to each process once. ``advice`` is added to the message if a process dies.
    With ``gpu``, each process takes a GPU for itself, and by default there is one process on this machine.
    """
    if engine.engine == "ray":
        from ssdvae.engine.ray_cluster import map_on_cluster  # an extra

        yield from map_on_cluster(chunks, work, engine, advice, gpu)
        return
    jobs, chunks = engine.jobs or (1 if gpu else cores()), iter(chunks)
    first = list(islice(chunks, 1 if jobs == 1 else 2))
    if len(first) < 2:
        # One chunk is done before a process has started.
        yield from map(work, chain(first, chunks))
        return
    # Fresh processes, not copies of this one, in which threads of torch may be running.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, spawn, initializer=_begin, initargs=(work, max(1, cores() // jobs)))
    try:
        yield from in_order(
            chain(first, chunks),
            lambda chunk: pool.submit(_work_there, chunk),
            Future.result,
            lambda: AHEAD * jobs,
            deque(),
        )
    except BrokenProcessPool as error:
        raise UserError(
            "a process that shared the work died; is the memory full? then try fewer --jobs\n"
            f"{advice and advice + chr(10)}"
            "(in a script of your own, make the call under: if __name__ == '__main__')"
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_order(
    chunks: Iterable[Chunk],
    submit: Callable[[Chunk], Ref],
    result: Callable[[Ref], Result],
    most: Callable[[], int],
    waiting: deque[Ref],
) -> Iterator[Result]:
    """Submit chunks and yield their results in order, with fewer than ``most()`` of them ``waiting``.

    If reading a chunk raises an error, the results of the chunks before it are yielded first.
    """
    failed: UserError | None = None
    remaining = iter(chunks)
    while True:
        try:
            chunk = next(remaining)
        except StopIteration:
            break
        except UserError as error:
            failed = error
            break
        waiting.append(submit(chunk))
        while len(waiting) >= most():
            yield result(waiting.popleft())
    while waiting:
        yield result(waiting.popleft())
    if failed is not None:
        raise failed


_work: Callable[[Any], Any]
"""The work of this process, if it is one of the pool."""


def _begin(work: Callable[[Any], Any], threads: int) -> None:
    """Initialise a process of the pool."""
    global _work
    _work = work
    # Work that computes with torch has loaded it; as many threads as cores in each process slow all down.
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    # Nobody else tells it that the parent process was killed; it would wait for work for ever.
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _work_there(chunk: Any) -> Any:
    return _work(chunk)
