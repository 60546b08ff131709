"""What the views and the API ask of the models: all of it in the one thread of the batcher."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ssdvae.answers.embed import Embedded, embed
from ssdvae.answers.fill import Filled, fill_documents
from ssdvae.answers.generate import Script, generate
from ssdvae.answers.infer import InferredDocument, infer_documents
from ssdvae.answers.next_events import Next, next_events
from ssdvae.answers.score import ScoredDocument, score_documents
from ssdvae.app.batcher import Batcher
from ssdvae.app.library import Library
from ssdvae.config import ExploreSettings, ExtractSettings, GenerateSettings
from ssdvae.data.events import Document, Event
from ssdvae.errors import UserError
from ssdvae.extraction.parsed import to_document
from ssdvae.extraction.readers.text import parse_text
from ssdvae.models.base import Model

BEAM = 40
"""Of the search for next events: somebody waits for it."""


@dataclass(frozen=True)
class Explored:
    """A model by its name, and the documents that it is shown on."""

    name: str
    model: Model
    library: Library


@dataclass(frozen=True)
class Continuation:
    """Events that go on, and the frames of the first ones that follow, None where one is left open."""

    events: tuple[Event, ...]
    frames: tuple[str | None, ...] = ()


class Explorer:
    """The models, and one way to ask them."""

    def __init__(self, models: Sequence[Explored], settings: ExploreSettings) -> None:
        self.models = {explored.name: explored for explored in models}
        self.settings = settings
        self._batcher = Batcher(self._answer, settings.batch, settings.waiting)

    def find(self, name: str | None) -> Explored:
        """A model by its name, or the first."""
        if not name:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise UserError(f"no model {name!r}; there are: {', '.join(self.models)}")
        return self.models[name]

    async def infer(
        self,
        of: Explored,
        documents: Sequence[Document],
        *,
        top: int = 1,
        attention: bool = False,
        observe: bool = False,
    ) -> Sequence[InferredDocument]:
        return await self._ask(of, _infer, documents, top, attention, observe)

    async def score(self, of: Explored, documents: Sequence[Document]) -> Sequence[ScoredDocument]:
        return await self._ask(of, _score, documents)

    async def next(
        self, of: Explored, documents: Sequence[Document], given: Mapping[str, str], top: int
    ) -> Sequence[Next]:
        return await self._ask(of, _next, documents, tuple(given.items()), top)

    async def fill(self, of: Explored, documents: Sequence[Document], top: int) -> Sequence[Filled]:
        return await self._ask(of, _fill, documents, top)

    async def embed(self, of: Explored, documents: Sequence[Document]) -> Sequence[Embedded]:
        return await self._ask(of, _embed, documents)

    async def generate(
        self, of: Explored, continuation: Continuation, settings: GenerateSettings
    ) -> Sequence[Script]:
        (scripts,) = await self._ask(of, _generate, [continuation], settings)
        return scripts  # type: ignore[no-any-return]  # what _generate gives for one continuation

    async def extract(self, of: Explored, text: str) -> Sequence[Event]:
        """The events of a text."""
        (document,) = await self._ask(of, _extract, [text], self.settings.spacy_model)
        return document.events  # type: ignore[no-any-return]  # what _extract gives for one text

    async def library(self, of: Explored) -> Library:
        """The documents of a model, read; the first who asks waits for it."""
        await self._ask(of, _read_library, [None])
        return of.library

    async def unusual(self, of: Explored) -> Library:
        """The same, and how unusual each document is: batch by batch, so that others are answered between."""
        library = await self.library(of)
        if library.nats is None:
            found: list[float] = []
            for start in range(0, len(library.documents), self.settings.batch):
                read = library.documents[start : start + self.settings.batch]
                some = [Document(d.id, tuple(e.event for e in d.events)) for d in read]
                found += [d.nats / max(len(d.events), 1) for d in await self.score(of, some)]
            library.nats = found
        return library

    async def _ask(
        self, of: Explored, answer: Callable[..., Sequence[Any]], items: Sequence[Any], *options: Hashable
    ) -> Sequence[Any]:
        if not items:
            return []
        return await self._batcher.ask((of.name, answer, options), items, self.settings.seconds)

    def _answer(self, key: tuple[str, Callable[..., Sequence[Any]], tuple[Any, ...]], items: Any) -> Any:
        name, answer, options = key
        with torch.inference_mode():
            return answer(self.models[name], items, *options)

    def close(self) -> None:
        self._batcher.close()


def _infer(
    of: Explored, documents: Sequence[Document], top: int, attention: bool, observe: bool
) -> Sequence[InferredDocument]:
    return list(infer_documents(of.model, documents, observe_frames=observe, top=top, attention=attention))


def _score(of: Explored, documents: Sequence[Document]) -> Sequence[ScoredDocument]:
    return list(score_documents(of.model, documents))


def _next(
    of: Explored, documents: Sequence[Document], given: Sequence[tuple[str, str]], top: int
) -> Sequence[Next]:
    return list(next_events(of.model, documents, dict(given), top, BEAM))


def _fill(of: Explored, documents: Sequence[Document], top: int) -> Sequence[Filled]:
    return list(fill_documents(of.model, documents, top=top))


def _embed(of: Explored, documents: Sequence[Document]) -> Sequence[Embedded]:
    return list(embed(of.model, documents))


def _generate(of: Explored, items: Sequence[Continuation], settings: GenerateSettings) -> Sequence[Any]:
    return [generate(of.model, settings, seed_events=c.events, frames=c.frames) for c in items]


def _extract(of: Explored, texts: Sequence[str], spacy_model: str) -> Sequence[Document]:
    settings = ExtractSettings(spacy_model=spacy_model)
    return [to_document(parse_text("text", text, settings), settings) for text in texts]


def _read_library(of: Explored, items: Sequence[None]) -> Sequence[None]:
    of.library.read()
    return items
