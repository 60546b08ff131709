"""What documents have, as `compare` counts it: likeliest frames, transitions between them, and words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.compare import Features, Kind
from ssdvae.data.batches import Batch
from ssdvae.models.base import FramePosterior, Model

Ints = NDArray[np.int64]


class FeatureCounts:
    """Frames, transitions and words of documents that are added in their order.

    What all documents together have less than ``min_count`` times is left out: it could never be told from an
    accident, and would only make the correction larger.
    """

    def __init__(self, model: Model, min_count: float) -> None:
        self.model, self.min_count = model, max(min_count, 1)
        self.documents = 0
        self.frames: list[Ints] = []  # pairs of document and number
        self.transitions: list[Ints] = []
        self.words: list[Ints] = []

    def add(self, beliefs: FramePosterior, batch: Batch) -> None:
        mask = batch.mask.cpu().numpy()
        frames, tokens = beliefs.value.cpu().numpy(), batch.tokens.cpu().numpy()
        rows = self.documents + np.arange(len(mask))[:, None]
        both = mask[:, 1:]  # an event that is there has one before it that is
        self.frames.append(_pairs(np.broadcast_to(rows, mask.shape)[mask], frames[mask]))
        codes = frames[:, :-1] * len(self.model.frames) + frames[:, 1:]
        self.transitions.append(_pairs(np.broadcast_to(rows, both.shape)[both], codes[both]))
        events = np.broadcast_to(rows[..., None], tokens.shape)[mask]
        self.words.append(_pairs(events.ravel(), tokens[mask].ravel()))
        self.documents += len(mask)

    def result(self) -> list[Features]:
        frame, words = self.model.frames.name, self.model.vocabulary
        size = len(self.model.frames)
        silent = (words.missing, words.unknown)  # which say nothing
        return [
            self._features("frame", self.frames, frame),
            self._features(
                "transition", self.transitions, lambda c: f"{frame(c // size)} → {frame(c % size)}"
            ),
            self._features("word", self.words, words.name, silent),
        ]

    def _features(
        self, kind: Kind, parts: Sequence[Ints], name: Callable[[int], str], silent: Sequence[int] = ()
    ) -> Features:
        documents, numbers = np.concatenate(parts, axis=1)
        sizes = np.bincount(documents, minlength=self.documents).astype(np.float64)
        values, place, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        kept = (counts >= self.min_count) & ~np.isin(values, silent)
        column = np.cumsum(kept) - 1
        here = kept[place]
        ones = np.ones(int(here.sum()))
        from scipy.sparse import csr_array  # slow to import, and most of what explains needs none

        table = csr_array(
            (ones, (documents[here], column[place[here]])), shape=(self.documents, int(kept.sum()))
        )
        table.sum_duplicates()
        return Features(kind, tuple(name(int(value)) for value in values[kept]), table, sizes)


def _pairs(documents: Ints, numbers: Ints) -> Ints:
    return np.stack([documents, numbers]).astype(np.int64)
