"""Classes that nobody named: planted ones are found, whatever the labels are called."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.metrics import adjusted_mutual_info_score

from ssdvae.data.classes import found_classes, unnamed_classes
from ssdvae.data.documents import Documents

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
    found = found_classes(documents, WORDS, CLASSES, seed=1)
    assert adjusted_mutual_info_score(truth, found) > 0.95
    assert (found == found_classes(documents, WORDS, CLASSES, seed=1)).all()
    # By the head alone, events of the shared one are lost.
    assert adjusted_mutual_info_score(truth, documents.tokens[:, 0]) < 0.8


def test_events_of_no_document_have_no_class() -> None:
    documents, _ = planted()
    found = found_classes(documents.take(np.arange(0, 300, 2)), WORDS, CLASSES, seed=1)
    inside = np.zeros(len(found), dtype=bool)
    inside[documents.take(np.arange(0, 300, 2)).in_order()] = True
    assert ((found >= 0) == inside).all()


def test_labels_take_their_classes_and_the_others_are_unnamed() -> None:
    """Of four classes two have labels, on some of their events: what is found are the other two."""
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
    assert (found_classes(alike, 3, 9, seed=1) >= 0).all()
