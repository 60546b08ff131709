"""One thread that asks the models, for all who wait at once.

While it computes, questions gather; those with the same key are then answered together. So nobody waits for a
batch to fill, and under load the batches are large.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ssdvae.io.errors import UserError

Answer = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""From a key and the items of all questions with that key to one answer an item."""


class Busy(Exception):
    """Too many wait already, or it took too long."""


@dataclass(frozen=True)
class _Question:
    key: Hashable
    items: Sequence[Any]
    future: asyncio.Future[Sequence[Any]]


class Batcher:
    """Questions in the order in which they come, but for those that are answered with an earlier one."""

    def __init__(self, answer: Answer, size: int, waiting: int) -> None:
        """Answer ``size`` items at once, if not one question has more; ``waiting`` items may wait."""
        self._answer, self._size, self._most = answer, size, waiting
        self._waiting: list[_Question] = []
        self._worker: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._closed = False

    async def ask(self, key: Hashable, items: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Return the answers to the items. ``Busy`` if too many wait, or after so many seconds."""
        self._waiting = _still_waiting(self._waiting)
        if self._waiting and sum(len(q.items) for q in self._waiting) + len(items) > self._most:
            raise Busy("too many requests wait for an answer")
        question = _Question(key, items, asyncio.get_running_loop().create_future())
        self._waiting.append(question)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        try:
            return await asyncio.wait_for(question.future, seconds)
        except TimeoutError as error:
            raise Busy(f"there was no answer within {seconds:g} seconds") from error

    def close(self) -> None:
        """Stop after the batch that is being answered; waits for it."""
        self._closed = True
        self._thread.shutdown()

    async def _work(self) -> None:
        while (batch := self._next_batch()) and not self._closed:
            await self._settle(batch)

    def _next_batch(self) -> list[_Question]:
        """Take the first question and those that can be answered with it."""
        batch: list[_Question] = []
        left: list[_Question] = []
        room = self._size
        for question in _still_waiting(self._waiting):
            if not batch or (question.key == batch[0].key and len(question.items) <= room):
                batch.append(question)
                room -= len(question.items)
            else:
                left.append(question)
        self._waiting = left
        return batch

    async def _settle(self, batch: Sequence[_Question]) -> None:
        """Answer questions with the same key; none may fail for what another one did wrong."""
        items = [item for question in batch for item in question.items]
        loop = asyncio.get_running_loop()
        try:
            answers = iter(await loop.run_in_executor(self._thread, self._answer, batch[0].key, items))
        except Exception as error:
            if isinstance(error, UserError) and len(batch) > 1:
                for question in batch:
                    await self._settle([question])
            else:  # a UserError is told; anything else the server answers with 500, and logs
                for question in _still_waiting(batch):
                    question.future.set_exception(error)
        else:
            for question in batch:
                found = [next(answers) for _ in question.items]
                if not question.future.done():
                    question.future.set_result(found)


def _still_waiting(questions: Sequence[_Question]) -> list[_Question]:
    """Return the questions whose answer somebody waits for."""
    return [question for question in questions if not question.future.done()]
