"""Questions that are alike are answered together, in fair turns; what nobody waits for is given up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from ssdvae.app.batcher import HOST, Batcher
from ssdvae.io.errors import UserError
from ssdvae.io.progress import checkpoint


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


Asked = tuple[str, list[int]]


def gathered(counting: Counting, questions: Sequence[Asked], turn: int = 100, work: int = 1) -> list[Any]:
    """The answers to a question that holds the thread, and to some that come meanwhile."""

    async def run() -> list[Any]:
        batcher = Batcher(counting, turn)
        first = asyncio.create_task(batcher.ask("first", [1], [1]))
        await asyncio.to_thread(counting.begun.wait, 60)
        others = [
            asyncio.create_task(batcher.ask(key, items, [work] * len(items))) for key, items in questions
        ]
        await asyncio.sleep(0)
        counting.go.set()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        batcher.close()
        return answers

    return asyncio.run(run())


def test_an_answer_that_was_cancelled_before_its_turn_does_not_stop_the_thread() -> None:
    counting = Counting()
    counting.go.set()

    async def run() -> tuple[list[Any], bool]:
        batcher = Batcher(counting, 100)
        batcher._in_thread("nobody", [1], lambda: None).cancel()
        answers = await asyncio.wait_for(batcher.ask("a", [2], [1]), 60)
        alive = batcher._thread.is_alive()
        batcher.close()
        return answers, alive

    assert asyncio.run(run()) == ([4], True)


def test_what_is_alike_is_answered_together_and_each_gets_its_own() -> None:
    counting = Counting()
    questions = [("a", [2, 3]), ("b", [4]), ("a", [5]), ("a", [6, 7])]
    assert gathered(counting, questions) == [[1], [4, 9], [16], [25], [36, 49]]
    assert sorted(counting.batches[1:]) == [("a", [5, 2, 3, 6, 7]), ("b", [4])]


def test_a_turn_has_a_size() -> None:
    counting = Counting()
    assert gathered(counting, [("a", [n]) for n in range(5)], turn=2)[1:] == [[n * n] for n in range(5)]
    assert max(len(items) for _, items in counting.batches) == 2


def test_a_small_request_does_not_wait_for_a_large_one() -> None:
    """Of a request that needs four turns, one at most comes before it; nor does the large one starve."""
    counting = Counting()
    large, small = list(range(8)), [9]
    answers = gathered(
        counting, [("large", large), *[(f"small {n}", small) for n in range(5)]], turn=2, work=1
    )
    assert answers[1] == [n * n for n in large]
    order = [key for key, _ in counting.batches[1:]]
    assert order.index("small 4") <= 5
    assert order.count("large") == 4


def test_hosts_share_the_thread() -> None:
    """One host has twenty requests, another one: the second waits for one turn, not for twenty."""
    counting = Counting()

    async def ask(batcher: Batcher, host: str, number: int) -> None:
        HOST.set(host)
        await batcher.ask((host, number), [number] * 2, [1, 1])

    async def run() -> None:
        batcher = Batcher(counting, 1)
        many = [asyncio.create_task(ask(batcher, "many", n)) for n in range(20)]
        await asyncio.to_thread(counting.begun.wait, 60)
        one = asyncio.create_task(ask(batcher, "one", 0))
        await asyncio.sleep(0)
        counting.go.set()
        await asyncio.gather(one, *many)
        batcher.close()

    asyncio.run(run())
    hosts = [key[0] for key, _ in counting.batches]
    assert [n for n, host in enumerate(hosts) if host == "one"][-1] <= 5


def test_a_mistake_is_told_to_who_made_it() -> None:
    answers = gathered(Counting(), [("mistake", [2]), ("mistake", [13]), ("mistake", [3])])
    assert answers[1] == [4]
    assert isinstance(answers[2], UserError)
    assert answers[3] == [9]


@pytest.mark.parametrize("begun", [False, True])
def test_a_request_that_is_cancelled_is_not_computed_to_the_end(begun: bool) -> None:
    """Neither while it waits, nor between its turns, nor within one, at the next checkpoint."""
    started, go, steps = threading.Event(), threading.Event(), []

    def answer(key: Any, items: Sequence[int]) -> list[int]:
        for step in range(1000):
            started.set()
            assert go.wait(60)
            checkpoint()
            steps.append((key, step))
            if key == "other":
                break
        return list(items)

    async def run() -> None:
        batcher = Batcher(answer, 1)
        first = asyncio.create_task(batcher.ask("first", [1], [1]))
        await asyncio.to_thread(started.wait, 60)
        victim = first if begun else asyncio.create_task(batcher.ask("victim", [1] * 9, [1] * 9))
        other = asyncio.create_task(batcher.ask("other", [7], [1]))
        await asyncio.sleep(0)
        victim.cancel()
        await asyncio.sleep(0)
        go.set()
        assert await asyncio.wait_for(other, 60) == [7]
        batcher.close()

    asyncio.run(run())
    assert ("other", 0) in steps
    assert not [step for step in steps if step[0] == ("first" if begun else "victim")]
