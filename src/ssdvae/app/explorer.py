"""The models of the explorer, the documents that they are shown on, and the questions that they answer.

All questions are answered in the threads of two batchers, one for small requests and one for large ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

import numpy as np
import torch

from ssdvae.analysis.statistics import LEAST, Statistics
from ssdvae.app.batcher import Batcher
from ssdvae.app.options import ExploreOptions
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import HOLE, Document, Event, to_document, to_event
from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers import read_documents
from ssdvae.data.readers.jsonl import Title, read_titles
from ssdvae.extraction.extract import extract_text
from ssdvae.extraction.framenet import Definitions
from ssdvae.inference.embedding import EmbeddedDocument, EventIndex, SimilarEvent
from ssdvae.inference.embedding import embed as embed_documents
from ssdvae.inference.forecast import forecasts
from ssdvae.inference.generation import Script, generate
from ssdvae.inference.infill import FilledDocument, fill_next, unfilled, with_holes
from ssdvae.inference.inputs import to_numbers
from ssdvae.inference.options import (
    EmbedOptions,
    FillOptions,
    GenerateOptions,
    InferOptions,
    NextOptions,
    SurprisalOptions,
)
from ssdvae.inference.posterior import InferredDocument, infer_documents
from ssdvae.inference.sentences import is_sentence, with_format, with_names, with_sentences
from ssdvae.inference.surprisal import Anomaly, ScoredDocument, find_anomalies, score_documents
from ssdvae.io.errors import Malformed, UserError
from ssdvae.io.progress import checkpoint
from ssdvae.models.base import LanguageModel, Model, as_frame_model
from ssdvae.models.hub import DEFINITIONS, DOCUMENTS, shown_file
from ssdvae.report.cases import UNUSUAL
from ssdvae.report.process import process_section
from ssdvae.report.render import LOG, TEXT, Section, Terms

TURN = 1_000
"""The work of a turn, in events that a model reads: about half a second of one core."""

LONGEST_TEXT = 10_000
"""Characters of the sentences of a request, at most."""

CANDIDATES = ("top", "frames", "beam", "scripts")
"""Options that say how many candidates are tried or shown."""


class Library:
    """Documents of a corpus, of a file that was named at the start, or packed with the model; read when first
    asked for. Counts of frames are those packed with the model, or else made from these documents.
    """

    def __init__(
        self,
        model: Model,
        options: ExploreOptions,
        corpus: Corpus | None,
        file: Path | None = None,
        folder: Path | None = None,
    ) -> None:
        self.model, self.options, self.corpus, self.folder = model, options, corpus, folder
        self.named = file
        packed = None if folder is None or corpus is not None else shown_file(folder)
        self.file = file or packed
        # What is known so far: a request that takes too long leaves the rest to the next one.
        self.reading = asyncio.Lock()
        self.documents: list[InferredDocument] = []
        self.scored: list[ScoredDocument] = []

    @property
    def name(self) -> str | None:
        """The name of the documents; None if there are none, or only scripts."""
        if self.named is not None:
            return self.named.name
        if self.corpus is not None:
            return f"{self.corpus.folder.name}, {self.options.split}"
        if self.file is not None and self.file.name == DOCUMENTS:
            return "documents that came with the model"
        return None

    @property
    def source(self) -> str:
        """The place that everything shown about frames is from."""
        found = self.statistics
        if found is not None and found.packed:
            counts = found.counts
            return (
                f"{counts.documents:,} documents ({counts.events:,} events) of the {counts.split} split, as "
                f"the model reads them; nothing that occurs fewer than {LEAST} times is shown"
            )
        return self.name or "scripts that the model wrote by itself: no documents were named at the start"

    @cached_property
    def originals(self) -> list[Document]:
        """The documents as they stand in the file or the corpus."""
        if as_frame_model(self.model) is None:
            raise UserError(
                f"{self.model.config.model} infers no frames: there is nothing to show of documents"
            )
        if self.corpus is None:
            found = iter(()) if self.file is None else read_documents(self.file, slots=self.model.slots)
            return list(islice(found, self.options.sample))
        split = self.corpus.split(self.options.split)
        some = split.take(np.arange(len(split))[: self.options.sample])
        return list(some.decode(self.corpus.vocabulary, self.corpus.frames))

    @cached_property
    def titles(self) -> dict[str, Title]:
        """The titles of the documents, and their addresses, by id."""
        return read_titles(self.file) if self.file is not None and ".jsonl" in self.file.name else {}

    @cached_property
    def statistics(self) -> Statistics | None:
        """Counts of frames, words and neighbours; None without documents, or in a model without frames."""
        if as_frame_model(self.model) is None:
            return None
        if self.folder is not None and (packed := Statistics.read(self.folder, self.model)) is not None:
            return packed
        if self.corpus is not None:
            split = self.corpus.split(self.options.split).first(self.model.context_window.measured)
            some = split.take(np.arange(len(split))[: self.options.sample])
            return Statistics.measure(self.model, some, "", self.corpus.lemmas, least=1)
        read = [document for document in self.originals if document.events]
        return Statistics.measure(self.model, to_numbers(self.model, read), "", least=1) if read else None

    @cached_property
    def process(self) -> Section | None:
        """The process of a log; None without its corpus."""
        found = None if self.corpus is None else self.corpus.process
        if found is None:
            return None
        section = process_section(found)
        for block in section.blocks:  # laid out here, once
            _ = getattr(getattr(block, "drawing", None), "shapes", None)
        return section

    @cached_property
    def unusual(self) -> list[Anomaly]:
        """The documents with the highest mean surprisal, once all are scored."""
        return find_anomalies(self.model, self.scored, UNUSUAL)

    @cached_property
    def index(self) -> EventIndex:
        """The events of the documents, to find those near to others."""
        return EventIndex.of(self.model, self.originals)

    @cached_property
    def definitions(self) -> Definitions | None:
        """Return the meanings of the frames, if they came with the model."""
        return None if self.folder is None else Definitions.read(self.folder / DEFINITIONS)

    def find(self, frame: str = "", words: str = "", anomalies: bool = False) -> list[InferredDocument]:
        """Return the documents with a frame and some words; if ``anomalies``, by surprisal, highest first."""
        wanted = set(words.lower().split())

        def matches(document: InferredDocument) -> bool:
            there = {word.lower() for e in document.events for word in e.event.words}
            return wanted <= there and (not frame or any(e.frame == frame for e in document.events))

        found = [n for n, document in enumerate(self.documents) if matches(document)]
        if anomalies:
            found.sort(key=lambda n: -self.scored[n].mean_nats)
        return [self.documents[n] for n in found]


@dataclass(frozen=True)
class ExploredModel:
    """A model by its name, and the documents that it is shown on."""

    name: str
    model: Model
    library: Library

    @property
    def terms(self) -> Terms:
        """The words for what the model knows: those of a text, or of a log."""
        return TEXT if self.model.columns is None else LOG


Item = TypeVar("Item")
Answer = TypeVar("Answer")
Options = TypeVarTuple("Options")

Question = Callable[[ExploredModel, Sequence[Item], *Options], Iterable[Answer]]
"""A function from a model, items and options to an answer for each item."""


class Explorer:
    """The models, and one way to ask them."""

    def __init__(self, models: Sequence[ExploredModel], options: ExploreOptions) -> None:
        self.models = {of.name: of for of in models}
        self.options = options
        # Two threads: a request of one turn never waits for larger ones.
        self._small, self._large = (Batcher(self._answer, TURN) for _ in range(2))

    def find(self, name: str | None) -> ExploredModel:
        """Return a model by its name, or the first."""
        if not name:
            return next(iter(self.models.values()))
        if name not in self.models:
            raise UserError(f"no model {name!r}; there are: {', '.join(self.models)}")
        return self.models[name]

    def work(
        self, of: ExploredModel, question: Callable[..., Any], items: Sequence[Any], options: Any
    ) -> list[int]:
        """Return the work of each item, holes × candidates × events; refuse too much for a request."""
        candidates = max(getattr(options, name, 1) for name in CANDIDATES)
        found = []
        for item in items:
            events = len(getattr(item, "events", ())) + getattr(options, "events", 1)
            holes = sum(HOLE in event.words for event in item.events) if question is fill else 1
            if question is score and isinstance(of.model, LanguageModel) and of.model.conditions_on_targets:
                holes = events  # each event is predicted anew from those before it
            found.append(max(1, holes) * candidates * events)
        if (total := sum(found)) > (most := self.options.max_work):
            raise UserError(
                f"found work of {total:,} in one request (holes × candidates × events), expected {most:,} at "
                "most\nask about fewer or shorter documents at once, or with a smaller beam"
            )
        return found

    async def ask(
        self,
        of: ExploredModel,
        question: Question[Item, *Options, Answer],
        items: Sequence[Item],
        *options: *Options,
    ) -> Sequence[Answer]:
        """Return an answer for each item; the same question with the same options is answered in batches."""
        work = self.work(of, question, items, options[0] if options else None)
        return await self._ask(of, question, items, work, *options)

    async def _ask(
        self,
        of: ExploredModel,
        question: Question[Item, *Options, Answer],
        items: Sequence[Item],
        work: Sequence[int],
        *options: *Options,
    ) -> Sequence[Answer]:
        batcher = self._small if sum(work) <= TURN else self._large
        return await batcher.ask((of.name, question, options), items, work) if items else []

    async def fill(
        self, of: ExploredModel, documents: Sequence[Document], options: FillOptions
    ) -> Sequence[FilledDocument]:
        """Return candidates for what is missing in each document, one hole of each at a time."""
        self.work(of, fill, documents, options)  # of all holes
        found = [unfilled(of.model, document) for document in documents]
        longest = max((len(document.events) for document in documents), default=1)
        options = options.changed(batch=min(options.batch, max(1, TURN // max(1, longest))))
        while open_ones := [n for n, document in enumerate(found) if document.next_hole is not None]:
            some = [found[n] for n in open_ones]
            each = [options.beam * len(document.events) for document in some]
            for n, filled in zip(open_ones, await self._ask(of, fill, some, each, options), strict=True):
                found[n] = filled
        return found

    async def library(self, of: ExploredModel, anomalies: bool = False) -> Library:
        """Return the documents of a model, read; if ``anomalies``, with their surprisal."""
        library = of.library
        async with library.reading:
            await self._ask(of, load, ["originals", "titles"], [TURN + 1] * 2)
            while some := library.originals[len(library.documents) :][: self.options.batch]:
                work, how = [1 + len(d.events) for d in some], InferOptions(top=2, attention=True)
                library.documents += await self._ask(of, infer, some, work, how)
            while anomalies and (some := library.originals[len(library.scored) :][: self.options.batch]):
                work = [1 + len(d.events) for d in some]
                library.scored += await self._ask(of, score, some, work, SurprisalOptions())
        return library

    async def process(self, of: ExploredModel) -> Section:
        """Return the process of the log of a model."""
        section: Section | None
        (section,) = await self._ask(of, load, ["process"], [TURN + 1])
        if section is None:
            raise UserError("only a model of a log has a process, and only where its corpus is at hand")
        return section

    async def unusual(self, of: ExploredModel) -> list[Anomaly]:
        """Return the cases with the highest mean surprisal."""
        await self.library(of, anomalies=True)
        found: list[Anomaly]
        (found,) = await self._ask(of, load, ["unusual"], [TURN + 1])
        return found

    async def nearest(self, of: ExploredModel, events: Sequence[Event], top: int) -> list[SimilarEvent]:
        """Return the nearest events of the documents of a model."""
        async with of.library.reading:
            found = await self._ask(of, nearest, list(events), [TURN + 1] * len(events), top)
        return [one for some in found for one in some]

    async def statistics(self, of: ExploredModel) -> Statistics:
        """Return the counts of the frames of a model."""
        async with of.library.reading:
            found: Statistics | None
            found, _ = await self._ask(of, load, ["statistics", "definitions"], [TURN + 1] * 2)
        if found is None:
            raise UserError("this model has no documents, or infers no frames")
        return found

    async def parse_documents(
        self, of: ExploredModel, given: Sequence[Any], holes: bool = False
    ) -> list[Document]:
        """Return documents from JSON, or as they are typed; a sentence stands for its events.

        With ``holes``, null is an event that is missing.
        """
        found, slots = [], of.model.slots
        for number, document in enumerate(await self._parse_sentences(of, given), start=1):
            try:
                found.append(to_document(with_holes(document) if holes else document, str(number), slots))
            except Malformed as error:
                raise UserError(f"document {number}: {with_format(error, slots)}") from error
        self._check_size(sum(len(document.events) for document in found))
        return found

    async def parse_events(self, of: ExploredModel, given: Sequence[Any]) -> tuple[Event, ...]:
        """Return events from JSON, or as they are typed."""
        (document,) = await self._parse_sentences(of, [given])
        try:
            found = tuple([to_event(event, of.model.slots) for event in document])
        except Malformed as error:
            raise UserError(with_format(error, of.model.slots)) from error
        self._check_size(len(found))
        return found

    async def _parse_sentences(self, of: ExploredModel, documents: Sequence[Any]) -> Sequence[Any]:
        """Return documents with the events of their sentences, and those of names with blanks."""
        lists = (d.get("events") if isinstance(d, Mapping) else d for d in documents)
        texts = [text for some in lists if isinstance(some, list) for text in some if isinstance(text, str)]
        lengths = [len(text) for text in texts if is_sentence(text, of.model.slots)]
        if (total := sum(lengths)) > LONGEST_TEXT:
            raise UserError(f"found {total:,} characters of text, expected {LONGEST_TEXT:,} at most")
        if not lengths:
            return [with_names(document, of.model) for document in documents]
        options = ExtractOptions(spacy_model=self.options.spacy_model)
        return await self._ask(of, parse_sentences, documents, [TURN + 1] * len(documents), options)

    def _check_size(self, events: int) -> None:
        if events > (most := self.options.max_events):
            raise UserError(f"found {events:,} events in one request, expected {most:,} at most")

    def _answer(
        self, key: tuple[str, Question[Any, *tuple[Any, ...], Any], tuple[Any, ...]], items: Any
    ) -> Any:
        name, question, options = key
        answers = []
        with torch.inference_mode():
            for answer in question(self.models[name], items, *options):
                checkpoint()
                answers.append(answer)
        return answers

    def close(self) -> None:
        """Stop, without waiting for what is being computed."""
        self._small.close()
        self._large.close()


def infer(
    of: ExploredModel, documents: Sequence[Document], options: InferOptions
) -> Iterable[InferredDocument]:
    """Return documents with the frame of each event."""
    return infer_documents(of.model, documents, **options.values())


def score(
    of: ExploredModel, documents: Sequence[Document], options: SurprisalOptions
) -> Iterable[ScoredDocument]:
    """Return documents with the surprisal of each event."""
    return score_documents(of.model, documents, **options.values())


Given = tuple[tuple[str, str], ...]
"""The known frame and words of the next event, by the names of their slots."""


def forecast(
    of: ExploredModel, documents: Sequence[Document], options: NextOptions, given: Given
) -> Iterable[Any]:
    """Return what comes after each document, or after each of its events."""
    return forecasts(of.model, documents, dict(given), **options.values())


def fill(
    of: ExploredModel, documents: Sequence[FilledDocument], options: FillOptions
) -> Iterable[FilledDocument]:
    """Return each document with its next hole filled."""
    return (fill_next(of.model, document, **options.values()) for document in documents)


def embed(
    of: ExploredModel, documents: Sequence[Document], options: EmbedOptions
) -> Iterable[EmbeddedDocument]:
    """Return vectors of each document and of its events."""
    return embed_documents(of.model, documents, **options.values())


@dataclass(frozen=True)
class Seed:
    """Events that a script begins with, and the frames of the first ones that follow, None for any."""

    events: tuple[Event, ...]
    frames: tuple[str | None, ...] = ()


def write(of: ExploredModel, seeds: Sequence[Seed], options: GenerateOptions) -> Iterable[list[Script]]:
    """Return scripts after each seed."""
    return (generate(of.model, options, seed_events=seed.events, frames=seed.frames) for seed in seeds)


def extract(of: ExploredModel, texts: Sequence[str], options: ExtractOptions) -> Iterable[Document]:
    """Return the events of each text."""
    return (extract_text(text, options) for text in texts)


def parse_sentences(of: ExploredModel, documents: Sequence[Any], options: ExtractOptions) -> Iterable[Any]:
    """Return each document as it is given, with the events of its sentences in their place."""
    for document in documents:
        try:
            yield with_sentences(document, of.model, options)
        except Malformed as error:
            raise UserError(with_format(error, of.model.slots)) from error


def nearest(of: ExploredModel, events: Sequence[Event], top: int) -> Iterable[list[SimilarEvent]]:
    """Return the nearest events of the documents to each event."""
    return (of.library.index.search([event], top) for event in events)


def load(of: ExploredModel, names: Sequence[str]) -> Iterable[Any]:
    """Return parts of a library, which are made when they are first asked for."""
    return (getattr(of.library, name) for name in names)
