"""Frames by counting: the majority frame of each head, and classes of unlabelled events.

The classes are those of a mixture over events (latent class analysis). The features of an event are the words
in its slots and the heads before and after it, each drawn from a distribution of its class:

    p(event) = Σ_k π_k Π_i p(feature_i | k)

fitted by EM from several starts, of which the most likely is kept. An ambiguous head, such as "updated", is
told apart by the rest of its event. No label is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ssdvae.data.documents import Documents

Numbers = NDArray[np.integer[Any]]


def majority_frames(heads: Numbers, observed: Numbers, words: int) -> NDArray[np.int64]:
    """Return the most frequent observed frame of each of ``words`` words as a head.

    ``heads`` and ``observed`` are those of the training events, in any shape; −1 where no frame is observed.
    A word that was never the head of an event with an observed frame has the majority frame of all events;
    all words have −1 if no frame is observed. Ties are broken by the id of the frame.
    """
    seen = observed >= 0
    if not seen.any():
        return np.full(words, -1)
    frames = observed[seen].astype(np.int64)
    width = 1 + frames.max()
    # A number for each pair.
    pairs, counts = np.unique(heads[seen] * width + frames, return_counts=True)
    head, frame = np.divmod(pairs, width)
    table = np.full(words, np.bincount(frames).argmax())
    # The last entry of a head is the one that stays: its most frequent frame.
    order = np.lexsort((-frame, counts))
    table[head[order]] = frame[order]
    return table


def majority_accuracy(table: NDArray[np.int64], heads: Numbers, frames: Numbers) -> float | None:
    """Return the accuracy of ``table``; None if no frame is known, or none was observed."""
    known = frames >= 0
    if not known.any() or (table < 0).all():
        return None
    return float((table[heads[known]] == frames[known]).mean())


FITTED = 100_000
"""The largest number of events that the mixture is fitted to."""
CHUNK = 50_000
STARTS, TRIES, STEPS = 8, 12, 60
SMOOTHING = 0.1


def event_features(documents: Documents, words: int) -> Any:
    """Return one row per event, in the order of ``in_order()``: its words by slot, and the adjacent heads."""
    places, rows = documents.in_order(), documents.rows()
    tokens = documents.tokens[places].astype(np.int64)
    heads = tokens[:, 0]
    none = words  # before the first event, and after the last
    same = rows[1:] == rows[:-1]
    before, after = np.full(len(heads), none), np.full(len(heads), none)
    before[1:][same], after[:-1][same] = heads[:-1][same], heads[1:][same]
    fields = np.column_stack([tokens, before, after])
    columns = fields + (words + 1) * np.arange(fields.shape[1])
    ends = fields.shape[1] * np.arange(len(fields) + 1)
    ones = np.ones(columns.size, dtype=np.float64)
    shape = (len(fields), (words + 1) * fields.shape[1])
    return sparse.csr_matrix((ones, columns.reshape(-1), ends), shape=shape)


def unnamed_classes(
    documents: Documents, observed: NDArray[np.int32], words: int, named: int, unnamed: int, seed: int
) -> NDArray[np.int32]:
    """Return the class of each event that no label covers, as the id of an unnamed frame; −1 for others.

    A class is covered if its events are observed at least half as often as all are. Of the others the largest
    are taken, as many as there are unnamed frames. With no label at all, every event has one.
    """
    labels = len(np.unique(observed[observed >= 0]))
    found = fit_classes(documents, words, labels + unnamed, seed)
    events = found >= 0
    sizes = np.bincount(found[events], minlength=labels + unnamed)
    known = np.bincount(found[events & (observed >= 0)], minlength=labels + unnamed)
    share = (observed[events] >= 0).mean()
    free = np.flatnonzero((sizes > 0) & ((known < share / 2 * sizes) | (share == 0)))
    numbers = np.full(labels + unnamed, -1, dtype=np.int32)
    largest = free[np.argsort(-sizes[free], kind="stable")][:unnamed]
    numbers[largest] = named + np.arange(len(largest))
    return np.where(events, numbers[found], -1).astype(np.int32)


def fit_classes(documents: Documents, words: int, classes: int, seed: int) -> NDArray[np.int32]:
    """Return the most likely class of each event of the split; −1 for events of no document."""
    features = event_features(documents, words)
    fields = int(features.indptr[1])
    rng = np.random.default_rng((seed, classes))
    fitted = features
    if features.shape[0] > FITTED:
        fitted = features[np.sort(rng.choice(features.shape[0], FITTED, replace=False))]
    used = np.flatnonzero(np.asarray(fitted.sum(0))[0])
    model = _fit(fitted[:, used], used // (words + 1), fields, classes, rng)
    known, found = features[:, used], np.full(len(documents.frames), -1, dtype=np.int32)
    guesses = [
        (known[start : start + CHUNK] @ model[1] + model[0]).argmax(1)
        for start in range(0, known.shape[0], CHUNK)
    ]
    found[documents.in_order()] = np.concatenate(guesses)
    return found


Model = tuple[NDArray[np.float64], NDArray[np.float64]]
"""log π, and log p(feature | class)."""


def _fit(
    features: Any, field: NDArray[np.int64], fields: int, classes: int, rng: np.random.Generator
) -> Model:
    """Return the most likely of several mixtures: most are given up early."""
    begun: list[tuple[float, Model]] = []
    for _ in range(STARTS):
        model = _start(features, field, fields, classes, rng)
        for _ in range(TRIES):
            model, score = _step(features, field, fields, model)
        begun.append((score, model))
    model = max(begun, key=lambda one: one[0])[1]
    for _ in range(STEPS):
        model, _ = _step(features, field, fields, model)
    return model


def _start(
    features: Any, field: NDArray[np.int64], fields: int, classes: int, rng: np.random.Generator
) -> Model:
    """Initialise each class at an event that is unlike those before it (k-means++)."""
    chosen = [int(rng.integers(features.shape[0]))]
    unlike = np.full(features.shape[0], np.inf)
    for _ in range(classes - 1):
        shared = np.asarray((features @ features[chosen[-1]].T).todense())[:, 0]
        unlike = np.minimum(unlike, fields - shared)
        # A little more than nothing: there may be fewer different events than classes.
        weights = unlike**2 + 1e-9
        chosen.append(int(rng.choice(len(weights), p=weights / weights.sum())))
    seeds = np.asarray(features[chosen].todense())  # K features
    shared = features @ seeds.T
    soft = np.exp(2.0 * (shared - shared.max(1, keepdims=True)))
    return _maximise(features, field, fields, soft / soft.sum(1, keepdims=True))


def _step(features: Any, field: NDArray[np.int64], fields: int, model: Model) -> tuple[Model, float]:
    """Return the model after a step of EM, and the log-likelihood before it."""
    scores = features @ model[1] + model[0]
    top = scores.max(1, keepdims=True)
    shares = np.exp(scores - top)
    total = shares.sum(1, keepdims=True)
    return _maximise(features, field, fields, shares / total), float((top + np.log(total)).sum())


def _maximise(features: Any, field: NDArray[np.int64], fields: int, shares: NDArray[np.float64]) -> Model:
    counts = np.asarray(features.T @ shares) + SMOOTHING  # features K
    sums = np.zeros((fields, counts.shape[1]))
    np.add.at(sums, field, counts)
    weight = shares.sum(0) + SMOOTHING
    return np.log(weight / weight.sum()), np.log(counts) - np.log(sums)[field]
