"""One thread that asks the models, for all who wait at once.

While it computes, questions gather; those that are alike are then answered together. So nobody waits for a
batch to fill, and under load the batches are large.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ssdvae.errors import UserError

Answer = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""From a key and the items of all questions with that key to one answer an item."""


class Busy(Exception):
    """Too many wait already, or it took too long."""


@dataclass(frozen=True)
class _Question:
    key: Hashable
    items: Sequence[Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Sequence[Any]]

    def answer(self, found: Sequence[Any]) -> None:
        self._settle(lambda: self.future.set_result(found))

    def fail(self, error: Exception) -> None:
        self._settle(lambda: self.future.set_exception(error))

    def _settle(self, how: Callable[[], None]) -> None:
        """From the thread: tell whoever waits, if anybody still does."""

        def tell() -> None:
            if not self.future.done():
                how()

        try:
            self.loop.call_soon_threadsafe(tell)
        except RuntimeError:  # the loop was closed in the meantime: nobody waits
            return


class Batcher:
    """Questions in the order in which they come, but for those that are answered with an earlier one."""

    def __init__(self, answer: Answer, size: int, waiting: int) -> None:
        """``size`` items are answered at once, if not one question has more, and ``waiting`` may wait."""
        self._answer, self._size, self._most = answer, size, waiting
        self._waiting: deque[_Question] = deque()
        self._items = 0
        self._ready = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="model", daemon=True)
        self._thread.start()

    async def ask(self, key: Hashable, items: Sequence[Any], seconds: float) -> Sequence[Any]:
        """The answers to the items. ``Busy`` if too many wait, or after so many seconds."""
        loop = asyncio.get_running_loop()
        question = _Question(key, items, loop, loop.create_future())
        with self._ready:
            if self._items and self._items + len(items) > self._most:
                raise Busy("too many requests wait for an answer")
            self._waiting.append(question)
            self._items += len(items)
            self._ready.notify()
        try:
            return await asyncio.wait_for(question.future, seconds)
        except TimeoutError as error:
            raise Busy(f"there was no answer within {seconds:g} seconds") from error

    def close(self) -> None:
        """Stop after the batch that is being answered."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _work(self) -> None:
        while (together := self._next()) is not None:
            if together:
                self._settle(together)

    def _next(self) -> list[_Question] | None:
        """The first question and those that can be answered with it; None when all is over."""
        with self._ready:
            while not self._waiting and not self._closed:
                self._ready.wait()
            if self._closed:
                return None
            key, room = self._waiting[0].key, self._size
            taken: list[_Question] = []
            left: deque[_Question] = deque()
            for question in self._waiting:
                if question.future.done():  # nobody waits for it any more
                    self._items -= len(question.items)
                elif question.key == key and (not taken or len(question.items) <= room):
                    taken.append(question)
                    room -= len(question.items)
                    self._items -= len(question.items)
                else:
                    left.append(question)
            self._waiting = left
            return taken

    def _settle(self, together: Sequence[_Question]) -> None:
        try:
            answers = self._answer(together[0].key, [item for q in together for item in q.items])
        except UserError as error:
            if len(together) > 1:  # what one of them did wrong is not the fault of the others
                for question in together:
                    self._settle([question])
            else:
                together[0].fail(error)
        except Exception as error:  # the thread must live: the server answers 500, and logs it
            for question in together:
                question.fail(error)
        else:
            done = 0
            for question in together:
                question.answer(answers[done : done + len(question.items)])
                done += len(question.items)
