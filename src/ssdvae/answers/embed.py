"""Vectors of documents and of their events, and which events are nearest to some other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.answers.table import Row, slot_columns
from ssdvae.answers.vectors import embed_documents as vectors_of
from ssdvae.answers.vectors import encode
from ssdvae.data.events import SLOTS, Document, Event, Slots, event_to_record
from ssdvae.errors import UserError
from ssdvae.models.base import Model

Array = NDArray[np.float32]

NEAR = 2.0
"""λ of the vectors by which neighbours are found: events of the same kind, and of these the most alike."""


@dataclass(frozen=True)
class Embedded:
    """A document with its vector, and those of its events in it (M d)."""

    document: Document
    vector: Array
    events: Array
    slots: Slots = SLOTS  # of the model

    def to_record(self) -> dict[str, Any]:
        events = [
            {**event_to_record(event, self.slots), "vector": vector}
            for event, vector in zip(self.document.events, _rounded(self.events), strict=True)
        ]
        return {"id": self.document.id, "vector": _rounded(self.vector), "events": events}

    def rows(self) -> Iterator[Row]:
        """For tables: a row for the document, whose event is 0, and one for each of its events."""
        yield {
            "id": self.document.id,
            "event": 0,
            **dict.fromkeys(self.slots),
            "vector": self.vector.tolist(),
        }
        for number, (event, vector) in enumerate(
            zip(self.document.events, self.events, strict=True), start=1
        ):
            yield {
                "id": self.document.id,
                "event": number,
                **slot_columns(event, self.slots),
                "vector": vector.tolist(),
            }


def _rounded(vectors: Array) -> list[Any]:
    found: list[Any] = vectors.astype(np.float64).round(6).tolist()
    return found


def embed(
    model: Model, documents: Iterable[Document], batch: int = 200, normalize: bool = True
) -> Iterator[Embedded]:
    """The vectors of documents, one after another; no more than a batch is held at once."""
    given, read = tee(documents)
    for document, (vector, events) in zip(given, vectors_of(model, read, batch, normalize), strict=True):
        yield Embedded(document, vector, events, model.slots)


@dataclass(frozen=True, slots=True)
class Similar:
    """An event of a corpus that is near to one that was asked for."""

    asked: Event
    rank: int
    id: str  # of its document
    place: int  # in it, from 0
    event: Event
    similarity: float  # cosine
    slots: Slots = SLOTS  # of the model

    def to_record(self) -> dict[str, Any]:
        return {
            "asked": str(self.asked),
            "rank": self.rank,
            "id": self.id,
            "event": self.place + 1,
            **slot_columns(self.event, self.slots),
            "similarity": round(self.similarity, 6),
        }

    def rows(self) -> Iterator[Row]:
        yield self.to_record()


def similar(
    model: Model, asked: Sequence[Event], among: Iterable[Document], top: int = 5, batch: int = 200
) -> list[Similar]:
    """The events of some documents that are nearest to each of those asked for, by the cosine of vectors.

    Each event is taken by itself, as those that are asked for are. Of equal events, the first one counts.
    """
    from sklearn.neighbors import NearestNeighbors  # slow to import, and nothing else here needs it

    first: dict[str, tuple[str, int, Event]] = {}
    for document in among:
        for place, event in enumerate(document.events):
            first.setdefault(str(event), (document.id, place, event))
    if not first:
        raise UserError("there are no events to compare with")
    places = list(first.values())
    vectors = encode(model, [event for _, _, event in places], batch, weight=NEAR)
    index = NearestNeighbors(n_neighbors=min(top, len(places)), metric="cosine").fit(vectors)
    distances, rows = index.kneighbors(encode(model, list(asked), batch, weight=NEAR))
    answers = []
    for event, near, far in zip(asked, rows.tolist(), distances.tolist(), strict=True):
        for rank, (row, distance) in enumerate(zip(near, far, strict=True), start=1):
            id, place, found = places[row]
            answers.append(Similar(event, rank, id, place, found, 1 - distance, model.slots))
    return answers
