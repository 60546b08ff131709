"""A thread that asks the models for all requests that wait, in fair turns.

A request is a list of items, each with its work: how many events a model reads for it. A turn answers some
items of one request, and items of other requests with the same key beside them. The next turn goes to the
host that had the least work done, and there to the request that needs the least: a small request is not kept
waiting by a large one. Requests that nobody waits for are given up between turns, and at each ``checkpoint``.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from ssdvae.io.errors import UserError
from ssdvae.io.progress import ABANDONED, INTERRUPT, checkpoint

HOST: ContextVar[str] = ContextVar("host", default="")
"""The host that the present request comes from."""

Answer = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""From a key and items of requests with that key to one answer for each item."""


class Abandoned(Exception):
    """Nobody waits for the answer: the requests were cancelled, or took too long."""


@dataclass(eq=False)
class _Request:
    host: str
    key: Hashable
    items: deque[tuple[Any, int]]  # that are not yet answered, with their work
    future: asyncio.Future[list[Any]]
    place: float = 0.0  # in the queue: the work that is to be done before it and for its next turn
    answers: list[Any] = field(default_factory=list)


_Turn = Sequence[tuple[_Request, list[Any]]]


class Batcher:
    """Requests that wait, and the thread that answers them."""

    def __init__(self, answer: Answer, turn: int) -> None:
        """Do work of at most ``turn`` in a turn, if no single item has more."""
        self._answer, self._turn = answer, turn
        self._waiting: list[_Request] = []
        self._done: dict[str, float] = {}  # work by host, of those that wait
        self._clock = 0.0  # the place of the request that was served last
        self._worker: asyncio.Task[None] | None = None
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._closed = False
        # A daemon: the process can end while a model computes.
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    async def ask(self, key: Hashable, items: Sequence[Any], work: Sequence[int]) -> list[Any]:
        """Return the answers to the items; if this is cancelled, they are not computed to the end."""
        future: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        request = _Request(HOST.get(), key, deque(zip(items, work, strict=True)), future)
        self._drop_abandoned()
        self._done.setdefault(request.host, min(self._done.values(), default=0.0))
        request.place = self._clock + self._next_work(request)
        self._waiting.append(request)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    def close(self) -> None:
        """Stop; what is being computed is left to itself."""
        self._closed, self._thread.name = True, ABANDONED
        self._jobs.put(None)
        for request in self._waiting:
            request.future.cancel()

    def _serve(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()

    def _drop_abandoned(self) -> None:
        self._waiting = [request for request in self._waiting if not request.future.done()]
        hosts = {request.host for request in self._waiting}
        self._done = {host: work for host, work in self._done.items() if host in hosts}

    def _next_work(self, request: _Request) -> int:
        return min(self._turn, sum(work for _, work in request.items))

    async def _work(self) -> None:
        while not self._closed and (turn := self._next_turn()):
            await self._settle(turn)

    def _next_turn(self) -> _Turn:
        """Take items of the first request, and of those that can be answered with it."""
        self._drop_abandoned()
        queue = sorted(self._waiting, key=lambda request: (self._done[request.host], request.place))
        turn: list[tuple[_Request, list[Any]]] = []
        room = self._turn
        for request in queue:
            taken: list[Any] = []
            while (
                request.key == queue[0].key
                and request.items
                and (request.items[0][1] <= room or not (turn or taken))
            ):
                item, work = request.items.popleft()
                taken.append(item)
                room -= work
                self._done[request.host] += work
            if taken:
                turn.append((request, taken))
                self._clock = max(self._clock, request.place)
                request.place += self._next_work(request)
        return turn

    async def _settle(self, turn: _Turn) -> None:
        """Answer requests with the same key; none may fail for what another one did wrong."""

        def check() -> None:
            if self._closed or all(request.future.done() for request, _ in turn):
                raise Abandoned

        items = [item for _, taken in turn for item in taken]
        try:
            answers = iter(await self._in_thread(turn[0][0].key, items, check))
        except Exception as error:
            if isinstance(error, UserError) and len(turn) > 1:
                for each in turn:
                    await self._settle([each])
                return
            # A UserError is told; anything else the server answers with 500, and logs.
            for request, _ in turn:
                if not request.future.done():
                    request.future.set_exception(error)
        else:
            for request, taken in turn:
                request.answers += [next(answers) for _ in taken]
                if not request.items and not request.future.done():
                    request.future.set_result(request.answers)

    def _in_thread(
        self, key: Hashable, items: Sequence[Any], check: Callable[[], None]
    ) -> asyncio.Future[Sequence[Any]]:
        found: Future[Sequence[Any]] = Future()

        def job() -> None:
            if not found.set_running_or_notify_cancel():
                return
            try:
                INTERRUPT.set(check)
                checkpoint()
                found.set_result(self._answer(key, items))
            except BaseException as error:
                found.set_exception(error)

        self._jobs.put(job)
        return asyncio.wrap_future(found)
