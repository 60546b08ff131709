"""The frames of new documents, as many as one likes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ssdvae.answers.beliefs import infer_frames
from ssdvae.answers.inputs import groups, to_batch
from ssdvae.answers.ranked import Ranked, ranked_everywhere
from ssdvae.answers.table import Row, slot_columns
from ssdvae.answers.unknown import count_unknown
from ssdvae.data.batches import Batch
from ssdvae.data.events import SLOTS, Document, Event, Slots, event_to_record
from ssdvae.models.base import FramePosterior, Model

log = logging.getLogger(__name__)

LOOKED_AT = 64
"""Events of a document whose attention is told, at most: it is one number for each pair of event and word."""


@dataclass(frozen=True, slots=True)
class InferredEvent:
    """An event as it was given, with its known frame if there is one, and what the model infers.

    The probabilities are those of ``FrameModel.posterior``.
    """

    event: Event
    observed: str | None  # the frame that the model was told
    frames: Ranked  # the likeliest first: one at least
    attention: tuple[float, ...] | None = None  # on each word of the document, event by event

    @property
    def frame(self) -> str:
        return self.frames[0].name

    @property
    def probability(self) -> float:
        return self.frames[0].probability

    @property
    def gold(self) -> str | None:
        return self.event.frame

    def to_record(self, slots: Slots) -> dict[str, Any]:
        given = as_given(self.event, slots)
        record = {**given, "observed": self.observed, **self.frames[0].to_record("frame")}
        if len(self.frames) > 1:
            record["alternatives"] = [frame.to_record("frame") for frame in self.frames[1:]]
        if self.attention is not None:
            record["attention"] = [round(share, 4) for share in self.attention]
        return record


@dataclass(frozen=True, slots=True)
class InferredDocument:
    """The events of a document with their frames."""

    id: str
    events: tuple[InferredEvent, ...]
    unknown_words: int  # that the model has never seen, and read as one and the same
    slots: Slots = SLOTS  # of the model

    def to_record(self) -> dict[str, Any]:
        """For JSON: the document as it was read, with more said about each event."""
        return {
            "id": self.id,
            "unknown_words": self.unknown_words,
            "events": [event.to_record(self.slots) for event in self.events],
        }

    def rows(self) -> Iterator[Row]:
        """For tables: one row an event."""
        for number, event in enumerate(self.events, start=1):
            yield {
                "id": self.id,
                "event": number,
                **slot_columns(event.event, self.slots),
                "gold": event.gold,
                "observed": event.observed,
                "frame": event.frame,
                "probability": event.probability,
            }


def as_given(event: Event, slots: Slots) -> dict[str, Any]:
    """An event as files have it, its own frame under the name ``gold``."""
    record = event_to_record(event, slots)
    return {("gold" if name == "frame" else name): value for name, value in record.items()}


def infer_documents(
    model: Model,
    documents: Iterable[Document],
    batch: int = 200,
    lowercase: bool | None = None,
    observe_frames: bool = False,
    top: int = 1,
    attention: bool = False,
) -> Iterator[InferredDocument]:
    """The frames of documents of any length, one after another; no more than a batch is held at once.

    By default nothing is observed. With ``observe_frames``, the known frames are evidence: each is likelier,
    as in training, or certain in a model that sums over frames; in a chain it steers those after it. ``top``
    frames of each event are told, and ``attention`` of a model that has it, where a document is not long.
    """
    warned = model.any_length
    for group in groups(documents, batch):
        full = [document for document in group if document.events]
        longest = max((len(document.events) for document in full), default=0)
        if not warned and (warning := model.reading.beyond(longest)) is not None:
            log.warning(warning)
            warned = True
        if full:
            numbers = to_batch(model, full, lowercase, observe_frames)
            beliefs = infer_frames(model, numbers)
            rows = iter(_documents(model, full, numbers, beliefs, top, attention))
        for document in group:
            yield next(rows) if document.events else InferredDocument(document.id, (), 0, model.slots)


def _documents(
    model: Model,
    documents: Sequence[Document],
    batch: Batch,
    beliefs: FramePosterior,
    top: int,
    attention: bool,
) -> Iterator[InferredDocument]:
    frames = ranked_everywhere(beliefs.log_q, model.frames, top)
    observed, unknown = batch.observed.tolist(), count_unknown(model, batch)
    for row, document in enumerate(documents):
        weights: list[list[float]] | None = None
        if attention and beliefs.attention is not None and len(document.events) <= LOOKED_AT:
            weights = beliefs.attention.of(row, len(document.events)).tolist()
        words = batch.tokens.shape[2] * len(document.events)
        yield InferredDocument(
            document.id,
            tuple(
                InferredEvent(
                    event=event,
                    observed=None if told < 0 else model.frames.name(told),
                    frames=frames[row][m],
                    attention=None if weights is None else tuple(weights[m][:words]),
                )
                for m, (event, told) in enumerate(zip(document.events, observed[row], strict=False))
            ),
            unknown[row],
            model.slots,
        )
