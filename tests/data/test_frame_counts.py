"""Frames by counting: the majority frame of a head, and planted classes that nobody named."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import adjusted_mutual_info_score

from ssdvae.data.documents import Documents
from ssdvae.data.frame_counts import fit_classes, majority_accuracy, majority_frames, unnamed_classes

CLASSES, WORDS = 4, 30


def planted(seed: int = 0) -> tuple[Documents, NDArray[np.int64]]:
    """Three heads and two words a class; one event in five has a head that all classes share."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(2, 6, 300).astype(np.int32)
    truth = np.concatenate([np.sort(rng.integers(CLASSES, size=n)) for n in lengths])
    heads = np.where(rng.random(len(truth)) < 0.2, 29, 3 * truth + rng.integers(3, size=len(truth)))
    words = 12 + 2 * truth + rng.integers(2, size=len(truth))
    tokens = np.column_stack([heads, words]).astype(np.int32)
    ids = pa.chunked_array([[str(i) for i in range(len(lengths))]])
    return Documents.of_events(ids, tokens, np.full(len(truth), -1, np.int32), lengths), truth


def test_planted_classes_are_found_without_a_label() -> None:
    documents, truth = planted()
    found = fit_classes(documents, WORDS, CLASSES, seed=1)
    assert adjusted_mutual_info_score(truth, found) > 0.95
    assert (found == fit_classes(documents, WORDS, CLASSES, seed=1)).all()
    # By the head alone, events of the shared one are lost.
    assert adjusted_mutual_info_score(truth, documents.tokens[:, 0]) < 0.8


def test_events_of_no_document_have_no_class() -> None:
    documents, _ = planted()
    found = fit_classes(documents.take(np.arange(0, 300, 2)), WORDS, CLASSES, seed=1)
    inside = np.zeros(len(found), dtype=bool)
    inside[documents.take(np.arange(0, 300, 2)).in_order()] = True
    assert ((found >= 0) == inside).all()


def test_labels_take_their_classes_and_the_others_are_unnamed() -> None:
    """Two of four classes have labels, on some of their events: the other two are found."""
    documents, truth = planted()
    rng = np.random.default_rng(2)
    labelled = (truth < 2) & (rng.random(len(truth)) < 0.5)
    observed = np.where(labelled, truth, -1).astype(np.int32)
    found = unnamed_classes(documents, observed, WORDS, named=2, unnamed=2, seed=1)
    assert set(np.unique(found)) == {-1, 2, 3}
    assert (found[truth >= 2] >= 2).mean() > 0.95
    assert (found[truth < 2] < 0).mean() > 0.95
    everything = unnamed_classes(documents, np.full_like(observed, -1), WORDS, 0, CLASSES, seed=1)
    assert everything.min() == 0
    assert adjusted_mutual_info_score(truth, everything) > 0.95


def test_more_classes_than_different_events() -> None:
    ids = pa.chunked_array([["a", "b"]])
    alike = Documents.of_events(
        ids, np.ones((4, 2), np.int32), np.full(4, -1, np.int32), np.array([2, 2], np.int32)
    )
    assert (fit_classes(alike, 3, 9, seed=1) >= 0).all()


HEADS, FRAMES = 6, 4
EVENTS = st.lists(st.tuples(st.integers(0, HEADS - 1), st.integers(-1, FRAMES - 1)), max_size=40)


@given(EVENTS, EVENTS)
def test_it_is_what_counting_gives(train: list[tuple[int, int]], held_out: list[tuple[int, int]]) -> None:
    heads, frames = np.array(train, dtype=int).reshape(-1, 2).T
    table = majority_frames(heads, frames, HEADS)
    everywhere = Counter(f for _, f in train if f >= 0)
    for word in range(HEADS):
        counts = Counter(f for v, f in train if v == word and f >= 0) or everywhere
        expected = min(counts, key=lambda f: (-counts[f], f), default=-1)
        assert table[word] == expected
    new_heads, known = np.array(held_out, dtype=int).reshape(-1, 2).T
    right = [table[v] == f for v, f in held_out if f >= 0]
    expected_accuracy = sum(right) / len(right) if right and everywhere else None
    assert majority_accuracy(table, new_heads, known) == expected_accuracy


def test_documents_may_have_any_shape() -> None:
    heads, frames = np.array([[0, 1], [0, 2]]), np.array([[3, -1], [3, 1]])
    assert majority_frames(heads, frames, 4).tolist() == [3, 3, 1, 3]
