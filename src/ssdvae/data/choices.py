"""Questions with one right answer about the documents of any corpus, as `prepare` makes them.

**Masked event**: which of some events stood here? **Order**: is this how it went, or were two events swapped?
Each file has one item on each line, as JSON; an event is a list of its words, null in an empty slot:

    {"events": [["met", "she", "him", null], …], "place": 2, "others": [["left", "it", null, "at"], …]}
    {"events": [["met", "she", "him", null], …], "swapped": [0, 3]}

``events`` are those of the document; places are counted from 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol, Self, TypedDict, TypeVar

from ssdvae.config import PrepareSettings
from ssdvae.data.events import MISSING, Words
from ssdvae.data.readers.jsonl import write_records
from ssdvae.data.sample import DocumentSample
from ssdvae.errors import DataError, Malformed
from ssdvae.files import AnyPath, text_lines
from ssdvae.records import from_json
from ssdvae.shapes import check_shape

FEWEST = 3
"""Events of a document that is asked about: of fewer, there is hardly anything to answer from."""

Script = tuple[Words, ...]


class Item(Protocol):
    """A question; its options are whole documents, and the first is the true one."""

    @property
    def options(self) -> tuple[Script, ...]: ...


class _Masked(TypedDict):
    events: list[list[str | None]]
    place: int
    others: list[list[str | None]]


@dataclass(frozen=True, slots=True)
class MaskedItem:
    """A document, a place in it, and events that did not stand there."""

    events: Script
    place: int
    others: tuple[Words, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.place < len(self.events):
            raise Malformed(f"the place {self.place}", f"one from 0 to {len(self.events) - 1}")
        if not self.others:
            raise Malformed("no other events", "at least one")
        _check_widths((*self.events, *self.others))

    @property
    def candidates(self) -> tuple[Words, ...]:
        """The true event first."""
        return (self.events[self.place], *self.others)

    @property
    def options(self) -> tuple[Script, ...]:
        before, after = self.events[: self.place], self.events[self.place + 1 :]
        return tuple((*before, candidate, *after) for candidate in self.candidates)

    @classmethod
    def from_record(cls, record: object) -> Self:
        check_shape(record, _Masked)
        assert isinstance(record, dict)
        return cls(_script(record["events"]), record["place"], _script(record["others"]))

    def to_record(self) -> dict[str, Any]:
        return {"events": _lists(self.events), "place": self.place, "others": _lists(self.others)}


class _Order(TypedDict):
    events: list[list[str | None]]
    swapped: list[int]


@dataclass(frozen=True, slots=True)
class OrderItem:
    """A document, and the places of two different events of it."""

    events: Script
    swapped: tuple[int, int]

    def __post_init__(self) -> None:
        first, second = self.swapped
        if not 0 <= first < second < len(self.events):
            raise Malformed(f"the places {first} and {second}", f"two from 0 to {len(self.events) - 1}")
        if self.events[first] == self.events[second]:
            raise Malformed(f"the same event at the places {first} and {second}", "two that differ")
        _check_widths(self.events)

    @property
    def options(self) -> tuple[Script, ...]:
        swapped, (first, second) = list(self.events), self.swapped
        swapped[first], swapped[second] = swapped[second], swapped[first]
        return self.events, tuple(swapped)

    @classmethod
    def from_record(cls, record: object) -> Self:
        check_shape(record, _Order)
        assert isinstance(record, dict)
        if len(record["swapped"]) != 2:
            raise Malformed(f"{len(record['swapped'])} places under 'swapped'", "2")
        first, second = record["swapped"]
        return cls(_script(record["events"]), (first, second))

    def to_record(self) -> dict[str, Any]:
        return {"events": _lists(self.events), "swapped": list(self.swapped)}


def _script(events: list[list[str | None]]) -> Script:
    return tuple(tuple(MISSING if word is None else word for word in event) for event in events)


def _lists(events: Iterable[Words]) -> list[list[str | None]]:
    return [[None if word == MISSING else word for word in event] for event in events]


def _check_widths(events: Sequence[Words]) -> None:
    widths = {len(event) for event in events}
    if len(widths) > 1 or not min(widths, default=0):
        raise Malformed(
            f"events of {' and '.join(map(str, sorted(widths)))} words", "the same number in each"
        )


AnyItem = TypeVar("AnyItem", MaskedItem, OrderItem)


def read_items(path: AnyPath, kind: type[AnyItem]) -> list[AnyItem]:
    """The items of a file, plain or .gz; blank lines are passed over."""
    items: list[AnyItem] = []
    for number, text in text_lines(path):
        if not text.strip():
            continue
        try:
            items.append(kind.from_record(from_json(text)))
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected) from error
    if not items:
        raise DataError(path, None, "no items", "one on each line, as JSON")
    return items


def write_items(path: AnyPath, items: Iterable[MaskedItem | OrderItem]) -> int:
    """The inverse of ``read_items``; returns how many."""
    return write_records(path, (item.to_record() for item in items))


class ChoiceBuilder:
    """Makes the items of a split while its documents go by: one of each kind of a document, if it has one."""

    def __init__(self, settings: PrepareSettings) -> None:
        self.settings = settings
        self.sample = DocumentSample(settings.cloze_items, settings.cloze_seed)

    def add(self, id: str, events: Sequence[Words]) -> None:
        """A document with its usable events; it is passed over if they are too few."""
        if len(script := events[: self.settings.cloze_events]) >= FEWEST:
            self.sample.add(id, script)

    def add_all(self, other: ChoiceBuilder) -> None:
        """The documents that another one chose among others of the split."""
        self.sample.add_all(other.sample)

    def masked(self) -> list[MaskedItem]:
        """Others are events of the other documents; none where there are too few different ones."""
        chosen = self.sample.chosen()
        pool = list(dict.fromkeys(event for _, _, script in chosen for event in script))
        options = self.settings.cloze_options
        items = []
        for rank, _, script in chosen if len(pool) >= options + self.settings.cloze_events else ():
            rng = Random(rank)
            place = int(rng.random() * len(script))
            others: dict[Words, None] = {}  # a set in the order of drawing
            while len(others) < options - 1:
                if (event := pool[int(rng.random() * len(pool))]) not in script:
                    others[event] = None
            items.append(MaskedItem(script, place, tuple(others)))
        return items

    def orders(self) -> list[OrderItem]:
        """Any two events that differ are as likely to be swapped as any others."""
        items = []
        for rank, _, script in self.sample.chosen():
            places = range(len(script))
            pairs = [(a, b) for a in places for b in places[a + 1 :] if script[a] != script[b]]
            if pairs:
                items.append(OrderItem(script, pairs[int(Random(rank).random() * len(pairs))]))
        return items
