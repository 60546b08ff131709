"""Documents as batches of word ids, and warnings of their out-of-vocabulary (OOV) words."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import pyarrow as pa

from ssdvae.data.batches import EVENTS, Batch, collate
from ssdvae.data.documents import Documents
from ssdvae.data.events import HOLE, MISSING, SLOTS, Document, Event, slot_format
from ssdvae.inference.lookup import Substitutes, lookup
from ssdvae.io.progress import checkpoint
from ssdvae.models.base import Model

log = logging.getLogger(__name__)


def _names(ids: Iterable[str]) -> pa.ChunkedArray:
    """Return ids as a column. Not by ``pa.array``, which imports pandas: a third of a second."""
    builder = pa.lib.StringBuilder()
    for id in ids:
        builder.append(id)
    return pa.chunked_array([builder.finish()])


def to_numbers(model: Model, documents: Iterable[Document], lowercase: bool | None = None) -> Documents:
    """Return documents in the numbers of a model, each word as it is read (``lookup``).

    Words are folded to lower case if those of the model are, unless ``lowercase`` says otherwise.
    """
    found, read = list(documents), lookup(model).read
    events = [event for document in found for event in document.events]
    words = model.vocabulary.word_ids(word for event in events for word in read(event, lowercase).words)
    frames = [model.frames.id(event.frame) for event in events]
    times = [math.nan if event.time is None else event.time for event in events]
    return Documents.of_events(
        _names([document.id for document in found]),
        np.array(words, np.int32).reshape(-1, len(model.slots)),
        np.array(frames, np.int32),
        np.array([len(document.events) for document in found], np.int32),
        times=None if all(map(math.isnan, times)) else np.array(times),
    )


def to_batch(
    model: Model,
    documents: Sequence[Document],
    lowercase: bool | None = None,
    observe_frames: bool = False,
) -> Batch:
    """Return documents as a batch, on the device of the model."""
    found = to_numbers(model, documents, lowercase)
    observed = found.frames if observe_frames else None
    return collate(found, np.arange(len(found)), observed).to(model.device)


def groups(documents: Iterable[Document], batch: int) -> Iterator[list[Document]]:
    """Yield documents in groups that, padded to the longest, are no larger than a batch."""
    group: list[Document] = []
    longest = 0
    for document in documents:
        longest = max(longest, len(document.events))
        if group and (len(group) == batch or (len(group) + 1) * longest > batch * EVENTS):
            checkpoint()
            yield group
            group, longest = [], len(document.events)
        group.append(document)
    if group:
        yield group


AnyAnswer = TypeVar("AnyAnswer")


def answer_each(
    documents: Iterable[Document],
    batch: int,
    answer: Callable[[list[Document]], Iterable[AnyAnswer]],
    empty: Callable[[Document], AnyAnswer],
) -> Iterator[AnyAnswer]:
    """Yield the answer about each document, computed in groups; one without events gets ``empty``."""
    for group in groups(documents, batch):
        full = [document for document in group if document.events]
        answers = iter(answer(full)) if full else iter(())
        for document in group:
            yield next(answers) if document.events else empty(document)


ENOUGH = 1_000
"""Words after which a warning is given, if the input does not end before."""


SHOWN = 5
"""Words and events that a warning names, at most."""


@dataclass
class OovStats:
    """The number of words that were read, and of those that are unknown, with the first ones."""

    words: int = 0
    unknown: int = 0
    substitutes: Substitutes = field(default_factory=dict, compare=False)
    reordered: str | None = field(default=None, compare=False)  # what may be meant by an event

    @classmethod
    def of(cls, model: Model, documents: Iterable[Document]) -> OovStats:
        stats = cls()
        for document in documents:
            stats.add(model, document.events)
        return stats

    def counts(self) -> dict[str, int]:
        return {"words": self.words, "unknown_words": self.unknown}

    def add(self, model: Model, events: Iterable[Event]) -> None:
        known = lookup(model)
        for event in events:
            read = known.read(event)
            self.words += sum(word not in (MISSING, HOLE) for word in event.words)
            self.unknown += len(read.unknown)
            meant = known.reordered(event)
            if meant is not None and self.reordered is None:
                self.reordered = f"{event}: did you mean `{meant}`?"
            elif len(self.substitutes) <= SHOWN:
                self.substitutes |= read.unknown

    @property
    def warning(self) -> str | None:
        """The warning: unknown words by name, words in another order, or that most are unknown."""
        lines = []
        if self.reordered is not None:
            lines.append(f"{self.reordered} An event is typed as: {slot_format(SLOTS)}")
        if self.substitutes:
            names = [w if x is None else f"{w} (read as {x})" for w, x in self.substitutes.items()]
            more = ", …" if len(names) > SHOWN else ""
            lines.append(f"words that the model does not know: {', '.join(names[:SHOWN])}{more}")
        if 2 * self.unknown > self.words:
            lines.append(
                f"{self.unknown:,} of {self.words:,} words are unknown to the model: its answers say little\n"
                "train one on your own data: ssdvae prepare events.jsonl --out corpus, then "
                "ssdvae train corpus --out run"
            )
        return "\n".join(lines) or None

    def warn(self) -> None:
        if (warning := self.warning) is not None:
            log.warning(warning)


def warn_if_oov(model: Model, documents: Iterable[Document]) -> Iterator[Document]:
    """Yield the same documents; warn once of unknown words."""
    stats, warned = OovStats(), False
    for document in documents:
        stats.add(model, document.events)
        yield document
        if not warned and stats.words >= ENOUGH:
            stats.warn()
            warned = True
    if not warned:
        stats.warn()
