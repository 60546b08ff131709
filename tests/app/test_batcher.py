"""Questions that are alike are answered together, each gets its own answer, and none waits for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from ssdvae.app.batcher import Batcher, Busy
from ssdvae.io.errors import UserError


class Counting:
    """Squares, and remembers how they were asked for; the first batch waits until it is let go."""

    def __init__(self) -> None:
        self.batches: list[tuple[Any, list[int]]] = []
        self.begun, self.go = threading.Event(), threading.Event()

    def __call__(self, key: Any, items: Sequence[int]) -> list[int]:
        self.batches.append((key, list(items)))
        self.begun.set()
        assert self.go.wait(60)
        if key == "mistake" and 13 in items:
            raise UserError("13 is not allowed")
        return [item * item for item in items]


def gathered(counting: Counting, questions: Sequence[tuple[str, list[int]]], **limits: int) -> list[Any]:
    """The answers to a question that holds the thread, and to some that come meanwhile."""

    async def run() -> list[Any]:
        batcher = Batcher(counting, **{"size": 100, "waiting": 1000, **limits})
        first = asyncio.create_task(batcher.ask("first", [1], 60))
        await asyncio.to_thread(counting.begun.wait, 60)
        others = [asyncio.create_task(batcher.ask(key, items, 60)) for key, items in questions]
        await asyncio.sleep(0)
        counting.go.set()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        await asyncio.to_thread(batcher.close)
        return answers

    return asyncio.run(run())


def test_what_is_alike_is_answered_together_and_each_gets_its_own() -> None:
    counting = Counting()
    questions = [("a", [2, 3]), ("b", [4]), ("a", [5]), ("a", [6, 7])]
    assert gathered(counting, questions) == [[1], [4, 9], [16], [25], [36, 49]]
    assert counting.batches == [("first", [1]), ("a", [2, 3, 5, 6, 7]), ("b", [4])]


def test_a_batch_has_a_size() -> None:
    counting = Counting()
    assert gathered(counting, [("a", [n]) for n in range(5)], size=2)[1:] == [[n * n] for n in range(5)]
    assert max(len(items) for _, items in counting.batches) == 2


def test_a_mistake_is_told_to_who_made_it() -> None:
    answers = gathered(Counting(), [("mistake", [2]), ("mistake", [13]), ("mistake", [3])])
    assert answers[1] == [4]
    assert isinstance(answers[2], UserError)
    assert answers[3] == [9]


def test_who_comes_when_too_many_wait_is_told_so() -> None:
    answers = gathered(Counting(), [("a", [1, 2]), ("a", [3, 4]), ("a", [5])], waiting=3)
    assert [type(answer) for answer in answers] == [list, list, Busy, list]


def test_who_waits_too_long_is_told_so_and_forgotten() -> None:
    counting = Counting()

    async def run() -> None:
        batcher = Batcher(counting, 10, 10)
        first = asyncio.create_task(batcher.ask("first", [1], 60))
        await asyncio.to_thread(counting.begun.wait, 60)
        with pytest.raises(Busy, match="no answer within"):
            await batcher.ask("late", [2], 0.01)
        counting.go.set()
        assert await first == [1]
        assert await batcher.ask("next", [3], 60) == [9]
        await asyncio.to_thread(batcher.close)

    asyncio.run(run())
    assert [key for key, _ in counting.batches] == ["first", "next"]
