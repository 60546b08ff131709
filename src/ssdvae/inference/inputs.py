"""Documents as batches of word ids, and their out-of-vocabulary (OOV) words, which are read as one word."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

import numpy as np
import pyarrow as pa
import torch

from ssdvae.data.batches import EVENTS, Batch
from ssdvae.data.documents import Documents
from ssdvae.data.events import HOLE, MISSING, Document, Event, folded
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
    """Return documents as a batch of word and frame ids.

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


@dataclass
class OovStats:
    """The number of words that were read, and of those that are out of the vocabulary."""

    words: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, model: Model, documents: Iterable[Document]) -> OovStats:
        stats = cls()
        for document in documents:
            stats.add(model, document.events)
        return stats

    def counts(self) -> dict[str, int]:
        return {"words": self.words, "unknown_words": self.unknown}

    def add(self, model: Model, events: Iterable[Event]) -> None:
        words = list(_words(model, events))
        self.words += len(words)
        self.unknown += model.vocabulary.word_ids(words).count(model.vocabulary.unknown)

    @property
    def warning(self) -> str | None:
        """The warning if more than half of the words are unknown; None otherwise."""
        if 2 * self.unknown <= self.words:
            return None
        return (
            f"{self.unknown:,} of {self.words:,} words are unknown to the model: its answers say little\n"
            "train one on your own data: ssdvae prepare events.jsonl --out corpus, then "
            "ssdvae train corpus --out run"
        )

    def warn(self) -> None:
        if (warning := self.warning) is not None:
            log.warning(warning)


def warn_if_oov(model: Model, documents: Iterable[Document]) -> Iterator[Document]:
    """Yield the same documents; warn once if most of their words are unknown."""
    stats, warned = OovStats(), False
    for document in documents:
        stats.add(model, document.events)
        yield document
        if not warned and stats.words >= ENOUGH:
            stats.warn()
            warned = True
    if not warned:
        stats.warn()


def unknown_words(model: Model, events: Iterable[Event]) -> list[str]:
    """Return the unknown words of some events, each once."""
    return [word for word in dict.fromkeys(_words(model, events)) if word not in model.vocabulary]


def _words(model: Model, events: Iterable[Event]) -> Iterator[str]:
    """Yield the words that the model looks up, without empty slots and holes."""
    for event in events:
        words = folded(event.words) if model.vocabulary.lowercase else event.words
        yield from (word for word in words if word not in (MISSING, HOLE))


def count_unknown(model: Model, batch: Batch) -> list[int]:
    """Return the number of unknown words of each document."""
    counts: list[int] = (
        ((batch.tokens == model.vocabulary.unknown) & batch.mask[..., None]).sum((1, 2)).tolist()
    )
    return counts
