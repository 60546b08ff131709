"""The views: pages that work without a script, and whose addresses say all that they show."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice, repeat, zip_longest
from typing import Any
from urllib.parse import urlencode

from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.responses import Response

from ssdvae.analysis.statistics import Statistics
from ssdvae.app.examples import EXAMPLES
from ssdvae.app.explorer import (
    LONGEST_TEXT,
    ExploredModel,
    Explorer,
    Seed,
    extract,
    forecast,
    infer,
    score,
    write,
)
from ssdvae.data.events import END, MISSING, SLOTS, Document, Event, Slots, document_to_record
from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers.jsonl import Title
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.extraction.framenet import Definitions
from ssdvae.extraction.readers.text import has_parser
from ssdvae.inference.embedding import SimilarEvent
from ssdvae.inference.forecast import FRAME, Forecast
from ssdvae.inference.generation import Script
from ssdvae.inference.infill import FilledDocument
from ssdvae.inference.inputs import OovStats
from ssdvae.inference.lookup import Substitutes
from ssdvae.inference.options import (
    FillOptions,
    GenerateOptions,
    InferOptions,
    NextOptions,
    SurprisalOptions,
)
from ssdvae.inference.posterior import InferredDocument, InferredEvent
from ssdvae.inference.surprisal import Anomaly, ScoredDocument, ScoredEvent
from ssdvae.io.errors import UserError
from ssdvae.io.records import to_json
from ssdvae.models.base import LanguageModel
from ssdvae.models.hub import README
from ssdvae.report.cases import outcomes, unusual_cases
from ssdvae.report.charts import NeighbourGraph, percent
from ssdvae.report.findings import (
    ROWS,
    TOP_FRAMES,
    TOP_WORDS,
    DocumentBlock,
    EventBlock,
    FrameRow,
    Scripts,
    chips,
    document_block,
    frame_table,
)
from ssdvae.report.render import (
    LOG,
    AnyCell,
    Chips,
    Figure,
    Heading,
    Name,
    Steps,
    Table,
    Terms,
    Text,
    absent,
    render,
    word_text,
)

TITLES = {
    "read": ("Read", "What a model makes of what you type"),
    "next": ("Next", "What could happen next"),
    "fill": ("Fill", "What is missing"),
    "similar": ("Similar", "Events that are alike"),
    "process": ("Process", "How the cases of the log go"),
    "frames": ("Frames", "The frames that a model knows"),
    "documents": ("Documents", "Documents, as a model reads them"),
    "card": ("Model", "How the model was made, and what it is for"),
    "docs": ("API", "The same answers for programs"),
}
"""The views: a short title, and a long one."""

LOG_TITLES = {
    "read": ("Read", "What a model makes of a case"),
    "frames": ("Stages", "The stages that a model knows"),
    "documents": ("Cases", "Cases, as a model reads them"),
}
"""The words that differ for the model of a log."""

EDITED = ("read", "next", "fill", "similar")
"""The views of events that are typed: the events go along from one to another."""

SUGGESTIONS, PAGE, WORDS, NEIGHBOURS, SHOWN = 8, 10, 20, 7, 3

ANOMALY = 90
"""The percentile of surprisal from which on an event is called unusual."""

WHY = 5
"""Unusual events of which is said what was expected in their place, at most."""


@dataclass(frozen=True)
class Reading:
    """The answer about one event."""

    block: EventBlock
    frames: Sequence[Name] = ()  # the likeliest, or guesses if the head is unknown
    unknown: str | None = None  # why nothing sure can be said
    surprise: str | None = None
    anomaly: bool = False
    expected: Chips | None = None  # in the place of an anomaly
    model: str | None = None  # whose answer this is, where there are two


@dataclass(frozen=True)
class Line:
    """A line of the form: an event or a sentence, a frame that is told to the model, and the answers."""

    text: str = ""
    frame: str = ""
    answers: Sequence[Reading] = ()

    def word(self, place: int) -> str:
        """Return the word in a field, empty if there is none."""
        words = self.text.split()
        return "" if place >= len(words) or words[place] == "-" else words[place]


@dataclass(frozen=True)
class State:
    """The state of a view, which is its address."""

    run: str = ""
    lines: tuple[Line, ...] = ()
    rest: Mapping[str, str] = field(default_factory=dict)
    beside: str = ""  # the model that answers beside the first

    @classmethod
    def of(cls, query: Sequence[tuple[str, str]]) -> State:
        """Return the state that an address says: names and values, in order."""
        several: dict[str, list[str]] = {}
        for name, value in query:
            several.setdefault(name, []).append(value)
        # An event in one box, or in a field for each slot.
        fields = [several.pop(name) for n in range(len(several)) if (name := f"e{n}") in several]
        texts = [*several.pop("e", []), *map(in_one_line, zip_longest(*fields, fillvalue=""))]
        frames = several.pop("f", [])
        frames += [""] * (len(texts) - len(frames))
        run, beside = (several.pop(name, [""])[0] for name in ("run", "beside"))
        rest = {name: values[-1].strip() for name, values in several.items()}
        return cls(run, tuple(map(Line, texts, frames)), rest, beside)

    def get(self, name: str) -> str:
        """Return a value of the address, empty if it is not there."""
        return self.rest.get(name, "")

    def number(self, name: str) -> int:
        """Return a whole number of the address, 1 if it is not there."""
        text = self.get(name)
        return int(text) if text.isdecimal() and len(text) < 10 else 1

    @property
    def events(self) -> list[Line]:
        """The lines that are not empty."""
        return [line for line in self.lines if line.text.strip()]

    def script(self, *more: str) -> list[tuple[str, str]]:
        """Return the events as parts of an address, and some after them."""
        lines = [*((line.text, line.frame) for line in self.events), *((text, "") for text in more)]
        return [pair for text, frame in lines for pair in (("e", text), ("f", frame))]

    def saved(self, view: str, format: str) -> str:
        """Return the address of what a view shows, as a file."""
        rest = [pair for pair in self.rest.items() if pair[0] not in ("format", "tour")]
        return self.address(view, *self.script(), *rest, ("format", format))

    def address(self, view: str, *parts: tuple[str, str]) -> str:
        """Return the address of a view of the same models; what is empty is left out, but not in a script."""
        pairs = [("run", self.run), ("beside", self.beside), *parts]
        kept = [(name, value) for name, value in pairs if value or name in ("e", "f")]
        return f"/{view}" + (f"?{urlencode(kept)}" if kept else "")


def in_one_line(words: Iterable[str]) -> str:
    """Return the words of an event as it is typed: empty ones at the end are left out."""
    text = " ".join("_".join(word.split()) or "-" for word in words)
    return re.sub(r"(^| )-( -)*$", "", text)


def typed(event: Event) -> str:
    """Return an event as it is typed."""
    return " ".join("-" if word == MISSING else word for word in event.words)


def read_address(state: State, events: Iterable[Event], place: int | None = None) -> str:
    """Return the address of events in Read, at one of them."""
    parts = [("e", typed(event)) for event in events if event.head != END]
    return state.address("read", *parts) + ("" if place is None else f"#answer-{place}")


class Views:
    """The pages of an explorer; each method makes one from its state."""

    def __init__(self, explorer: Explorer, openapi: Callable[[], Mapping[str, Any]]) -> None:
        self.explorer, self.openapi = explorer, openapi

    def _page(
        self, view: str, state: State, of: ExploredModel, answers: Sequence[Any] = (), **data: Any
    ) -> str | Response:
        """Return the page of a view, or its answers as a file."""
        if (format := state.get("format")) in FORMATS and answers:
            return download(view, answers, format)
        script = state.script() if view in EDITED else []
        titles = TITLES | (LOG_TITLES if of.terms is LOG else {})
        links = [
            (title, state.address(name, *(script if name in EDITED else [])), name == view)
            for name, (title, _) in titles.items()
            if name != "process" or (of.terms is LOG and of.library.corpus is not None)
        ]
        title, heading = titles[view]
        shared = {
            "title": title,
            "heading": heading,
            "links": links,
            "models": list(self.explorer.models),
            "terms": of.terms,
            "sentences": of.model.slots == SLOTS and has_parser(self.explorer.options.spacy_model),
        }
        step = Step.of(state)
        return render(f"{view}.html", of=of, state=state, step=step, view=view, **shared, **data)

    def _sides(self, state: State) -> list[ExploredModel]:
        """Return the model, and the one beside it if another is named."""
        names = dict.fromkeys((self.explorer.find(state.run).name, state.beside))
        sides = [self.explorer.find(name) for name in names if name]
        if len({side.model.slots for side in sides}) > 1:
            raise UserError("the two models know events of other slots, and cannot be asked the same")
        return sides

    async def _events(self, state: State, of: ExploredModel) -> tuple[Event, ...]:
        return await self.explorer.parse_events(of, [line.text for line in state.events])

    async def read(self, state: State) -> str | Response:
        """Return the frames of events that are typed, or of those of a text, which is shown with them."""
        of, error, text = self.explorer.find(state.run), None, state.get("text")
        events: tuple[Event, ...] = ()
        lines, summaries = state.lines, list[str]()
        answers: list[FramesAndSurprisal] = []
        try:
            if text:
                events = await self._extract(of, text)
                lines = tuple(Line(typed(event)) for event in events)
                parts = [Document("", (event,)) for event in events]
            else:
                parts = await self.explorer.parse_documents(of, [[line.text] for line in state.events])
                events = tuple(event for part in parts for event in part.events)
            sides = self._sides(state) if events else []
            for side in sides:
                name = side.name if len(sides) > 1 else ""
                lines, summary, answer = await self._read(side, lines, parts, name)
                summaries.append(f"{name}: {summary}" if name else summary)
                answers.append(answer)
        except UserError as wrong:
            error = str(wrong)
        parser = has_parser(self.explorer.options.spacy_model)
        return self._page(
            "read",
            state,
            of,
            answers=answers,
            error=error,
            lines=(*lines, Line()),
            pieces=pieces(text, events),
            warning=OovStats.of(of.model, [Document("", events)]).warning,
            summary=" ".join(summaries),
            text=text if of.model.slots == SLOTS else None,
            examples=list(examples(state, parser)) if of.model.slots == SLOTS else [],
            edit=read_address(state, events),
            longest=LONGEST_TEXT,
        )

    async def _read(
        self, of: ExploredModel, lines: Sequence[Line], parts: Sequence[Document], name: str
    ) -> tuple[tuple[Line, ...], str, FramesAndSurprisal]:
        """Return the lines, of which ``parts`` are the events, with one more answer to each, signed with
        ``name``; a summary; and the whole answer.
        """
        filled = [line for line in lines if line.text.strip()]
        told = [line.frame.strip() or None for line in filled]
        for name in filter(None, told):
            of.model.frames.find(name, "frame")
        events = [e.changed(frame=f) for part, f in zip(parts, told, strict=True) for e in part.events]
        document = Document("typed", tuple(events))
        scored: ScoredDocument | None = None
        expected: dict[int, Chips] = {}
        if isinstance(of.model, LanguageModel):
            (scored,) = await self.explorer.ask(of, score, [document], SurprisalOptions())
            expected = await self._expected(of, scored)
        options = InferOptions(top=4, attention=True, observe_frames=any(told))
        (found,) = await self.explorer.ask(of, infer, [document], options)
        # A frame that was told is no truth to be held against.
        blocks = document_block(found, compare=False).events
        given: Iterable[ScoredEvent | None] = repeat(None) if scored is None else scored.events
        answers = iter(
            [
                replace(
                    _reading(found.unknown_words, *one, State(of.name), of.model.slots),
                    expected=expected.get(place),
                    model=name,
                )
                for place, one in enumerate(zip(blocks, found.events, given, strict=False))
            ]
        )
        counts = {id(line): len(part.events) for line, part in zip(filled, parts, strict=True)}
        read = [
            replace(line, answers=[*line.answers, *islice(answers, counts.get(id(line), 0))])
            for line in lines
        ]
        summary = " → ".join(inferred.frame or "unknown" for inferred in found.events) + "."
        if scored is not None and scored.events[-1].event.head == END:
            rather = [f"{n.text} {percent(n.share or 0)}" for n in expected.get(len(events), Chips([])).names]
            said = "; expected: ".join(
                filter(None, [_surprise(scored.events[-1], scored.slots), ", ".join(rather)])
            )
            summary += f" If the case ends here, that is {said}."
        return tuple(read), summary, FramesAndSurprisal(found, scored)

    async def _expected(self, of: ExploredModel, scored: ScoredDocument) -> dict[int, Chips]:
        """Return what was expected in the place of the most unusual events."""
        events = scored.events
        # A text may begin with anything, a case may not.
        first = 0 if of.terms is LOG else 1
        odd = [n for n in range(first, len(events)) if _is_odd(events[n])]
        odd = sorted(odd, key=lambda n: -events[n].nats)[:WHY]
        histories = [Document("", tuple(e.event for e in events[:place])) for place in odd]
        # Frames and heads alone need no search for events.
        ahead = await self.explorer.ask(of, forecast, histories, NextOptions(top=SHOWN, beam=SHOWN), ())
        return {
            place: outcomes(one, by_frame=of.terms is not LOG) for place, one in zip(odd, ahead, strict=True)
        }

    async def _extract(self, of: ExploredModel, text: str) -> tuple[Event, ...]:
        """Return the events of a text, in its order."""
        if of.model.slots != SLOTS:
            raise UserError(f"text has events of {', '.join(SLOTS)}, and this model knows others")
        if len(text) > LONGEST_TEXT:
            raise UserError(
                f"the text has {len(text):,} characters, expected {LONGEST_TEXT:,} at most: give it in parts"
            )
        options = ExtractOptions(spacy_model=self.explorer.options.spacy_model)
        (document,) = await self.explorer.ask(of, extract, [text], options)
        if not document.events:
            raise UserError("no events were found in this text: it has no sentence with a verb of its own")
        return await self.explorer.parse_events(of, document.events)

    async def next(self, state: State) -> str | Response:
        """Return what could come after events that are typed, and continuations."""
        of, error = self.explorer.find(state.run), None
        pin, head = state.get("pin"), state.get("head")
        events: tuple[Event, ...] = ()
        sides: list[Side] = []
        scripts = list[Script]()
        try:
            events = await self._events(state, of)
            if events:
                for side in self._sides(state):
                    given = tuple((k, v) for k, v in ((FRAME, pin), (side.model.slots[0], head)) if v)
                    document, options = Document("typed", events), NextOptions(top=SUGGESTIONS)
                    (ahead,) = await self.explorer.ask(side, forecast, [document], options, given)
                    sides.append(Side(side.name, ahead, list(suggestions(state, pin, head, ahead, of.terms))))
                if "go" in state.rest:
                    seed = Seed(events, (pin,) if pin else ())
                    how = GenerateOptions(events=3, scripts=3, seed=state.number("seed"))
                    (scripts,) = await self.explorer.ask(of, write, [seed], how)
        except UserError as wrong:
            error = str(wrong)
        written = [tuple(e.event for e in script.events) for script in scripts] or [events]
        records = [document_to_record(Document(str(n), s), of.model.slots) for n, s in enumerate(written, 1)]
        return self._page(
            "next",
            state,
            of,
            error=error,
            lines=(*state.lines, Line()),
            warning=OovStats.of(of.model, [Document("", events)]).warning,
            answers=[side.answer for side in sides],
            sides=sides,
            scripts=Scripts(scripts),
            jsonl="\n".join(to_json(record, ensure_ascii=False) for record in records),
        )

    async def fill(self, state: State) -> str | Response:
        """Return candidates for what is missing among events that are typed."""

        async def ask(of: ExploredModel, document: Document) -> Side:
            (found,) = await self.explorer.fill(of, [document], FillOptions(top=SUGGESTIONS))
            return Side(of.name, found, list(_filled(found, document, state)))

        return await self._blocks("fill", state, ask)

    async def similar(self, state: State) -> str | Response:
        """Return the nearest events of the documents."""

        async def ask(of: ExploredModel, document: Document) -> Side:
            await self.explorer.library(of)
            found = await self.explorer.nearest(of, document.events, SUGGESTIONS)
            return Side(of.name, found, list(_nearest(found, of.library.titles)))

        return await self._blocks("similar", state, ask)

    async def _blocks(
        self, view: str, state: State, ask: Callable[[ExploredModel, Document], Awaitable[Side]]
    ) -> str | Response:
        """Return a view that asks each model the same of the events that are typed."""
        of, error = self.explorer.find(state.run), None
        sides: list[Side] = []
        events: tuple[Event, ...] = ()
        try:
            events = await self._events(state, of)
            if events:
                sides = [await ask(side, Document("typed", events)) for side in self._sides(state)]
        except UserError as wrong:
            error = str(wrong)
        answers = [one for side in sides for one in _listed(side.answer)]
        warning = OovStats.of(of.model, [Document("", events)]).warning
        lines = (*state.lines, Line())
        return self._page(view, state, of, answers, error=error, lines=lines, sides=sides, warning=warning)

    async def card(self, state: State) -> str | Response:
        """Return the model card."""
        of = self.explorer.find(state.run)
        path = None if of.library.folder is None else of.library.folder / README
        text = path.read_text(encoding="utf-8") if path is not None and path.is_file() else ""
        # Markup of its own is shown as text: a card may come from anywhere.
        markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
        body = Markup(markdown.render(re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)))
        return self._page("card", state, of, card=body)

    async def frames(self, state: State) -> str | Response:
        """Return one frame with its meaning, words and neighbours; or what a word is; or all frames."""
        of, error, asked = self.explorer.find(state.run), None, state.get("q")
        # A frame is found in any case, and with blanks.
        names = {name.lower(): name for name in of.model.frames.names}
        wanted = names.get(asked.lower().replace(" ", "_"), asked)
        blocks: list[Any] = []
        more = None
        answers: list[FrameRow] = []
        try:
            found = await self.explorer.statistics(of)
            answers = [row for row in _rows(found) if wanted in ("", row.name)]

            def href(name: str) -> str:
                return state.address("frames", ("q", name))

            if not wanted:
                blocks = frame_table(answers, "all-frames", href, terms=of.terms)
            elif wanted in of.model.frames:
                library = await self.explorer.library(of)
                shown = library.find(frame=wanted)
                title = f"In {of.terms.document if library.name else 'script'}s ({len(shown):,})"
                examples = [_shown(of, d, wanted) for d in shown[:SHOWN]]
                blocks = [
                    *_meaning(library.definitions, wanted),
                    *_frame(found, wanted, href),
                    Heading(title, 2),
                    *examples,
                    *(_word(found, asked, href) if asked != wanted else ()),
                ]
                more = state.address("documents", ("frame", wanted)) if shown and library.name else None
            else:
                blocks = list(_word(found, wanted, href))
        except UserError as wrong:
            error = str(wrong)
        return self._page("frames", state, of, answers, error=error, found=blocks, more=more)

    async def process(self, state: State) -> str | Response:
        """Return the process of a log, and its unusual cases."""
        of, error = self.explorer.find(state.run), None
        blocks: list[Any] = []
        answers: list[Anomaly] = []

        def href(case: Anomaly) -> str:
            return read_address(state, (e.event for e in case.document.events), case.place)

        try:
            blocks += (await self.explorer.process(of)).blocks
            answers = await self.explorer.unusual(of)
            cases = unusual_cases(answers, len(of.library.scored), href)
            blocks = [
                *blocks[:2],
                Heading("Unusual cases", 2),
                *cases,
                Heading("Variants and times", 2),
                *blocks[2:],
            ]
        except UserError as wrong:
            error = str(wrong)
        return self._page("process", state, of, answers, error=error, found=blocks)

    async def documents(self, state: State) -> str | Response:
        """Return the documents with some frame and some words, a page of them."""
        of, error = self.explorer.find(state.run), None
        page, anomalies = max(1, state.number("page")), "anomalies" in state.rest
        found: list[InferredDocument] = []
        if of.library.name is not None:
            try:
                library = await self.explorer.library(of, anomalies)
                found = library.find(state.get("frame"), state.get("words"), anomalies)
            except UserError as wrong:
                error = str(wrong)
        first = (page - 1) * PAGE
        shown = found[first : first + PAGE]
        scored = {one.id: one for one in of.library.scored} if anomalies else {}
        moves = [("Before", page - 1)] if page > 1 else []
        moves += [("More", page + 1)] if first + PAGE < len(found) else []
        rest = [(name, value) for name, value in state.rest.items() if name != "page"]
        return self._page(
            "documents",
            state,
            of,
            answers=found,
            error=error,
            anomalies=anomalies if isinstance(of.model, LanguageModel) else None,
            first=first,
            total=len(found),
            shown=[
                (
                    _shown(of, d, state.get("frame"), scored.get(d.id)),
                    read_address(state, (e.event for e in d.events)),
                )
                for d in shown
            ],
            moves=[(name, state.address("documents", *rest, ("page", str(to)))) for name, to in moves],
        )

    async def docs(self, state: State) -> str | Response:
        """Return the reference of the REST API: FastAPI's own asks another host for scripts."""
        blocks = list(reference(self.openapi()))
        return self._page("docs", state, self.explorer.find(state.run), found=blocks)


def pieces(text: str, events: Sequence[Event]) -> list[tuple[str, int | None]]:
    """Return a text in pieces: the verb of an event with its place, and what stands between, with None."""
    found: list[tuple[str, int | None]] = []
    end = 0
    spans = [(e.origin.start, e.origin.end, n) for n, e in enumerate(events) if e.origin is not None]
    for start, stop, place in sorted(spans):
        if start >= end:  # of two events with one verb, the first is marked
            found += [(text[end:start], None), (text[start:stop], place)]
            end = stop
    return [*found, (text[end:], None)] if found else []


def examples(state: State, parser: bool) -> Iterator[Name]:
    """Yield examples to click: texts where there is a parser, else events."""
    for title, text, events in EXAMPLES:
        parts = [("text", text)] if parser else [("e", event) for event in events]
        yield Name(title, None, state.address("read", *parts))


def _reading(
    words: Substitutes,
    block: EventBlock,
    inferred: InferredEvent,
    scored: ScoredEvent | None,
    state: State,
    slots: Slots,
) -> Reading:
    """Return the answer about an event; its frames lead to the view of frames."""
    frames = [Name(f.name, f.probability, state.address("frames", ("q", f.name))) for f in inferred.frames]
    unknown = None
    if not inferred.head_known:
        head = inferred.event.head
        near = words.get(head) or words.get(head.lower())
        said = f"it is read as “{near}”" if near else "its frame is guessed from the other words"
        unknown = f"“{head}” is unknown to the model: {said}"
    surprise = None if scored is None else _surprise(scored, slots)
    return Reading(block, frames, unknown, surprise, scored is not None and _is_odd(scored))


def _is_odd(event: ScoredEvent) -> bool:
    return event.percentile is not None and event.percentile >= ANOMALY


def _surprise(event: ScoredEvent, slots: Slots) -> str:
    """Return how surprising an event is after those before it, in words, and which word surprises most."""
    nats = f"{event.nats:.1f} nats"
    if event.percentile is None:
        return nats
    share = "all" if event.percentile == 100 else f"{percent(event.percentile / 100)} of"
    words = f"more surprising than {share} events, {nats}"
    if not _is_odd(event):
        return words
    if event.event.head == END:
        return f"unusual: {words}"
    worst = max(range(len(slots)), key=lambda slot: event.slots[slot])
    word = word_text(event.event.padded(len(slots))[worst])
    return f"unusual: {words}, {event.slots[worst]:.1f} of them for the {slots[worst]} “{word}”"


def _shown(
    of: ExploredModel, document: InferredDocument, frame: str = "", scored: ScoredDocument | None = None
) -> DocumentBlock:
    """Return a document in which the events with a frame are marked, or the most surprising one, in words."""
    asked, note = [place for place, e in enumerate(document.events) if frame and e.frame == frame], None
    if scored is not None and scored.events:
        place, event = scored.worst, scored.events[scored.worst]
        said = _surprise(event, scored.slots)
        note = Text(f"The most surprising: event {place + 1}, “{event.event}”: {said}.", "note")
        asked = asked or [place]
    return document_block(document, title=of.library.titles.get(document.id), note=note, asked=asked)


@dataclass(frozen=True)
class FramesAndSurprisal:
    """What is said of a document: its frames, and its surprisal if the model predicts words."""

    inferred: InferredDocument
    scored: ScoredDocument | None

    def to_record(self) -> dict[str, Any]:
        scored = None if self.scored is None else self.scored.to_record()
        return {"infer": self.inferred.to_record(), "score": scored}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one row per event."""
        scored: Iterable[dict[str, Any]] = repeat({}) if self.scored is None else self.scored.rows()
        return ({**other, **row} for row, other in zip(self.inferred.rows(), scored, strict=False))


@dataclass(frozen=True)
class Side:
    """The answer of one model, and what is shown of it."""

    name: str
    answer: Any
    blocks: Sequence[Any]


def _listed(answer: Any) -> Sequence[Any]:
    return answer if isinstance(answer, list) else [answer]


def _filled(found: FilledDocument, document: Document, state: State) -> Iterator[Any]:
    """Yield the candidates for each hole, each a link to the document with it."""
    for hole in found.holes:

        def href(event: Event, place: int = hole.place) -> str:
            events = [*document.events[:place], event, *document.events[place + 1 :]]
            return state.address("fill", *(("e", typed(e)) for e in events))

        yield Heading(f"Event {hole.place + 1}", 2)
        if hole.frames:
            yield "Its frame:"
            yield chips([(frame.name, frame.probability) for frame in hole.frames])
        rows: list[list[AnyCell]] = [
            [Name(typed(f.event), None, href(f.event)), percent(f.probability), percent(f.before)]
            for f in hole.fillings
        ]
        head = ["may have been", "by both sides", "by what came before"]
        among = FillOptions().beam
        yield Table(f"What event {hole.place + 1} may have been: shares among {among} candidates", head, rows)
    if not found.holes:
        yield absent("Nothing is missing: type ? for an event, or ? in an event for a word.")


def _nearest(found: Sequence[SimilarEvent], titles: Mapping[str, Title]) -> Iterator[Table]:
    """Yield a table of the nearest events for each event."""
    for asked, near in groupby(found, lambda one: one.asked):
        rows: list[list[AnyCell]] = []
        for one in near:
            title = titles.get(one.id)
            where = Name(title.title, None, title.url or None) if title else Name(one.id)
            rows.append([typed(one.event), where, f"{one.similarity:.2f}"])
        yield Table(f"Events like “{typed(asked)}”", ["event", "in", "cosine"], rows, names=2)


FORMATS = {"json": "application/json", "csv": "text/csv; charset=utf-8"}
"""Files that a view can be saved as."""


def download(view: str, answers: Sequence[Any], format: str) -> Response:
    """Return answers as a file: their records as JSON, or their rows as CSV."""
    if format == "json":
        text = to_json([answer.to_record() for answer in answers], ensure_ascii=False, indent=1)
    else:
        rows = [row for answer in answers for row in answer.rows()]
        names = list(dict.fromkeys(name for row in rows for name in row))
        file = io.StringIO()
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
        text = file.getvalue()
    name = f'attachment; filename="{view}.{format}"'
    return Response(text, media_type=FORMATS[format], headers={"Content-Disposition": name})


@dataclass(frozen=True)
class Step:
    """A step of the tour: what to see here, and where it goes on."""

    number: int
    text: str
    then: str  # an address, empty after the last step

    @classmethod
    def of(cls, state: State) -> Step | None:
        """Return the step that an address names."""
        number = state.number("tour") if "tour" in state.rest else 0
        if not 1 <= number <= len(TOUR):
            return None
        then = tour_address(state, number + 1) if number < len(TOUR) else ""
        return cls(number, TOUR[number - 1][2], then)


SCRIPT = (("e", "arrested police suspect in"), ("e", "charged he murder with"))

TOUR: tuple[tuple[str, tuple[tuple[str, str], ...], str], ...] = (
    (
        "read",
        (*SCRIPT, ("e", "sang choir hymn in")),
        "Three events, as verb, subject, object and preposition. Beside each stands its frame, the kind of "
        "event that the model takes it for, and how surprising it is after those before: a hymn is unusual "
        "here. Change a word, and the answer follows.",
    ),
    (
        "next",
        SCRIPT,
        "What could happen next: whole events, frames and verbs with their probabilities. Choose one, and "
        "the story goes on with it.",
    ),
    (
        "frames",
        (("q", "Arrest"),),
        "One frame: what it means, what comes before and after it, and its words. Each name leads further; "
        "the search box knows words too.",
    ),
    (
        "documents",
        (("anomalies", "1"),),
        "Documents that the model has not learned from, the most surprising first. Open one in Read to see "
        "which of its events are unusual.",
    ),
)
"""The steps of the tour: a view, its state, and what to see."""


def tour_address(state: State, number: int) -> str:
    """Return the address of a step of the tour."""
    view, parts, _ = TOUR[number - 1]
    return state.address(view, *parts, ("tour", str(number)))


@dataclass(frozen=True)
class Suggestion:
    """A candidate for the next event, or for its frame or its head."""

    name: Name
    frame: str | None = None


def suggestions(
    state: State, pin: str, head: str, ahead: Forecast, terms: Terms
) -> Iterator[tuple[str, Sequence[Suggestion]]]:
    """Yield whole events, each a link to the script with it at the end, and frames and heads to choose."""

    def choice(text: str, share: float, *parts: tuple[str, str]) -> Suggestion:
        return Suggestion(Name(text, share, state.address("next", *state.script(), *parts)))

    events = []
    for e in ahead.events:
        href = state.address("next", *state.script(typed(e.event)))
        name = Name(typed(e.event), e.probability, href)
        events.append(Suggestion(name, e.frame.name if e.frame else None))
    yield "Events", events
    if ahead.frames and not pin:
        yield terms.frames, [choice(f.name, f.probability, ("pin", f.name)) for f in ahead.frames]
    if not head:
        unknown = "a word unknown to the model"  # which nobody can choose
        heads = [
            Suggestion(Name(unknown, h.probability))
            if h.name == UNKNOWN
            else choice(h.name, h.probability, ("pin", pin), ("head", h.name))
            for h in ahead.heads
        ]
        if ahead.end_probability is not None:
            heads.append(Suggestion(Name("the case ends", ahead.end_probability)))
        yield terms.heads.capitalize(), sorted(heads, key=lambda one: -(one.name.share or 0))


def _rows(found: Statistics) -> Iterator[FrameRow]:
    """Yield the most frequent frames."""
    names = sorted(found.frames.names, key=found.count, reverse=True)
    for name in names[:ROWS]:
        if count := found.count(name):
            yield FrameRow(name, count, found.words_of(name, TOP_WORDS), found.after(name, TOP_FRAMES))


def _meaning(definitions: Definitions | None, name: str) -> Iterator[Any]:
    """Yield the definition of a frame with its elements, if there is one."""
    yield Heading(name, 2)
    if definitions is not None and (found := definitions.frames.get(name)) is not None:
        yield found.text
        if found.core:
            rows = [[element, text] for element, text in found.core.items()]
            yield Table("Its core elements", ["element", "meaning"], rows, names=2)
        others = f"Other elements: {', '.join(found.others)}. " if found.others else ""
        yield Text(f"{others}Definitions: {definitions.source}.", "note")


def _frame(found: Statistics, name: str, href: Callable[[str], str]) -> Iterator[Any]:
    """Yield a frame with its neighbours and its words."""
    before, after = found.before(name, NEIGHBOURS), found.after(name, NEIGHBOURS)
    yield f"Events with it: about {found.count(name):,}."
    yield Heading("What comes before and after", 2)
    if before or after:
        label = f"Before and after {name}"
        sides = [(side, names) for side, names in (("Before", before), ("After", after)) if names]
        yield Figure(
            f"{label}.",
            "The frames of the event directly before, on the left, and directly after, on the right.",
            NeighbourGraph(label, name, before, after, href),
            steps=[Steps(side, [[Name(n, p, href(n))] for n, p in names]) for side, names in sides],
        )
    else:
        yield absent("Nothing comes before or after it often enough.")
    for number, slot in enumerate(found.slots):
        if words := found.words_of(name, WORDS, number):
            yield Heading(f"Its words as {slot}", 2)
            yield chips(words, href)


def _word(found: Statistics, word: str, href: Callable[[str], str]) -> Iterator[Any]:
    """Yield the frames that are called like a word, those of its events, and where it is an argument."""
    if alike := [name for name in found.frames.names if word.lower().replace(" ", "_") in name.lower()]:
        yield Heading("Frames", 2)
        yield chips([(name, None) for name in alike], href)
    for form in found.forms(word):
        yield Heading(f"“{form}” as {found.slots[0]}", 2)
        yield f"Events with it: {found.counts.heads[form]:,}."
        yield chips(found.frames_of(form, NEIGHBOURS), href)
    for slot, frames in found.places(word.lower()):
        yield Heading(f"“{word.lower()}” as {slot}", 2)
        yield chips([(name, None) for name in frames[:WORDS]], href)
    known = word in found.vocabulary or word.lower() in found.vocabulary
    if not known and not alike:
        yield absent(f"The model knows neither a word nor a frame “{word}”.")
    elif known and not alike and not found.forms(word) and not list(found.places(word.lower())):
        yield absent(f"The model knows the word “{word}”, but it is too rare to say more.")


def reference(openapi: Mapping[str, Any]) -> Iterator[Any]:
    """Yield every operation of an OpenAPI description with what it takes."""
    schemas = openapi.get("components", {}).get("schemas", {})
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            title = f"{method.upper()} {path}"
            yield Heading(title, 2)
            yield operation.get("summary", "")
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = schemas.get(content.get("schema", {}).get("$ref", "").rpartition("/")[2], {})
            required = body.get("required", [])
            rows = [
                *(
                    _parameter(p["name"], p, p.get("required", False))
                    for p in operation.get("parameters", [])
                ),
                *(_parameter(name, p, name in required) for name, p in body.get("properties", {}).items()),
            ]
            if rows:
                head = ["name", "type", "default", "meaning"]
                yield Table(f"What {title} takes", head, rows, names=len(head))


def _parameter(name: str, parameter: Mapping[str, Any], required: bool) -> list[str]:
    schema = parameter.get("schema", parameter)
    kinds = " or ".join(kind.get("type", "any") for kind in schema.get("anyOf", [schema]))
    default = "required" if required else to_json(schema["default"]) if "default" in schema else ""
    return [name, kinds, default, parameter.get("description", schema.get("description", ""))]
