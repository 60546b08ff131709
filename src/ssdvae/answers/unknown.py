"""Words that a model does not know: it reads all of them as one and the same."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from ssdvae.data.batches import Batch
from ssdvae.data.events import HOLE, MISSING, Document, Event, folded
from ssdvae.models.base import Model

log = logging.getLogger(__name__)

ENOUGH = 1_000
"""Words after which it is said that most are unknown, if the end of the input has not come before."""


@dataclass
class Familiarity:
    """How many of the words that were read are unknown to a model."""

    words: int = 0
    unknown: int = 0

    @classmethod
    def of(cls, model: Model, documents: Iterable[Document]) -> Familiarity:
        found = cls()
        for document in documents:
            found.add(model, document.events)
        return found

    @classmethod
    def counted(cls, counts: Mapping[str, int]) -> Familiarity:
        return cls(counts.get("words", 0), counts.get("unknown_words", 0))

    def counts(self) -> dict[str, int]:
        return {"words": self.words, "unknown_words": self.unknown}

    def add(self, model: Model, events: Iterable[Event]) -> None:
        words = list(_words(model, events))
        self.words += len(words)
        self.unknown += model.vocabulary.word_ids(words).count(model.vocabulary.unknown)

    @property
    def warning(self) -> str | None:
        """What to say if more than half of the words are unknown."""
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


def warned(model: Model, documents: Iterable[Document]) -> Iterator[Document]:
    """The same documents; if most of their words are unknown, that is said once."""
    found, said = Familiarity(), False
    for document in documents:
        found.add(model, document.events)
        yield document
        if not said and found.words >= ENOUGH:
            found.warn()
            said = True
    if not said:
        found.warn()


def unknown_words(model: Model, events: Iterable[Event]) -> list[str]:
    """The words of some events that the model does not know, each once."""
    return [word for word in dict.fromkeys(_words(model, events)) if word not in model.vocabulary]


def _words(model: Model, events: Iterable[Event]) -> Iterator[str]:
    """All that the model looks up; empty slots and holes are no words."""
    for event in events:
        words = folded(event.words) if model.vocabulary.lowercase else event.words
        yield from (word for word in words if word not in (MISSING, HOLE))


def count_unknown(model: Model, batch: Batch) -> list[int]:
    """Words of each document that the model has never seen."""
    counts: list[int] = (
        ((batch.tokens == model.vocabulary.unknown) & batch.mask[..., None]).sum((1, 2)).tolist()
    )
    return counts
