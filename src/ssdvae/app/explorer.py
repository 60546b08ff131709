"""What the views and the API ask of the models: all of it in the one thread of the batcher."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from ssdvae.answers.generate import Script, generate
from ssdvae.answers.infer import InferredDocument, infer_documents
from ssdvae.app.batcher import Batcher
from ssdvae.app.library import Library
from ssdvae.config import ExploreSettings, GenerateSettings
from ssdvae.data.events import Document, Event
from ssdvae.errors import UserError
from ssdvae.models.base import EventModel


@dataclass(frozen=True)
class Explored:
    """A model by its name, and the documents that it is shown on."""

    name: str
    model: EventModel
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
        self, of: Explored, documents: Sequence[Document], *, attention: bool = True, observe: bool = False
    ) -> Sequence[InferredDocument]:
        return await self._ask(of, _infer, documents, observe)

    async def generate(
        self, of: Explored, continuation: Continuation, settings: GenerateSettings
    ) -> Sequence[Script]:
        (scripts,) = await self._ask(of, _generate, [continuation], settings)
        return scripts  # type: ignore[no-any-return]  # what _generate gives for one continuation

    async def library(self, of: Explored) -> Library:
        """The documents of a model, read; the first who asks waits for it."""
        await self._ask(of, _read_library, [None])
        return of.library

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


def _infer(of: Explored, documents: Sequence[Document], observe: bool) -> Sequence[InferredDocument]:
    return list(infer_documents(of.model, documents, observe_frames=observe))


def _generate(of: Explored, items: Sequence[Continuation], settings: GenerateSettings) -> Sequence[Any]:
    return [generate(of.model, settings, seed_events=c.events, frames=c.frames) for c in items]


def _read_library(of: Explored, items: Sequence[None]) -> Sequence[None]:
    of.library.read()
    return items
