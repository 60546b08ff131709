"""Embeddings of events and documents, and the nearest neighbours of events.

With the unit vectors u_s = (E[w_s] − mean of E) / ‖…‖ of the words of an event, and the decoder's state h
after it, the embedding of the event is

    v = [unit(⊙_s u_s);  λ unit(u_head + Σ_s u_s);  μ unit(h)]          λ = 0.3, μ = 0.2

The product tells apart events that share most of their words: all slots have to agree (the multiplicative
composition of Mitchell and Lapata, 2008). The sum, in which the head counts twice and unknown words do not,
finds events of the same kind; for nearest neighbours λ is larger. The state has read the events before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ssdvae.data.batches import Batch
from ssdvae.data.events import SLOTS, Document, Event, Slots, event_to_record, to_document
from ssdvae.inference.inputs import answer_each, to_batch
from ssdvae.inference.lookup import Substitutes, heads_known, unknown_words
from ssdvae.inference.output import Row, slot_columns
from ssdvae.inference.sentences import with_format, with_sentences
from ssdvae.io.errors import Malformed, UserError
from ssdvae.models.base import LanguageModel, Model

SUM, STATE = 0.3, 0.2
"""λ and μ: the weights of the parts beside the product."""

NEIGHBOUR_SUM = 2.0
"""λ for nearest neighbours: events of the same kind, and among these the most similar."""

Array = NDArray[np.float32]


@dataclass(frozen=True)
class EmbeddedDocument:
    """A document with its vector, the mean over its events, and the vectors of its events (M d)."""

    document: Document
    vector: Array
    events: Array
    unknown_words: Substitutes
    head_known: bool  # all heads
    slots: Slots = SLOTS  # of the model

    def to_record(self) -> dict[str, Any]:
        events = [
            {**event_to_record(event, self.slots), "vector": vector}
            for event, vector in zip(self.document.events, _rounded(self.events), strict=True)
        ]
        record = {"id": self.document.id, "vector": _rounded(self.vector), "events": events}
        return {**record, "head_known": self.head_known, "unknown_words": self.unknown_words}

    def rows(self) -> Iterator[Row]:
        """Yield a row for the document, with event number 0, and one per event."""
        nothing: Row = dict.fromkeys(self.slots)
        yield {"id": self.document.id, "event": 0, **nothing, "vector": self.vector.tolist()}
        pairs = zip(self.document.events, self.events, strict=True)
        for number, (event, vector) in enumerate(pairs, start=1):
            words = slot_columns(event, self.slots)
            yield {"id": self.document.id, "event": number, **words, "vector": vector.tolist()}


def _rounded(vectors: Array) -> list[Any]:
    values: list[Any] = vectors.astype(np.float64).round(6).tolist()
    return values


def compose(
    words: Float[Tensor, "V e"],
    tokens: Int[Tensor, "B M slots"],
    present: Bool[Tensor, "B M slots"],
    known: Bool[Tensor, "B M slots"],
) -> tuple[Float[Tensor, "B M e"], Float[Tensor, "B M e"]]:
    """Return unit(⊙_s u_s) over the ``present`` words, and unit(u_head + Σ_s u_s) over the ``known`` ones."""
    # Of length √e, so that a product of many is no smaller than one of few.
    units = functional.normalize(words[tokens] - words.mean(0), dim=-1) * words.shape[1] ** 0.5
    product = units.masked_fill(~present[..., None], 1).prod(2)
    summed = units.masked_fill(~known[..., None], 0)
    total = summed.sum(2) + summed[:, :, 0]
    return functional.normalize(product, dim=-1), functional.normalize(total, dim=-1)


def event_vectors(model: Model, batch: Batch, weight: float = SUM) -> Float[Tensor, "B M d"]:
    """Return the vector of each event in its document, with λ = ``weight``; 0 at padding."""
    present = batch.tokens != model.vocabulary.missing
    known = present & (batch.tokens != model.vocabulary.unknown)
    product, total = compose(model.word_reader.words.weight, batch.tokens, present, known)
    parts = [product, weight * total]
    if isinstance(model, LanguageModel):
        parts.append(STATE * functional.normalize(model.event_states(batch), dim=-1).to(product))
    return torch.cat(parts, dim=-1).masked_fill(~batch.mask[..., None], 0)


def embed(
    model: Model,
    documents: Iterable[Document],
    batch: int = 200,
    normalize: bool = True,
    weight: float = SUM,
) -> Iterator[EmbeddedDocument]:
    """Yield the vectors of each document and its events, of length 1 if ``normalize``.

    No more than a batch is held at once.
    """

    def empty(document: Document) -> EmbeddedDocument:
        width = vector_width(model)
        nothing = np.zeros(width, np.float32), np.zeros((0, width), np.float32)
        return EmbeddedDocument(document, *nothing, {}, True, model.slots)

    return answer_each(documents, batch, lambda some: _embedded(model, some, normalize, weight), empty)


def vector_width(model: Model) -> int:
    """Return the dimension of the vectors."""
    width: int = event_vectors(model, to_batch(model, [Document("", (Event("a"),))])).shape[-1]
    return width


@torch.no_grad()
def _embedded(
    model: Model, documents: Sequence[Document], normalize: bool, weight: float
) -> list[EmbeddedDocument]:
    batch = to_batch(model, documents)
    events = event_vectors(model, batch, weight).float()
    means = events.sum(1) / batch.mask.sum(1, keepdim=True)
    if normalize:
        events, means = (functional.normalize(x, dim=-1) for x in (events, means))
    return [
        EmbeddedDocument(
            document,
            mean.cpu().numpy(),
            own[: len(document.events)].cpu().numpy(),
            unknown_words(model, document.events),
            heads_known(model, document.events),
            model.slots,
        )
        for mean, own, document in zip(means, events, documents, strict=True)
    ]


def encode(model: Model, given: Any, batch: int = 200, normalize: bool = True, weight: float = SUM) -> Array:
    """Return the vectors of events, each read alone, or of documents, in their order: N d.

    A single event or document has a single vector: d.
    """
    single = _is_event(given) or isinstance(given, Document) or _has_events(given)
    documents = [
        _document(value, number, model) for number, value in enumerate([given] if single else given, start=1)
    ]
    if not documents:
        return np.zeros((0, vector_width(model)), np.float32)
    vectors = np.stack([found.vector for found in embed(model, documents, batch, normalize, weight)])
    return vectors[0] if single else vectors


def _is_event(value: object) -> bool:
    return isinstance(value, str | Event) or (isinstance(value, Mapping) and not _has_events(value))


def _has_events(value: object) -> bool:
    return isinstance(value, Mapping) and "events" in value


def _document(value: object, number: int, model: Model) -> Document:
    slots = model.slots
    try:
        value = with_sentences([value] if _is_event(value) else value, model)
        return to_document(value, str(number), slots)
    except Malformed as error:
        raise UserError(f"input {number}: {with_format(error, slots)}") from error


@dataclass(frozen=True, slots=True)
class SimilarEvent:
    """An event of a corpus that is near to the ``asked`` one."""

    asked: Event
    rank: int
    id: str  # of its document
    place: int  # in it, from 0
    event: Event
    similarity: float  # cosine
    head_known: bool  # of the asked event
    slots: Slots = SLOTS  # of the model

    def to_record(self) -> dict[str, Any]:
        return {
            "asked": str(self.asked),
            "rank": self.rank,
            "id": self.id,
            "event": self.place + 1,
            **slot_columns(self.event, self.slots),
            "similarity": round(self.similarity, 6),
            "head_known": self.head_known,
        }

    def rows(self) -> Iterator[Row]:
        yield self.to_record()


@dataclass(frozen=True)
class EventIndex:
    """The distinct events of documents with their vectors; each is read alone."""

    model: Model
    places: list[tuple[str, int, Event]]  # the id of its document, its place in it, and the event
    neighbours: Any  # of scikit-learn
    batch: int

    @classmethod
    def of(cls, model: Model, among: Iterable[Document], batch: int = 200) -> EventIndex:
        """Return the events of documents. Equal events count once, where they occur first."""
        from sklearn.neighbors import NearestNeighbors  # slow to import

        first: dict[str, tuple[str, int, Event]] = {}
        for document in among:
            for place, event in enumerate(document.events):
                first.setdefault(str(event), (document.id, place, event))
        if not first:
            raise UserError("there are no events to compare with")
        places = list(first.values())
        vectors = encode(model, [event for _, _, event in places], batch, weight=NEIGHBOUR_SUM)
        return cls(model, places, NearestNeighbors(metric="cosine").fit(vectors), batch)

    def search(self, asked: Sequence[Event], top: int) -> list[SimilarEvent]:
        """Return the ``top`` events nearest to each event, by the cosine of their vectors."""
        vectors = encode(self.model, list(asked), self.batch, weight=NEIGHBOUR_SUM)
        distances, rows = self.neighbours.kneighbors(vectors, min(top, len(self.places)))
        return [
            SimilarEvent(
                event,
                rank,
                id,
                place,
                neighbour,
                1 - distance,
                heads_known(self.model, [event]),
                self.model.slots,
            )
            for event, near, far in zip(asked, rows.tolist(), distances.tolist(), strict=True)
            for rank, (row, distance) in enumerate(zip(near, far, strict=True), start=1)
            for id, place, neighbour in [self.places[row]]
        ]


def similar(
    model: Model, asked: Sequence[Event], among: Iterable[Document], top: int = 5, batch: int = 200
) -> list[SimilarEvent]:
    """Return the ``top`` events of documents nearest to each event."""
    return EventIndex.of(model, among, batch).search(asked, top)
