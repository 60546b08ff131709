"""Inverse narrative cloze: of sequences that begin with the same event, tell the one that really happened.

The public text format has one item on each line, the true sequence first:

    verb subj obj mod <TUP> verb subj obj mod … <DIST> verb subj obj mod <TUP> … <DIST> …

The true sequence has n events, of which the first is the seed. Each of the others, the distractors, has
n − 1, to be read after the same seed. ``_NULL_`` stands in an empty slot. An event has as many words as the
corpus has slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from ssdvae.config import PrepareSettings
from ssdvae.data.events import MISSING, SLOTS, Slots, Words, folded
from ssdvae.data.sample import DocumentSample
from ssdvae.data.tagged import EVENT_TAG, NULL, split_at, split_events
from ssdvae.data.vocabulary import Vocabulary
from ssdvae.errors import DataError, Malformed, UserError, shorten
from ssdvae.files import BOM, AnyPath, atomic_write, open_text_for_writing, text_lines

OPTION_TAG = "<DIST>"

Sequel = tuple[Words, ...]


@dataclass(frozen=True, slots=True)
class ClozeItem:
    """A true sequence, and events that might have followed its first one, the seed, but did not."""

    truth: Sequel
    distractors: tuple[Sequel, ...]

    def __post_init__(self) -> None:
        if not self.distractors:
            raise Malformed("1 option", f"at least 2, with {OPTION_TAG} between them")
        if len(self.truth) < 2:
            raise Malformed(f"{len(self.truth)} events in option 1", "at least 2: the seed and what follows")
        for number, distractor in enumerate(self.distractors, start=2):
            if len(distractor) != len(self.truth) - 1:
                expected = f"{len(self.truth) - 1}: option 1 has {len(self.truth)}, with the seed"
                raise Malformed(f"{len(distractor)} events in option {number}", expected)

    @property
    def seed(self) -> Words:
        return self.truth[0]

    @property
    def options(self) -> tuple[Sequel, ...]:
        """What may come after the seed; the first did."""
        return (self.truth[1:], *self.distractors)

    def check_like(self, first: ClozeItem) -> None:
        """All items of a file have as many options and events as its first."""
        for what, mine, theirs in (
            ("options", len(self.options), len(first.options)),
            ("events in option 1", len(self.truth), len(first.truth)),
        ):
            if mine != theirs:
                raise Malformed(f"{mine} {what}", f"{theirs}, as in the first item")


def read_cloze(path: AnyPath, slots: Slots = SLOTS) -> list[ClozeItem]:
    """The items of a file, plain or .gz; blank lines are passed over."""
    items: list[ClozeItem] = []
    for number, text in text_lines(path):
        if not text.strip():
            continue
        try:
            item = _item(text, slots)
            item.check_like(items[0] if items else item)
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected) from error
        items.append(item)
    if not items:
        raise DataError(path, None, "no cloze items", f"one on each line: events {OPTION_TAG} events …")
    return items


def _item(text: str, slots: Slots) -> ClozeItem:
    truth, *distractors = (
        _events(words, number, slots)
        for number, words in enumerate(split_at(text.split(), OPTION_TAG), start=1)
    )
    return ClozeItem(truth, tuple(distractors))


def _events(words: list[str], option: int, slots: Slots) -> Sequel:
    return tuple(
        tuple([MISSING if word.upper() == NULL else word for word in event])
        for event in split_events(words, slots, f" of option {option}")
    )


def write_cloze(path: AnyPath, items: Iterable[ClozeItem]) -> int:
    """The inverse of ``read_cloze``; returns how many. If anything fails, an old file stays as it was."""
    first, count = None, 0
    with atomic_write(path) as temporary, open_text_for_writing(temporary) as file:
        for count, item in enumerate(items, start=1):
            first = first or item
            try:
                item.check_like(first)
                file.write(f" {OPTION_TAG} ".join(map(_text, (item.truth, *item.distractors))) + "\n")
            except Malformed as error:
                raise UserError(f"cannot write item {count} to {path}: {error}") from error
    return count


def _text(events: Sequel) -> str:
    for word in (word for event in events for word in event):
        if not writable(word):
            raise Malformed(
                f"the word {shorten(word)}", f"one word, and neither {EVENT_TAG}, {OPTION_TAG} nor {NULL}"
            )
    return f" {EVENT_TAG} ".join(
        " ".join(NULL if word == MISSING else word for word in event) for event in events
    )


def writable(word: str) -> bool:
    """Whether a word would be read again as itself."""
    # A byte order mark would be taken off at the top of a file.
    return (
        word.split() == [word]
        and word.upper() not in (EVENT_TAG, OPTION_TAG, NULL)
        and not word.startswith(BOM.decode())
    )


def credits(scores: NDArray[np.float64], rounding: float) -> NDArray[np.float64]:
    """For each item 1 if option 0 has the best score, 1/n if it shares that place with n − 1 others, else 0.

    What is equal but for the order of a sum is equal: scores that differ by no more than ``rounding``.
    """
    best = scores >= scores.max(1, keepdims=True) - rounding
    return np.asarray(best[:, 0] / best.sum(1))


class ClozeBuilder:
    """Makes the items of a split while its documents go by.

    Each document of a sample is the truth of one item; what follows the first event of others is its
    distractors.
    """

    def __init__(self, settings: PrepareSettings) -> None:
        self.settings = settings
        self.sample = DocumentSample(settings.cloze_items, settings.cloze_seed)

    def add(self, id: str, events: Sequence[Words]) -> None:
        """A document with its usable events; it is passed over if they are too few or cannot be written."""
        sequence = tuple(events[: self.settings.cloze_events])
        if len(sequence) == self.settings.cloze_events and all(writable(w) for e in sequence for w in e):
            self.sample.add(id, sequence)

    def add_all(self, other: ClozeBuilder) -> None:
        """The documents that another one chose among others of the split."""
        self.sample.add_all(other.sample)

    def items(self) -> list[ClozeItem]:
        """All items, or none where there are too few different sequels for the options of even one."""
        chosen = self.sample.chosen()
        sequels = list(dict.fromkeys(sequence[1:] for *_, sequence in chosen))
        if len(sequels) < self.settings.cloze_options:
            return []
        place = {sequel: at for at, sequel in enumerate(sequels)}
        items = []
        for rank, _, truth in chosen:
            rng = Random(rank)
            drawn = {place[truth[1:]]: None}  # a set in the order of drawing; no sequel comes twice
            while len(drawn) < self.settings.cloze_options:
                drawn[int(rng.random() * len(sequels))] = None
            _, *others = drawn
            items.append(ClozeItem(truth, tuple(sequels[at] for at in others)))
        return items


@dataclass(frozen=True)
class ClozeTask:
    """Items in numbers. Option 0 is the true one; no model may look at the order."""

    seeds: NDArray[np.int32]  # N S
    options: NDArray[np.int32]  # N O E S
    words: int
    unknown_words: int

    def __len__(self) -> int:
        return len(self.seeds)

    @classmethod
    def of(cls, items: Sequence[ClozeItem], vocabulary: Vocabulary, lowercase: bool) -> ClozeTask:
        """The items in the words of a corpus, folded to lower case if the corpus is."""

        def ids(event: Words) -> list[int]:
            return vocabulary.word_ids(folded(event) if lowercase else event)

        seeds = np.array([ids(item.seed) for item in items], dtype=np.int32)
        options = np.array(
            [[[ids(event) for event in option] for option in item.options] for item in items], dtype=np.int32
        )
        if np.isin(options, [vocabulary.unknown, vocabulary.id(MISSING)]).all():
            raise UserError(
                "the vocabulary knows no word of any option of the cloze items\n"
                "they must be in the language of the corpus, in its spelling and case"
            )
        unknown = sum(int((ids == vocabulary.unknown).sum()) for ids in (seeds, options))
        return cls(seeds, options, seeds.size + options.size, unknown)
