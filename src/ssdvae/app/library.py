"""The documents that a model is shown on: read once, when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from ssdvae.analysis.explain import Explanation, explain
from ssdvae.answers.infer import InferredDocument, infer_documents
from ssdvae.answers.inputs import to_numbers
from ssdvae.config import ExploreSettings
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document
from ssdvae.data.named import to_documents
from ssdvae.data.readers import read_documents
from ssdvae.errors import UserError
from ssdvae.models.base import Model, as_frame_model


@dataclass(frozen=True)
class Filter:
    """What documents are looked for; an empty text is no condition."""

    frame: str = ""
    words: str = ""

    def matches(self, document: InferredDocument) -> bool:
        wanted = self.words.lower().split()
        words = {word.lower() for inferred in document.events for word in inferred.event.words}
        return all(word in words for word in wanted) and (
            not self.frame or any(inferred.frame == self.frame for inferred in document.events)
        )


class Library:
    """Documents of a corpus, or of a file that was named at the start; or none.

    Where there are none, frames are still shown in ``scripts`` that the model wrote, if there are some.
    """

    def __init__(
        self,
        model: Model,
        settings: ExploreSettings,
        corpus: Corpus | None,
        file: Path | None = None,
        scripts: Path | None = None,
    ) -> None:
        self.model, self.settings, self.corpus, self.file = model, settings, corpus, file
        self.scripts = scripts
        self.nats: list[float] | None = None  # of an event of each document, once they are known

    @property
    def name(self) -> str | None:
        """What they are called; None if there are none."""
        if self.file is not None:
            return self.file.name
        return None if self.corpus is None else f"{self.corpus.folder.name}, {self.settings.split}"

    @property
    def source(self) -> str:
        """Where it is from what is shown of frames."""
        return self.name or "scripts that the model wrote by itself: no documents were named at the start"

    def read(self) -> None:
        """Read them, and look at the frames: in the thread of the model."""
        _ = self.documents, self.explanation

    @cached_property
    def documents(self) -> Sequence[InferredDocument]:
        return list(infer_documents(self.model, self._given(), top=2, attention=True))

    @cached_property
    def explanation(self) -> Explanation | None:
        """What the model makes of them; None without any, or in a model without frames."""
        if as_frame_model(self.model) is None:
            return None
        if self.corpus is not None:
            split = self.corpus.split(self.settings.split).first(self.model.reading.measured)
            return explain(self.model, split.take(np.arange(len(split))[: self.settings.sample]))
        read = [Document(d.id, tuple(e.event for e in d.events)) for d in self.documents if d.events]
        return explain(self.model, to_numbers(self.model, read)) if read else None

    def _given(self) -> Iterator[Document]:
        if as_frame_model(self.model) is None:
            raise UserError(
                f"{self.model.config.model} infers no frames: there is nothing to show of documents"
            )
        if self.corpus is None:
            file = self.file or self.scripts
            found = iter(()) if file is None else read_documents(file, slots=self.model.slots)
            return islice(found, self.settings.sample)
        split = self.corpus.split(self.settings.split)
        return iter(to_documents(self.corpus, split.take(np.arange(len(split))[: self.settings.sample])))

    def find(self, wanted: Filter, unusual: bool = False) -> list[InferredDocument]:
        """The documents that match; the most unusual first, if that is asked for and known."""
        found = [n for n, document in enumerate(self.documents) if wanted.matches(document)]
        if unusual and self.nats is not None:
            nats = self.nats
            found.sort(key=lambda n: -nats[n])
        return [self.documents[n] for n in found]
