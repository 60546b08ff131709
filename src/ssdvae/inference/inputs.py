"""Documents as batches of word ids, and warnings of their out-of-vocabulary (OOV) words."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa
import torch

from ssdvae.data.batches import EVENTS, Batch
from ssdvae.data.documents import Documents
from ssdvae.data.events import HOLE, MISSING, SLOTS, Document, Event, slot_format
from ssdvae.inference.lookup import Substitutes, lookup
from ssdvae.io.progress import checkpoint
from ssdvae.models.base import Model

log = logging.getLogger(__name__)

SPLIT = 200
"""Documents that are encoded at once."""


def to_batch(
    model: Model,
    documents: Sequence[Document],
    lowercase: bool | None = None,
    observe_frames: bool = False,
) -> Batch:
    """Return documents as a batch of word and frame ids, each word as it is read (``lookup``).

    Words are folded to lower case if those of the model are, unless ``lowercase`` says otherwise.
    """
    width, read = len(model.slots), lookup(model).read
    longest = max(len(document.events) for document in documents)
    words, known = [], []
    for document in documents:
        padding = longest - len(document.events)
        seen = chain.from_iterable(read(event, lowercase).words for event in document.events)
        words.append(model.vocabulary.word_ids(seen) + [0] * (width * padding))
        known.append([model.frames.id(event.frame) for event in document.events] + [-1] * padding)
    tokens = torch.tensor(words, dtype=torch.long).view(len(documents), longest, width)
    frames = torch.tensor(known, dtype=torch.long)
    mask = torch.arange(longest) < torch.tensor([[len(document.events)] for document in documents])
    observed = frames if observe_frames else torch.full_like(frames, -1)
    times = [[event.time for event in document.events] for document in documents]
    known_times = None
    if any(time is not None for each in times for time in each):
        rows = [[math.nan if t is None else t for t in each] for each in times]
        padded = [each + [math.nan] * (longest - len(each)) for each in rows]
        known_times = torch.tensor(padded, dtype=torch.float64)
    return Batch(tokens, frames, observed, mask, times=known_times).to(model.device)


def to_numbers(model: Model, documents: Iterable[Document]) -> Documents:
    """Return documents as a split of a corpus; those without events are left out."""
    parts = []
    for group in groups((document for document in documents if document.events), SPLIT):
        batch = to_batch(model, group)
        ids = pa.chunked_array([[document.id for document in group]], pa.string())
        tokens, frames, lengths = (
            part.cpu().numpy().astype(np.int32)
            for part in (batch.tokens[batch.mask], batch.frames[batch.mask], batch.mask.sum(1))
        )
        parts.append(Documents.of_events(ids, tokens, frames, lengths))
    return Documents.concat(parts)


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
