"""Multiple-choice items of a corpus: inverse narrative cloze, masked event, and ordering.

`prepare` makes them for the validation and the test split while the documents are read.

**Inverse narrative cloze**: which events really followed the first one? The public text format has an item on
each line, the true sequence first:

    verb subj obj mod <TUP> verb subj obj mod … <DIST> verb subj obj mod <TUP> … <DIST> …

The true sequence has n events, of which the first is the seed. Each distractor has n − 1 events, to be read
after the same seed. ``_NULL_`` stands in an empty slot. An event has as many words as the corpus has slots.

**Masked event**: which event stood here? **Ordering**: is this the true order, or were two events swapped?
Each line is an item as JSON, with the events of a document, null in empty slots, and indices from 0:

    {"events": [["met", "she", "him", null], …], "place": 2, "others": [["left", "it", null, "at"], …]}
    {"events": [["met", "she", "him", null], …], "swapped": [0, 3]}
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from ssdvae.data.corpus import ItemKind, item_file
from ssdvae.data.events import MISSING, SLOTS, Slots, Words
from ssdvae.data.options import PrepareOptions, Split
from ssdvae.data.readers.jsonl import filled_lines, write_records
from ssdvae.data.readers.text import EVENT_TAG, NULL, split_at, split_events
from ssdvae.io.errors import DataError, Malformed, UserError, locate_errors, shorten
from ssdvae.io.files import BOM, AnyPath, atomic_write, open_text_for_writing
from ssdvae.io.records import Record, from_json, parse

Script = tuple[Words, ...]
"""The events of a document, or of a part of it."""

OPTION_TAG = "<DIST>"

FEWEST = 3
"""Events of a document with a masked-event or an ordering item: fewer give too little context."""


def credits(scores: NDArray[np.float64], rounding: float) -> NDArray[np.float64]:
    """Return 1 for each item if option 0 has the best score, 1/n if n options share the best score, else 0.

    Scores that differ by at most ``rounding`` are equal.
    """
    best = scores >= scores.max(1, keepdims=True) - rounding
    return np.asarray(best[:, 0] / best.sum(1))


# Inverse narrative cloze


@dataclass(frozen=True, slots=True)
class ClozeItem:
    """A true sequence of events, and distractors: events that did not follow its first one, the seed."""

    truth: Script
    distractors: tuple[Script, ...]

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
    def options(self) -> tuple[Script, ...]:
        """The candidates for what follows the seed, the true one first."""
        return (self.truth[1:], *self.distractors)

    def check_like(self, first: ClozeItem) -> None:
        """Raise ``Malformed`` unless the item has as many options and events as the first one of its file."""
        for what, mine, theirs in (
            ("options", len(self.options), len(first.options)),
            ("events in option 1", len(self.truth), len(first.truth)),
        ):
            if mine != theirs:
                raise Malformed(f"{mine} {what}", f"{theirs}, as in the first item")


def read_cloze(path: AnyPath, slots: Slots = SLOTS) -> list[ClozeItem]:
    """Return the cloze items of a file, plain or .gz; blank lines are ignored."""
    items: list[ClozeItem] = []
    for number, text in filled_lines(path):
        with locate_errors(path, number):
            item = _cloze_item(text, slots)
            item.check_like(items[0] if items else item)
        items.append(item)
    if not items:
        raise DataError(path, None, "no cloze items", f"one on each line: events {OPTION_TAG} events …")
    return items


def _cloze_item(text: str, slots: Slots) -> ClozeItem:
    options = split_at(text.split(), OPTION_TAG)
    truth, *distractors = (
        tuple(
            tuple([MISSING if word.upper() == NULL else word for word in event])
            for event in split_events(words, slots, f" of option {number}")
        )
        for number, words in enumerate(options, start=1)
    )
    return ClozeItem(truth, tuple(distractors))


def write_cloze(path: AnyPath, items: Iterable[ClozeItem]) -> int:
    """Write cloze items and return their number. If anything fails, an old file stays as it was."""
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


def _text(events: Script) -> str:
    for word in (word for event in events for word in event):
        if not writable(word):
            expected = f"one word, and neither {EVENT_TAG}, {OPTION_TAG} nor {NULL}"
            raise Malformed(f"the word {shorten(word)}", expected)
    return f" {EVENT_TAG} ".join(
        " ".join(NULL if word == MISSING else word for word in event) for event in events
    )


def writable(word: str) -> bool:
    """Tell whether a word would be read again as itself."""
    return (
        word.split() == [word]
        and word.upper() not in (EVENT_TAG, OPTION_TAG, NULL)
        and not word.startswith(BOM.decode())  # removed at the beginning of a file
    )


# Masked event, ordering


@dataclass(frozen=True, slots=True)
class Question:
    """A place in a document, and candidates for its event; the first is right."""

    before: Script
    candidates: tuple[Words, ...]
    after: Script = ()

    @property
    def context(self) -> Script:
        return self.before + self.after

    @property
    def options(self) -> tuple[Script, ...]:
        """The documents to choose from, the true one first."""
        return tuple((*self.before, candidate, *self.after) for candidate in self.candidates)


Word = Annotated[
    str,
    BeforeValidator(lambda word: MISSING if word is None else word),
    PlainSerializer(lambda word: None if word == MISSING else word),
]
Events = Annotated[tuple[Annotated[tuple[Word, ...], Field(strict=False)], ...], Field(strict=False)]
"""Events as lists of words in JSON."""


class MaskedItem(Record, extra="ignore"):
    """A document, an index in it, and events that did not stand there."""

    events: Events
    place: int
    others: Events

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not 0 <= self.place < len(self.events):
            raise Malformed(f"the place {self.place}", f"one from 0 to {len(self.events) - 1}")
        if not self.others:
            raise Malformed("no other events", "at least one")
        _check_widths((*self.events, *self.others))
        return self

    @property
    def question(self) -> Question:
        """The place, with the events to choose from."""
        before, after = self.events[: self.place], self.events[self.place + 1 :]
        return Question(before, (self.events[self.place], *self.others), after)


class OrderItem(Record, extra="ignore"):
    """A document, and the indices of two different events of it."""

    events: Events
    swapped: Annotated[tuple[int, int], Field(strict=False)]

    @model_validator(mode="after")
    def _check(self) -> Self:
        first, second = self.swapped
        if not 0 <= first < second < len(self.events):
            raise Malformed(f"the places {first} and {second}", f"two from 0 to {len(self.events) - 1}")
        if self.events[first] == self.events[second]:
            raise Malformed(f"the same event at the places {first} and {second}", "two that differ")
        _check_widths(self.events)
        return self

    @property
    def options(self) -> tuple[Script, ...]:
        """The documents to choose from, the true one first."""
        swapped, (first, second) = list(self.events), self.swapped
        swapped[first], swapped[second] = swapped[second], swapped[first]
        return self.events, tuple(swapped)


def _check_widths(events: Sequence[Words]) -> None:
    widths = {len(event) for event in events}
    if len(widths) > 1 or not min(widths, default=0):
        found = f"events of {' and '.join(map(str, sorted(widths)))} words"
        raise Malformed(found, "the same number in each")


AnyItem = TypeVar("AnyItem", MaskedItem, OrderItem)


def read_items(path: AnyPath, kind: type[AnyItem]) -> list[AnyItem]:
    """Return the items of a file, plain or .gz; blank lines are ignored."""
    items: list[AnyItem] = []
    for number, text in filled_lines(path):
        with locate_errors(path, number):
            items.append(parse(kind, from_json(text)))
    if not items:
        raise DataError(path, None, "no items", "one on each line, as JSON")
    return items


def write_items(path: AnyPath, items: Iterable[MaskedItem | OrderItem]) -> int:
    """Write items and return their number."""
    return write_records(path, (item.model_dump(mode="json") for item in items))


def count_items(path: AnyPath, kind: ItemKind, slots: Slots) -> int:
    """Read the items of a file and return their number."""
    if kind == "cloze":
        return len(read_cloze(path, slots))
    return len(read_items(path, MaskedItem)) if kind == "masked" else len(read_items(path, OrderItem))


# Making items


class _Sample:
    """At most ``size`` documents: those with the largest hash of (seed, id), whatever their order."""

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seed = size, seed
        self.heap: list[tuple[int, str, Script]] = []

    def add(self, id: str, events: Sequence[Words]) -> None:
        seeded = repr((self.seed, id)).encode()
        rank = int.from_bytes(hashlib.blake2b(seeded, digest_size=8).digest(), "big")
        self.push((rank, id, tuple(events)))

    def push(self, candidate: tuple[int, str, Script]) -> None:
        push = heapq.heappush if len(self.heap) < self.size else heapq.heappushpop
        push(self.heap, candidate)

    def ranked(self) -> list[tuple[int, Script]]:
        """Return the hash and the events of each document, the largest hash first."""
        return [(rank, events) for rank, _, events in sorted(self.heap, reverse=True)]


class ItemBuilder:
    """Makes the items of a split while its documents are read; holds only a sample of them."""

    def __init__(self, options: PrepareOptions) -> None:
        self.options = options
        self.scripts, self.sequences = (_Sample(options.cloze_items, options.cloze_seed) for _ in range(2))

    def add(self, id: str, events: Sequence[Words]) -> None:
        """Add a document with its usable events."""
        script = events[: self.options.cloze_events]
        if len(script) >= FEWEST:
            self.scripts.add(id, script)
        if len(script) == self.options.cloze_events and all(writable(w) for e in script for w in e):
            self.sequences.add(id, script)

    def add_all(self, other: ItemBuilder) -> None:
        """Add the documents that another builder sampled from the same split."""
        for mine, theirs in ((self.scripts, other.scripts), (self.sequences, other.sequences)):
            for candidate in theirs.heap:
                mine.push(candidate)

    def cloze(self) -> list[ClozeItem]:
        """Return cloze items: each document is a truth, and the sequels of others are its distractors.

        Return none if there are too few different sequels.
        """
        chosen = self.sequences.ranked()
        sequels = list(dict.fromkeys(script[1:] for _, script in chosen))
        if len(sequels) < self.options.cloze_options:
            return []
        place = {sequel: at for at, sequel in enumerate(sequels)}
        items = []
        for rank, truth in chosen:
            rng = Random(rank)
            drawn = {place[truth[1:]]: None}  # a set in the order of drawing; no sequel comes twice
            while len(drawn) < self.options.cloze_options:
                drawn[int(rng.random() * len(sequels))] = None
            _, *others = drawn
            items.append(ClozeItem(truth, tuple(sequels[at] for at in others)))
        return items

    def masked(self) -> list[MaskedItem]:
        """Return masked-event items with events of other documents; none if these are too few."""
        chosen = self.scripts.ranked()
        pool = list(dict.fromkeys(event for _, script in chosen for event in script))
        count = self.options.cloze_options
        items = []
        for rank, script in chosen if len(pool) >= count + self.options.cloze_events else ():
            rng = Random(rank)
            place = int(rng.random() * len(script))
            others: dict[Words, None] = {}  # a set in the order of drawing
            while len(others) < count - 1:
                if (event := pool[int(rng.random() * len(pool))]) not in script:
                    others[event] = None
            items.append(MaskedItem(events=script, place=place, others=tuple(others)))
        return items

    def orders(self) -> list[OrderItem]:
        """Return ordering items; all pairs of different events are equally likely to be swapped."""
        items = []
        for rank, script in self.scripts.ranked():
            places = range(len(script))
            pairs = [(a, b) for a in places for b in places[a + 1 :] if script[a] != script[b]]
            if pairs:
                swapped = pairs[int(Random(rank).random() * len(pairs))]
                items.append(OrderItem(events=script, swapped=swapped))
        return items

    def write(self, folder: Path, split: Split) -> dict[ItemKind, int]:
        """Write the items into a corpus folder and return their numbers; no file for a kind without items."""

        def path(kind: ItemKind) -> Path:
            (folder / kind).mkdir(exist_ok=True)
            return folder / item_file(kind, split)

        cloze, masked, orders = self.cloze(), self.masked(), self.orders()
        return {
            "cloze": write_cloze(path("cloze"), cloze) if cloze else 0,
            "masked": write_items(path("masked"), masked) if masked else 0,
            "order": write_items(path("order"), orders) if orders else 0,
        }
