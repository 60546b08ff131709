"""The models of the explorer, the documents that they are shown on, and the questions that they answer.

All questions are answered in the one thread of the batcher.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import numpy as np
import torch

from ssdvae.analysis.explain import Explanation, explain
from ssdvae.app.batcher import Batcher
from ssdvae.app.options import ExploreOptions
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document, Event, Slots, to_document, to_event
from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers import read_documents
from ssdvae.extraction.extract import extract_text
from ssdvae.inference.embedding import EmbeddedDocument
from ssdvae.inference.embedding import embed as embed_documents
from ssdvae.inference.forecast import Forecast, next_events
from ssdvae.inference.generation import Script, generate
from ssdvae.inference.infill import FilledDocument, fill_documents, with_holes
from ssdvae.inference.inputs import to_numbers
from ssdvae.inference.options import (
    EmbedOptions,
    ForecastOptions,
    GenerateOptions,
    InferOptions,
    SurprisalOptions,
)
from ssdvae.inference.posterior import InferredDocument, infer_documents
from ssdvae.inference.surprisal import ScoredDocument, score_documents
from ssdvae.io.errors import Malformed, UserError
from ssdvae.models.base import Model, as_frame_model
from ssdvae.options import Options as AnyOptions
from ssdvae.options import flag

MOST = {"top": 100, "frames": 100, "beam": 100, "batch": 200, "events": 20, "scripts": 20}
"""The largest value of some options in one request: each makes its work longer."""


class Library:
    """Documents of a corpus, or of a file that was named at the start, or none; read when first asked for.

    Where there are none, frames are still shown in ``scripts`` that the model wrote, if there are some.
    """

    def __init__(
        self,
        model: Model,
        options: ExploreOptions,
        corpus: Corpus | None,
        file: Path | None = None,
        scripts: Path | None = None,
    ) -> None:
        self.model, self.options, self.corpus, self.file = model, options, corpus, file
        self.scripts = scripts
        self.nats: list[float] | None = None  # of an event of each document, once they are known

    @property
    def name(self) -> str | None:
        """The name of the documents; None if there are none."""
        if self.file is not None:
            return self.file.name
        return None if self.corpus is None else f"{self.corpus.folder.name}, {self.options.split}"

    @property
    def source(self) -> str:
        """The place that everything shown about frames is from."""
        return self.name or "scripts that the model wrote by itself: no documents were named at the start"

    @cached_property
    def documents(self) -> Sequence[InferredDocument]:
        """The documents with their frames."""
        return list(infer_documents(self.model, self._read(), top=2, attention=True))

    @cached_property
    def explanation(self) -> Explanation | None:
        """The frames of the documents; None without any, or in a model without frames."""
        if as_frame_model(self.model) is None:
            return None
        if self.corpus is not None:
            split = self.corpus.split(self.options.split).first(self.model.context_window.measured)
            return explain(self.model, split.take(np.arange(len(split))[: self.options.sample]))
        read = [Document(d.id, tuple(e.event for e in d.events)) for d in self.documents if d.events]
        return explain(self.model, to_numbers(self.model, read)) if read else None

    def _read(self) -> Iterator[Document]:
        if as_frame_model(self.model) is None:
            raise UserError(
                f"{self.model.config.model} infers no frames: there is nothing to show of documents"
            )
        if self.corpus is None:
            file = self.file or self.scripts
            found = iter(()) if file is None else read_documents(file, slots=self.model.slots)
            return islice(found, self.options.sample)
        split = self.corpus.split(self.options.split)
        return iter(
            split.take(np.arange(len(split))[: self.options.sample]).decode(
                self.corpus.vocabulary, self.corpus.frames
            )
        )

    def find(self, frame: str = "", words: str = "", anomalies: bool = False) -> list[InferredDocument]:
        """Return the documents with a frame and some words; if ``anomalies``, by surprisal, highest first."""
        wanted = set(words.lower().split())

        def matches(document: InferredDocument) -> bool:
            there = {word.lower() for e in document.events for word in e.event.words}
            return wanted <= there and (not frame or any(e.frame == frame for e in document.events))

        found = [n for n, document in enumerate(self.documents) if matches(document)]
        if anomalies and (nats := self.nats) is not None:
            found.sort(key=lambda n: -nats[n])
        return [self.documents[n] for n in found]


@dataclass(frozen=True)
class ExploredModel:
    """A model by its name, and the documents that it is shown on."""

    name: str
    model: Model
    library: Library


Item = TypeVar("Item")
Answer = TypeVar("Answer")
Options = TypeVarTuple("Options")


class Explorer:
    """The models, and one way to ask them."""

    def __init__(self, models: Sequence[ExploredModel], options: ExploreOptions) -> None:
        self.models = {of.name: of for of in models}
        self.options = options
        self._batcher = Batcher(self._answer, options.batch, options.waiting)

    def find(self, name: str | None) -> ExploredModel:
        """Return a model by its name, or the first."""
        if not name:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise UserError(f"no model {name!r}; there are: {', '.join(self.models)}")
        return self.models[name]

    async def ask(
        self,
        of: ExploredModel,
        question: Callable[[ExploredModel, Sequence[Item], *Options], Sequence[Answer]],
        items: Sequence[Item],
        *options: *Options,
    ) -> Sequence[Answer]:
        """Return an answer for each item; the same question with the same options is answered in batches."""
        if not items:
            return []
        return await self._batcher.ask((of.name, question, options), items, self.options.seconds)

    async def library(self, of: ExploredModel, anomalies: bool = False) -> Library:
        """Return the documents of a model, read; if ``anomalies``, with their surprisal."""
        await self.ask(of, read_library, [None])
        library = of.library
        if anomalies and library.nats is None:
            found: list[float] = []
            # Batch by batch, so that others are answered between.
            for start in range(0, len(library.documents), self.options.batch):
                read = library.documents[start : start + self.options.batch]
                some = [Document(d.id, tuple(e.event for e in d.events)) for d in read]
                scored = await self.ask(of, score, some, SurprisalOptions())
                found += [d.nats / max(len(d.events), 1) for d in scored]
            library.nats = found
        return library

    def parse_documents(self, given: Iterable[Any], slots: Slots, holes: bool = False) -> list[Document]:
        """Return documents from JSON; with ``holes``, null is an event that is missing."""
        found = []
        for number, document in enumerate(given, start=1):
            try:
                found.append(to_document(with_holes(document) if holes else document, str(number), slots))
            except Malformed as error:
                raise UserError(f"document {number}: {error}") from error
        self._check_size(sum(len(document.events) for document in found))
        return found

    def parse_events(self, given: Iterable[Any], slots: Slots) -> tuple[Event, ...]:
        """Return events from JSON, or as they are typed; empty lines are passed over."""
        try:
            some = [event for event in given if not isinstance(event, str) or event.strip()]
            found = tuple([to_event(event, slots) for event in some])
        except Malformed as error:
            raise UserError(str(error)) from error
        self._check_size(len(found))
        return found

    def _check_size(self, events: int) -> None:
        if events > (most := self.options.max_events):
            raise UserError(f"found {events:,} events in one request, expected {most:,} at most")

    def _answer(self, key: tuple[str, Callable[..., Sequence[Any]], tuple[Any, ...]], items: Any) -> Any:
        name, question, options = key
        with torch.inference_mode():
            return question(self.models[name], items, *options)

    def close(self) -> None:
        """Stop after the batch that is being answered."""
        self._batcher.close()


def check_work(options: AnyOptions) -> None:
    """Refuse options that ask for too much in one request."""
    for name, value in options.values().items():
        if name in MOST and value > MOST[name]:
            raise UserError(f"{flag(name)}: found {value:,}, expected at most {MOST[name]:,} in one request")


def infer(
    of: ExploredModel, documents: Sequence[Document], options: InferOptions
) -> Sequence[InferredDocument]:
    """Return documents with the frame of each event."""
    return list(infer_documents(of.model, documents, **options.values()))


def score(
    of: ExploredModel, documents: Sequence[Document], options: SurprisalOptions
) -> Sequence[ScoredDocument]:
    """Return documents with the surprisal of each event."""
    return list(score_documents(of.model, documents, options.batch, options.frames))


Given = tuple[tuple[str, str], ...]
"""The known frame and words of the next event, by the names of their slots."""


def forecast(
    of: ExploredModel, documents: Sequence[Document], options: ForecastOptions, given: Given
) -> Sequence[Forecast]:
    """Return what comes after each document."""
    return list(next_events(of.model, documents, dict(given), **options.values()))


def fill(
    of: ExploredModel, documents: Sequence[Document], options: ForecastOptions
) -> Sequence[FilledDocument]:
    """Return candidates for what is missing in each document."""
    return list(fill_documents(of.model, documents, **options.values()))


def embed(
    of: ExploredModel, documents: Sequence[Document], options: EmbedOptions
) -> Sequence[EmbeddedDocument]:
    """Return vectors of each document and of its events."""
    return list(embed_documents(of.model, documents, **options.values()))


@dataclass(frozen=True)
class Seed:
    """Events that a script begins with, and the frames of the first ones that follow, None for any."""

    events: tuple[Event, ...]
    frames: tuple[str | None, ...] = ()


def write(of: ExploredModel, seeds: Sequence[Seed], options: GenerateOptions) -> Sequence[list[Script]]:
    """Return scripts after each seed."""
    return [generate(of.model, options, seed_events=seed.events, frames=seed.frames) for seed in seeds]


def extract(of: ExploredModel, texts: Sequence[str], options: ExtractOptions) -> Sequence[Document]:
    """Return the events of each text."""
    return [extract_text(text, options) for text in texts]


def read_library(of: ExploredModel, items: Sequence[None]) -> Sequence[None]:
    """Read the documents of a model, and look at their frames."""
    _ = of.library.documents, of.library.explanation
    return items
