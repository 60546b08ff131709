"""Findings of a model: documents as it reads them, frames and their words, links between frames, scripts.

The report shows these blocks for each run; the explorer shows the same ones for what is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.explain import Explanation, explain
from ssdvae.analysis.options import ReportOptions
from ssdvae.analysis.transitions import Transitions
from ssdvae.analysis.words import Clusters
from ssdvae.data.corpus import Documents
from ssdvae.data.events import Document, Slots
from ssdvae.data.readers.jsonl import Title
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.evaluation.attention import AttentionSummary
from ssdvae.evaluation.measure import in_numbers_of, shown_documents
from ssdvae.inference.generation import Script, generate
from ssdvae.inference.options import GenerateOptions
from ssdvae.inference.posterior import InferredDocument, InferredEvent, infer_documents
from ssdvae.inference.surprisal import find_anomalies, score_documents
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.report.cases import UNUSUAL, cases_ahead, unusual_cases
from ssdvae.report.charts import Shares, percent
from ssdvae.report.pictures import LINKS, of_transitions
from ssdvae.report.render import (
    LOG,
    TEXT,
    Chips,
    Details,
    Figure,
    Name,
    Section,
    Steps,
    Table,
    Terms,
    Text,
    absent,
    word_text,
)
from ssdvae.report.runs import ReportedRun

ROWS, TOP_WORDS, TOP_FRAMES = 200, 8, 5
SEEDS, SCRIPTS = 3, 2

RARE = 0.01
"""A share below which a name is left out."""

DOUBT = 0.05
"""A second frame is named if it is at least so probable."""

CASES = 500
"""Cases of a log among which the unusual ones are looked for."""

Part = tuple[str, str, str, Callable[[], list[Any]]]
"""A part of the page: its name in addresses, its short title, its title, and how to make its blocks."""

Href = Callable[[str], str]
"""The address of more about a name."""


def findings(run: ReportedRun, options: ReportOptions, id: str) -> Iterator[Section]:
    """Yield the sections about one run; those that its model has no answer for are named, with the reason."""
    try:
        if run.corpus is None and run.trained_here:
            raise UserError("the corpus of this run cannot be opened any more")
        model = Model.read(run.folder)
        corpus = in_numbers_of(model, run.corpus) if run.corpus and run.foreign else run.corpus
        documents = shown_documents(model, corpus, run.folder, options.split)
        documents = documents.take(np.arange(len(documents))[: options.sample])
    except UserError as error:
        yield Section(f"{id}-found", "What it found", [absent(f"Left out: {run.public_message(error)}")])
        return
    chosen = documents.take(legible(model, documents, options.documents))
    shown = chosen.decode(model.vocabulary, model.frames)

    @cache  # one pass over the documents for all parts
    def explanation() -> Explanation:
        return explain(model, documents)

    def words() -> list[Any]:
        found = explanation()
        table = frame_table(frame_rows(found), f"{id}-words", note=purity_note(found), terms=terms)
        blocks = [*table, verb_table(found, f"{id}-verbs")]
        return blocks if found.clusters is None else [*blocks, paper_tables(found.clusters, f"{id}-beta")]

    is_log = run.corpus is not None and run.corpus.process is not None
    some = documents.take(np.arange(len(documents))[:CASES]) if is_log else None
    cases = [] if some is None else some.decode(model.vocabulary, model.frames)
    terms = LOG if is_log else TEXT

    def unusual() -> list[Any]:
        found = find_anomalies(model, score_documents(model, cases), UNUSUAL)
        return unusual_cases(found, len(cases))

    of_log: tuple[Part, ...] = (
        ("unusual", "Unusual cases", "Unusual cases", unusual),
        ("ahead", "What is next", "Where cases are about to go", lambda: cases_ahead(model, cases)),
    )
    # A picture comes first.
    parts: tuple[Part, ...] = (
        *(of_log if is_log else ()),
        (
            "follows",
            "What follows",
            "What follows what",
            lambda: [strongest_links(explanation().transitions)],
        ),
        (
            "read",
            "Read",
            "Documents, as the model reads them",
            lambda: [readings(model, explanation(), shown)],
        ),
        (
            "frames",
            terms.frames,
            f"{terms.frames} and their {terms.heads}",
            words,
        ),
        ("scripts", "Scripts", "Scripts that the model writes", lambda: example_scripts(model, shown)),
    )
    left_out: dict[str, list[str]] = {}
    for name, short, title, part in parts:
        try:
            blocks = part()
        except UserError as error:
            left_out.setdefault(run.public_message(error), []).append(title)
        else:
            yield Section(f"{id}-{name}", title, blocks, short)
    if left_out:
        reasons = [absent(f"{', '.join(titles)}: {reason}") for reason, titles in left_out.items()]
        yield Section(f"{id}-left-out", "What cannot be shown", reasons)


# ---- documents


@dataclass(frozen=True)
class EventBlock:
    """An event beside the frame that the model infers."""

    words: Sequence[str]
    shares: Sequence[float] | None  # the attention that the frame pays to each of these words
    frame: str
    probability: float  # 0 if its frame is unknown
    known: str | None
    state: Literal["right", "wrong"] | None  # None if its frame is not known
    doubt: Name | None  # the second frame, if it is not improbable
    attention: Sequence[float] | None  # to each word of the document
    spoken: str  # for who does not see it


@dataclass(frozen=True)
class DocumentBlock:
    """A document, an event in a row; those after the first ``open`` ones are shown on a click."""

    open: ClassVar = 12

    id: str
    events: Sequence[EventBlock]
    title: Title | None = None
    note: Text | None = None
    asked: Collection[int] = ()  # the places of the events for which it is shown


def document_block(
    document: InferredDocument,
    compare: bool = True,
    title: Title | None = None,
    note: Text | None = None,
    asked: Collection[int] = (),
) -> DocumentBlock:
    """Return a document to be shown; if ``compare``, its own frames are held against the inferred ones."""
    width = len(document.slots)
    words = [word for inferred in document.events for word in inferred.event.padded(width)]
    events = [
        _event_block(inferred, words, slice(width * place, width * (place + 1)), compare)
        for place, inferred in enumerate(document.events)
    ]
    return DocumentBlock(document.id, events, title, note, asked)


def _event_block(inferred: InferredEvent, words: Sequence[str], own: slice, compare: bool) -> EventBlock:
    attention, other = inferred.attention, inferred.frames[1] if len(inferred.frames) > 1 else None
    known = inferred.gold if compare else None
    state: Literal["right", "wrong"] | None = None
    if known is not None:
        state = "right" if known == inferred.frame else "wrong"
    name, p = inferred.frame or "unknown", inferred.probability
    spoken = ", ".join(filter(None, (name, None if p is None else percent(p), state)))
    if attention is not None:
        most = sorted(zip(attention, words, strict=True), key=lambda pair: -pair[0])[:3]
        spoken += "; looked at " + ", ".join(f"{word_text(word)} {percent(share)}" for share, word in most)
    return EventBlock(
        words=words[own],
        shares=attention[own] if attention else None,
        frame=name,
        probability=p or 0.0,
        known=known,
        state=state,
        doubt=Name(other.name, other.probability) if other and other.probability >= DOUBT else None,
        attention=attention,
        spoken=spoken,
    )


def legible(model: Model, documents: Documents, count: int) -> NDArray[np.int64]:
    """Return the documents with several events and the fewest unknown words, in their order.

    What the model makes of them plays no part.
    """
    unknown = np.array(
        [(documents.tokens[part] == model.vocabulary.unknown).mean() for part in documents.parts()]
    )
    alone = documents.lengths < 2
    return np.sort(np.lexsort((np.arange(len(documents)), unknown, alone))[:count])


@dataclass(frozen=True)
class Readings:
    """Documents with their frames; what is said about attention is over all of the sample."""

    slots: Slots
    documents: Sequence[DocumentBlock]
    attention: AttentionSummary | None  # None for a model that infers frames without attention


def readings(model: Model, explanation: Explanation, shown: Sequence[Document]) -> Readings:
    """Return some documents with their frames."""
    read = infer_documents(model, shown, lowercase=False, top=2, attention=True)
    return Readings(model.slots, [document_block(document) for document in read], explanation.attention)


# ---- scripts


@dataclass(frozen=True)
class Scripts:
    """Scripts side by side, each event with the frame that was planned, or else inferred."""

    scripts: Sequence[Script]


def example_scripts(model: Model, shown: Sequence[Document]) -> list[Any]:
    """Return scripts that begin with the first events of some documents."""
    options = GenerateOptions(scripts=SCRIPTS)
    # A seed with words that nobody can read is a poor example, if there are others.
    seeds = sorted((d.events[:1] for d in shown if d.events), key=lambda events: UNKNOWN in events[0].words)
    written = [script for seed in seeds[:SEEDS] for script in generate(model, options, seed_events=seed)]
    return [
        "From the first event of a document, in bold, the model goes on by itself; in brackets the "
        "frame that each event was written for or, if none was planned, the one that it is read as. "
        f"Words are drawn from the likeliest that have together a probability of {options.top_p:g}, "
        f"with seed {options.seed}.",
        Scripts(written),
    ]


# ---- frames and their words


def chips(shares: Sequence[tuple[str, float | None]], href: Href | None = None) -> Chips:
    """Return names in a row, without those that are next to impossible."""
    return Chips([_name(name, p, href) for name, p in shares if p is None or p >= RARE])


def _name(name: str, share: float | None = None, href: Href | None = None) -> Name:
    return Name(name, share, None if href is None else href(name))


@dataclass(frozen=True)
class FrameRow:
    """A frame: how many events have it, the heads of these, and the frames of the events after them."""

    name: str
    count: float
    words: Shares
    after: Shares

    def to_record(self) -> dict[str, Any]:
        return {"frame": self.name, "events": round(self.count), "words": self.words, "after": self.after}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield one row per word, and one per frame that follows."""
        for kind, shares in (("word", self.words), ("after", self.after)):
            for name, share in shares:
                yield {"frame": self.name, "events": round(self.count), kind: name, "share": share}


def frame_rows(found: Explanation) -> Iterator[FrameRow]:
    """Yield the frames that are expected most."""
    words, transitions = found.words, found.transitions
    for f in _most_frequent(words.frame_counts, words.frames.names):
        name = words.frames.name(f)
        after = _likeliest(transitions.probabilities[f], transitions.frames.names, TOP_FRAMES)
        yield FrameRow(name, float(words.frame_counts[f]), words.words_of(name, TOP_WORDS), after)


def purity_note(found: Explanation) -> str:
    """Return how well clusters fit the known frames, empty if there are none."""
    purity = None if found.clusters is None else found.clusters.purity()
    if purity is None:
        return ""
    return (
        f" Of the events whose frame is known, {percent(purity)} have the most frequent known frame of "
        "their cluster (purity)."
    )


def frame_table(
    rows: Iterable[FrameRow], id: str, href: Href | None = None, note: str = "", terms: Terms = TEXT
) -> list[Any]:
    """Return frames in a table: how often they occur, their words, and what comes next."""
    cells = [
        [
            _name(row.name, None, href),
            f"{row.count:,.0f}",
            chips(row.words[:TOP_WORDS], href),
            chips(row.after[:TOP_FRAMES], href),
        ]
        for row in rows
    ]
    return [
        f"How many events are expected to have each {terms.frame}, their heads, p(word | {terms.frame}), "
        f"and the {terms.frame}s of the event after it, with their shares.{note}",
        _long_table(
            f"The {len(cells)} most frequent {terms.frame}s",
            [terms.frame, "events", f"its {terms.heads}", "followed by"],
            cells,
            id,
        ),
    ]


def _long_table(caption: str, head: list[str], rows: Sequence[Sequence[Any]], id: str) -> Table:
    return Table(caption, head, rows, names=len(head), id=id)


def verb_table(found: Explanation, id: str) -> Table:
    """Return the most frequent heads: how often they occur, and which frames the model infers for them."""
    words = found.words
    rows = [
        [
            Name(name := words.vocabulary.name(v)),
            f"{words.word_counts[v]:,}",
            chips(words.frames_of(name, TOP_FRAMES)),
        ]
        for v in _most_frequent(words.word_counts, words.vocabulary.names)
    ]
    caption = f"The {len(rows)} most frequent heads of events, and their frames: p(frame | word), on average"
    return _long_table(caption, ["word", "events", "its frames"], rows, id)


def paper_tables(clusters: Clusters, id: str) -> Details:
    """Return the paper's clusters: strengths, not probabilities, so without numbers."""
    names, verbs = clusters.frames.names, clusters.vocabulary.names
    words = [
        [Name(names[f]), chips([(word, None) for word, _ in clusters.top_words(names[f], TOP_WORDS)])]
        for f in _most_frequent(clusters.frame_counts, names)
    ]
    frames = [
        [Name(verbs[v]), chips([(frame, None) for frame, _ in clusters.top_frames(verbs[v], TOP_FRAMES)])]
        for v in _most_frequent(clusters.slot_counts[:, 0], verbs)
    ]
    return Details(
        "The paper's clusters (its Table 2)",
        [
            "Which words a frame makes likely (β_dec), and which frames a word speaks for (β_enc), strongest "
            "first. They weigh a word or a frame by itself, without its event, and may differ from what the "
            "model believes of events, above.",
            _long_table("Words given frames (β_dec)", ["frame", "strongest first"], words, f"{id}-dec"),
            _long_table("Frames given words (β_enc)", ["word", "strongest first"], frames, f"{id}-enc"),
        ],
    )


def _most_frequent(counts: NDArray[Any], names: Sequence[str]) -> list[int]:
    order = np.argsort(-counts, kind="stable")
    return [int(number) for number in order if counts[number] and names[number] != UNKNOWN][:ROWS]


# ---- which frames follow which


def _likeliest(shares: NDArray[np.float64], names: Sequence[str], k: int) -> Shares:
    best = np.argsort(-np.nan_to_num(shares), kind="stable")[:k]
    return [(names[g], float(shares[g])) for g in best if shares[g] >= RARE]


def strongest_links(transitions: Transitions) -> Figure:
    """Return the strongest links between frames as a picture, as a list and as a table."""
    found = transitions.strongest(LINKS)
    drawing = of_transitions(transitions)
    top = found[0]
    return Figure(
        "The strongest links between frames.",
        "On the left a frame, on the right one that follows it far more often than chance would have it; the "
        f"wider the band, the likelier. The strongest: {top.first} is followed by {top.second} "
        f"{percent(top.probability)} of the time, {top.lift:.0f} times chance. Point at a frame, or tab to "
        "it, to see only its links.",
        drawing,
        steps=[Steps(None, [(Name(k.first), Name(k.second, k.probability)) for k in found])],
        table=Table(
            "Strongest links",
            ["frame", "next frame", "probability", "lift", "expected count"],
            [[k.first, k.second, f"{k.probability:.3f}", f"{k.lift:.1f}", f"{k.count:.1f}"] for k in found],
            names=2,
        ),
    )
