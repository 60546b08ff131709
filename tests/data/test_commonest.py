"""The commonest known frame of a head, held against counting event by event."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data.commonest import commonest_accuracy, commonest_frames

WORDS, FRAMES = 6, 4
EVENTS = st.lists(st.tuples(st.integers(0, WORDS - 1), st.integers(-1, FRAMES - 1)), max_size=40)


@given(EVENTS, EVENTS)
def test_it_is_what_counting_gives(train: list[tuple[int, int]], held_out: list[tuple[int, int]]) -> None:
    heads, frames = np.array(train, dtype=int).reshape(-1, 2).T
    table = commonest_frames(heads, frames, WORDS)
    everywhere = Counter(f for _, f in train if f >= 0)
    for word in range(WORDS):
        counts = Counter(f for v, f in train if v == word and f >= 0) or everywhere
        expected = min(counts, key=lambda f: (-counts[f], f), default=-1)
        assert table[word] == expected
    new_heads, known = np.array(held_out, dtype=int).reshape(-1, 2).T
    right = [table[v] == f for v, f in held_out if f >= 0]
    expected_accuracy = sum(right) / len(right) if right and everywhere else None
    assert commonest_accuracy(table, new_heads, known) == expected_accuracy


def test_documents_may_have_any_shape() -> None:
    heads, frames = np.array([[0, 1], [0, 2]]), np.array([[3, -1], [3, 1]])
    assert commonest_frames(heads, frames, 4).tolist() == [3, 3, 1, 3]
