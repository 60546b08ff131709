"""Out-of-vocabulary (OOV) words: a model reads all of them as the unknown word."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ssdvae.data.batches import Batch
from ssdvae.data.events import HOLE, MISSING, Document, Event, folded
from ssdvae.models.base import Model

log = logging.getLogger(__name__)

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
