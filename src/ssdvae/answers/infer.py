"""The frames of new documents, as many as one likes."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch

from ssdvae.answers.beliefs import infer_frames
from ssdvae.data.batches import Batch
from ssdvae.data.events import SLOTS, Document, Event, Slots, event_to_record, folded
from ssdvae.models.base import Beliefs, EventModel

log = logging.getLogger(__name__)

LOOKED_AT = 64
"""Events of a document whose attention is told, at most: it is one number for each pair of event and word."""

EVENTS = 20
"""Events of an ordinary document, at most: fewer documents are read at once where one is longer."""


@dataclass(frozen=True, slots=True)
class InferredEvent:
    """An event as it was given, with its known frame if there is one, and what the model infers.

    The probabilities are q(f_m | f_{m−1}, I_m, w), given the likeliest frame of the event before.
    """

    event: Event
    observed: str | None  # the frame that the model was told
    frame: str
    probability: float
    runner_up: str | None  # None in a model with one frame
    runner_up_probability: float
    attention: tuple[float, ...] | None  # on each word of a document that is not long, one a slot

    @property
    def gold(self) -> str | None:
        return self.event.frame


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
            "events": [
                {
                    **_as_given(event.event, self.slots),
                    "observed": event.observed,
                    "frame": event.frame,
                    "probability": round(event.probability, 6),
                    "runner_up": event.runner_up,
                    "runner_up_probability": round(event.runner_up_probability, 6),
                    "attention": event.attention and [round(share, 4) for share in event.attention],
                }
                for event in self.events
            ],
        }


def _as_given(event: Event, slots: Slots) -> dict[str, Any]:
    """An event as files have it, its own frame under the name ``gold``."""
    record = event_to_record(event, slots)
    return {("gold" if name == "frame" else name): value for name, value in record.items()}


def to_batch(
    model: EventModel,
    documents: Sequence[Document],
    lowercase: bool | None = None,
    observe_frames: bool = False,
) -> Batch:
    """Documents in the numbers of a model, with the frames it knows.

    Words are folded to lower case if those of the model are, unless ``lowercase`` says otherwise.
    """
    fold = model.vocabulary.lowercase if lowercase is None else lowercase
    width = len(model.slots)
    longest = max(len(document.events) for document in documents)
    words, known = [], []
    for document in documents:
        padding = longest - len(document.events)
        events = (event.padded(width) for event in document.events)
        seen = chain.from_iterable(map(folded, events) if fold else events)
        words.append(model.vocabulary.word_ids(seen) + [0] * (width * padding))
        known.append([model.frames.id(event.frame) for event in document.events] + [-1] * padding)
    tokens = torch.tensor(words, dtype=torch.long).view(len(documents), longest, width)
    frames = torch.tensor(known, dtype=torch.long)
    mask = torch.arange(longest) < torch.tensor([[len(document.events)] for document in documents])
    observed = frames if observe_frames else torch.full_like(frames, -1)
    return Batch(tokens, frames, observed, mask).to(model.device)


def unknown_words(model: EventModel, events: Iterable[Event]) -> list[str]:
    """The words of some events that the model does not know, each once."""
    fold = model.vocabulary.lowercase
    words = (word for event in events for word in (folded(event.words) if fold else event.words))
    return [word for word in dict.fromkeys(words) if word not in model.vocabulary]


def infer_documents(
    model: EventModel,
    documents: Iterable[Document],
    batch: int = 200,
    lowercase: bool | None = None,
    observe_frames: bool = False,
) -> Iterator[InferredDocument]:
    """The frames of documents of any length, one after another; no more than a batch is held at once.

    By default nothing is observed. With ``observe_frames``, the known frames are evidence: each makes itself
    likelier, as in training, and steers those after it; it is not certain.
    """
    warned = model.reads_any_length
    for group in _groups(documents, batch):
        full = [document for document in group if document.events]
        longest = max((len(document.events) for document in full), default=0)
        if not warned and (warning := model.reading.beyond(longest)) is not None:
            log.warning(warning)
            warned = True
        if full:
            numbers = to_batch(model, full, lowercase, observe_frames)
            rows = _rows(model, full, numbers, infer_frames(model, numbers))
        for document in group:
            yield next(rows) if document.events else InferredDocument(document.id, (), 0, model.slots)


def inferred_records(
    model: EventModel, documents: Iterable[Document], **settings: Any
) -> Iterator[dict[str, Any]]:
    """The same for JSON."""
    return (document.to_record() for document in infer_documents(model, documents, **settings))


def _groups(documents: Iterable[Document], batch: int) -> Iterator[list[Document]]:
    """Documents in their order, so many that padded to the longest they are no more than a batch."""
    group: list[Document] = []
    longest = 0
    for document in documents:
        longest = max(longest, len(document.events))
        if group and (len(group) == batch or (len(group) + 1) * longest > batch * EVENTS):
            yield group
            group, longest = [], len(document.events)
        group.append(document)
    if group:
        yield group


def _rows(
    model: EventModel, documents: Sequence[Document], batch: Batch, beliefs: Beliefs
) -> Iterator[InferredDocument]:
    width = len(model.slots)
    best = beliefs.log_q.topk(min(2, len(model.frames)))
    frames, probabilities = best.indices.tolist(), best.values.exp().tolist()
    observed = batch.observed.tolist()
    unknown = ((batch.tokens == model.vocabulary.unknown) & batch.mask[..., None]).sum((1, 2)).tolist()
    for row, document in enumerate(documents):
        events = []
        attention: list[list[float]] | None = None
        if beliefs.looks is not None and len(document.events) <= LOOKED_AT:
            attention = beliefs.looks.of(row, len(document.events)).tolist()
        for m, event in enumerate(document.events):
            names = [model.frames.name(frame) for frame in frames[row][m]]
            told = observed[row][m]
            looks = None if attention is None else tuple(attention[m][: width * len(document.events)])
            second = (names[1], probabilities[row][m][1]) if len(names) > 1 else (None, 0.0)
            events.append(
                InferredEvent(
                    event=event,
                    observed=model.frames.name(told) if told >= 0 else None,
                    frame=names[0],
                    probability=probabilities[row][m][0],
                    runner_up=second[0],
                    runner_up_probability=second[1],
                    attention=looks,
                )
            )
        yield InferredDocument(document.id, tuple(events), unknown[row], model.slots)
