"""The most surprising events of many, each with what was expected in its place."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ssdvae.answers.next_events import Next, next_events
from ssdvae.answers.score import ScoredDocument, ScoredEvent
from ssdvae.answers.table import Row, slot_columns
from ssdvae.config import NextSettings
from ssdvae.data.events import Document
from ssdvae.models.base import Model


@dataclass(frozen=True)
class Unusual:
    """An event of a document, and what might have been expected after those before it."""

    id: str
    place: int  # in the document, from 0
    scored: ScoredEvent
    expected: Next

    def to_record(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "event": self.place + 1,
            **self.scored.to_record(self.expected.slots),
            "expected": [event.to_record(self.expected.slots) for event in self.expected.events],
        }

    def rows(self) -> Iterator[Row]:
        """For tables: one row, with the likeliest of what was expected."""
        best = self.expected.events[0] if self.expected.events else None
        yield {
            "id": self.id,
            "event": self.place + 1,
            **slot_columns(self.scored.event, self.expected.slots),
            "nats": self.scored.nats,
            "expected": None if best is None else str(best.event),
        }


def most_unusual(
    model: Model, documents: Iterable[ScoredDocument], top: int, settings: NextSettings
) -> list[Unusual]:
    """The most surprising first; no more than ``top`` documents are held."""
    found = (
        (event.nats, -number, place, document)
        for number, document in enumerate(documents)
        for place, event in enumerate(document.events)
    )
    best = heapq.nlargest(top, found, key=lambda one: one[:3])
    before = [
        Document(document.id, tuple(event.event for event in document.events[:place]))
        for *_, place, document in best
    ]
    ahead = next_events(model, before, **settings.values())
    return [
        Unusual(document.id, place, document.events[place], expected)
        for (*_, place, document), expected in zip(best, ahead, strict=True)
    ]
