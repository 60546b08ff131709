"""Counts of frames, words and neighbours over a split, kept beside the weights of a packed model.

With them the explorer shows what a frame is like, and finds words and frames, without a corpus. Counts are
expected ones by the posterior of the model, Σ_e q_e(f), over the events e that have a word, or that come
before another event. What occurs fewer than ``least`` times is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.transitions import Transitions
from ssdvae.analysis.words import WordPosteriors
from ssdvae.data.corpus import Documents
from ssdvae.data.events import Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.inference.posterior import frame_posteriors
from ssdvae.io.errors import DataError
from ssdvae.io.progress import Advance, no_advance
from ssdvae.io.records import Count
from ssdvae.io.weights import WeightsRecord
from ssdvae.models.base import Model
from ssdvae.models.hub import STATISTICS

LEAST = 5
"""Occurrences below which nothing is kept."""

ARGUMENTS = 20
"""Words of an argument that are kept for a frame, at most."""

BATCH = 200

Shares = Sequence[tuple[str, float]]
"""Names and their shares, the largest first."""

Sparse = list[list[Count]]
"""For each frame the numbers of words or frames, each followed by its count, the largest first."""

Places = dict[int, list[tuple[int, int]]]
"""For each number its counts and the rows that have it, the largest count first."""


class Counts(WeightsRecord):
    """The contents of the file."""

    file, about = STATISTICS, "counts of frames and words"

    split: str
    documents: Count
    events: Count
    frames: list[Count]  # events of each frame
    followed: list[Count]  # those with an event after them
    preceded: list[Count]  # those with an event before them
    after: Sparse  # frames of the event after one of each frame
    slots: list[Sparse]  # words of each slot; all heads, and the most frequent arguments
    heads: dict[str, Count]  # events with each head
    lemmas: dict[str, str]  # of heads that differ from them


@dataclass(frozen=True)
class Statistics:
    """Counts, with the names of a model."""

    vocabulary: Vocabulary
    frames: Inventory
    slots: Slots
    counts: Counts

    @classmethod
    def measure(
        cls,
        model: Model,
        documents: Documents,
        split: str,
        lemmas: Mapping[str, str] | None = None,
        least: int = LEAST,
        advance: Advance = no_advance,
    ) -> Statistics:
        """Count in one pass over documents."""
        words = [WordPosteriors(model, slot) for slot in range(len(model.slots))]
        pairs = Transitions.of(model)
        for posterior, batch in frame_posteriors(model, documents, BATCH, advance):
            for sums in words:
                sums.add(posterior, batch)
            pairs.add(posterior, batch)
        named = np.ones(len(model.vocabulary), bool)
        named[[model.vocabulary.unknown, model.vocabulary.missing]] = False
        heads, *arguments = [sums.joint.T * named for sums in words]
        by_head = {
            model.vocabulary.name(int(word)): int(words[0].word_counts[word])
            for word in np.flatnonzero((words[0].word_counts >= least) & named)
        }
        after = pairs.counts
        counts = Counts(
            split=split,
            documents=len(documents),
            events=int(documents.lengths.sum()),
            frames=_whole(words[0].joint.sum(0), least),
            followed=_whole(after.sum(1), least),
            preceded=_whole(after.sum(0), least),
            after=_sparse(after, least),
            slots=[_sparse(heads, least), *(_sparse(some, least, ARGUMENTS) for some in arguments)],
            heads=by_head,
            lemmas={
                form: lemma for form, lemma in (lemmas or {}).items() if form in by_head and form != lemma
            },
        )
        return cls(model.vocabulary, model.frames, model.slots, counts)

    @classmethod
    def read(cls, folder: Path, model: Model) -> Statistics | None:
        """Return the statistics in the folder of a model; None if there are none for its weights."""
        if (counts := Counts.read(folder)) is None:
            return None
        found = cls(model.vocabulary, model.frames, model.slots, counts)
        found._check(folder / STATISTICS)
        return found

    def _check(self, path: Path) -> None:
        """Raise an error for numbers that are those of no word or frame."""
        counts, F, V = self.counts, len(self.frames), len(self.vocabulary)
        totals = (counts.frames, counts.followed, counts.preceded)
        limits = [(counts.after, F), *((some, V) for some in counts.slots)]
        wrong = (
            len(counts.slots) != len(self.slots)
            or any(len(some) != F for some in totals)
            or any(len(some) != F for some, _ in limits)
            or any(
                len(row) % 2 or max(row[::2], default=0) >= limit for some, limit in limits for row in some
            )
            or any(word not in self.vocabulary for word in counts.heads)
        )
        if wrong:
            raise DataError(path, None, "counts of other words or frames", "those of the model beside it")

    @property
    def packed(self) -> bool:
        """True if the counts came with the model."""
        return bool(self.counts.weights)

    def count(self, frame: str) -> int:
        """Return the number of events of a frame."""
        return self.counts.frames[self.frames.find(frame, "frame")]

    def words_of(self, frame: str, k: int, slot: int = 0) -> Shares:
        """Return the words of a slot by their shares of the events of a frame."""
        number = self.frames.find(frame, "frame")
        row = self.counts.slots[slot][number][: 2 * k]
        return _shares(row, self.vocabulary, self.counts.frames[number])

    def frames_of(self, word: str, k: int) -> Shares:
        """Return the frames of the events with a head, by their shares."""
        found = self._by_word[0].get(self.vocabulary.id(word), [])
        return [(self.frames.name(f), count / self.counts.heads[word]) for count, f in found[:k]]

    def after(self, frame: str, k: int) -> Shares:
        """Return the frames of the event after one of this frame, by their shares."""
        number = self.frames.find(frame, "frame")
        return _shares(self.counts.after[number][: 2 * k], self.frames, self.counts.followed[number])

    def before(self, frame: str, k: int) -> Shares:
        """Return the frames of the event before one of this frame, by their shares."""
        number = self.frames.find(frame, "frame")
        total = self.counts.preceded[number]
        return [(self.frames.name(f), count / total) for count, f in self._before.get(number, [])[:k]]

    def forms(self, text: str) -> list[str]:
        """Return the heads that are a word, or forms of the same lemma, the most frequent first."""
        lemmas, heads = self.counts.lemmas, self.counts.heads
        wanted = {text.lower(), lemmas.get(text.lower(), text.lower())}
        found = {head for head in heads if head in wanted or lemmas.get(head) in wanted}
        return sorted(found, key=lambda head: -heads[head])

    def places(self, word: str) -> Iterator[tuple[str, list[str]]]:
        """Yield the slots after the head in which a word is frequent, with the frames of these events."""
        for slot, by_word in list(zip(self.slots, self._by_word, strict=True))[1:]:
            if found := by_word.get(self.vocabulary.id(word)):
                yield slot, [self.frames.name(f) for _, f in found]

    @cached_property
    def _by_word(self) -> list[Places]:
        """The frames of each word, by slot."""
        return [_inverse(rows) for rows in self.counts.slots]

    @cached_property
    def _before(self) -> Places:
        """The frames before each frame."""
        return _inverse(self.counts.after)


def _inverse(rows: Sparse) -> Places:
    """Return the rows in which each number stands."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for place, row in enumerate(rows):
        for number, count in _pairs(row):
            found[number].append((count, place))
    return {number: sorted(places, reverse=True) for number, places in found.items()}


def _whole(values: NDArray[np.float64], least: int) -> list[int]:
    return [int(value) if value >= least else 0 for value in values.round().tolist()]


def _sparse(values: NDArray[np.float64], least: int, most: int | None = None) -> Sparse:
    found = []
    for row in values.round():
        kept = np.flatnonzero(row >= least)
        kept = kept[np.argsort(-row[kept], kind="stable")[:most]]
        found.append(np.stack([kept, row[kept]], axis=1).astype(int).ravel().tolist())
    return found


def _pairs(row: list[int]) -> Iterator[tuple[int, int]]:
    return zip(row[::2], row[1::2], strict=True)


def _shares(row: list[int], names: Inventory, total: int) -> Shares:
    return [(names.name(number), count / total) for number, count in _pairs(row)]
