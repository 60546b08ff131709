"""Documents as a model reads them, and scripts that it writes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssdvae.analysis.explain import Explanation
from ssdvae.answers.generate import Script, generate
from ssdvae.answers.infer import InferredDocument, InferredEvent, infer_documents
from ssdvae.config import GenerateSettings
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.events import MISSING, Document
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.evaluation.attention import AttentionSummary
from ssdvae.models.base import Model
from ssdvae.report.html import Html, breakable, join, percent, tag

SEEDS, SCRIPTS = 3, 2

OPEN = 12
"""Events of a document that are seen at once; the others are a click away."""

DOUBT = 0.05
"""A second frame is named if it is at least so probable."""


def legible(corpus: Corpus, documents: Documents, count: int) -> NDArray[np.int64]:
    """The documents that are best read: several events, and few words that the corpus does not know.

    What the model makes of them plays no part. They keep their order.
    """
    unknown = np.array(
        [(documents.tokens[part] == corpus.vocabulary.unknown).mean() for part in documents.parts()]
    )
    alone = documents.lengths < 2
    return np.sort(np.lexsort((np.arange(len(documents)), unknown, alone))[:count])


def readings(model: Model, explanation: Explanation, shown: Sequence[Document]) -> Html:
    """Some documents with their frames; the sentence about attention is over all that are looked at."""
    read = list(infer_documents(model, shown, lowercase=False, top=2, attention=True))
    return join(
        [
            tag(
                "p",
                f"Each row is an event ({', '.join(model.slots)}), and beside it the frame that the model "
                "infers, with its probability. No frame was given to it; where one is known, ✓ is right and "
                "✗ is wrong.",
            ),
            *map(reading, read),
            tag(
                "p",
                f"{_sentence(explanation.attention)}Shown are the documents with the fewest unknown words; "
                "what the model makes of them played no part.",
                class_="note",
            ),
        ]
    )


def _sentence(attention: AttentionSummary | None) -> str:
    """Where frames look, in words; nothing for a model that infers frames without attention."""
    if attention is None:
        return ""
    look, head = attention.overall(), attention.slots[0]
    return (
        "The shade of a word is the attention that the frame of its event pays to it; point at a frame, or "
        "tab to it, to see where it looked in the whole document. Over all documents that were looked at, "
        f"{percent(look.own[head])} of the attention goes to the event's own {head} and "
        f"{percent(look.own_event)} to the event. "
    )


def reading(document: InferredDocument) -> Html:
    """A document, one event a row, and above it what it is about."""
    width = len(document.slots)
    words = [word for inferred in document.events for word in inferred.event.padded(width)]
    items = [_item(inferred, place, words, width) for place, inferred in enumerate(document.events)]
    rest = None
    if len(items) > OPEN:
        more = tag("ol", *items[OPEN:], class_="events", start=OPEN + 1)
        rest = tag("details", tag("summary", f"and {len(items) - OPEN} more events"), more)
    return tag(
        "article",
        tag("p", document.id, class_="name"),
        tag("ol", *items[:OPEN], class_="events"),
        rest,
        class_="document",
        aria_label=f"Document {document.id}",
    )


def _item(inferred: InferredEvent, place: int, words: Sequence[str], width: int) -> Html:
    """An event beside its frame."""
    shown = event_words(inferred, place, words, width)
    return tag("li", shown, event_belief(inferred, words), class_=_state(inferred))


def _state(inferred: InferredEvent) -> str | None:
    known = inferred.gold
    return None if known is None else "right" if known == inferred.frame else "wrong"


def event_words(inferred: InferredEvent, place: int, words: Sequence[str], width: int) -> Html:
    """The words of the event at a place, of all ``words`` of a document, shaded by its frame's attention."""
    own = slice(width * place, width * (place + 1))
    shares = inferred.attention[own] if inferred.attention else (None,) * width
    return tag("p", Html(" ").join(map(_word, words[own], shares)), class_="words")


def event_belief(inferred: InferredEvent, words: Sequence[str]) -> Html:
    """The frame of an event; ``words`` are those of the whole document."""
    attention, state, sure = inferred.attention, _state(inferred), percent(inferred.probability)
    spoken = ", ".join(filter(None, (inferred.frame, sure, state)))
    if attention is not None:
        most = sorted(zip(attention, words, strict=True), key=lambda pair: -pair[0])[:3]
        spoken += "; looked at " + ", ".join(f"{_slot(word)} {percent(share)}" for share, word in most)
    frame = tag(
        "button" if attention else "div",
        tag("span", breakable(inferred.frame)),
        tag("small", " " + sure + {"right": " ✓", "wrong": " ✗", None: ""}[state]),
        class_="frame",
        type="button" if attention else None,
        aria_label=spoken if attention else None,
        style=f"--sure:{inferred.probability:.3f}",
        data_attention=attention and " ".join(f"{share:.3f}" for share in attention),
    )
    return tag("div", frame, _doubt(inferred), _known(inferred.gold, state), class_="belief")


def _word(word: str, share: float | None) -> Html:
    return tag(
        "span",
        _slot(word),
        class_="empty" if word == MISSING else None,
        style=None if share is None else f"--share:{share:.3f}",
    )


def _doubt(inferred: InferredEvent) -> Html | None:
    """What else it may be."""
    if len(inferred.frames) < 2 or (other := inferred.frames[1]).probability < DOUBT:
        return None
    return tag("span", "or ", breakable(other.name), f" {percent(other.probability)}", class_="doubt")


def _known(frame: str | None, state: str | None) -> Html | None:
    return tag("span", "known: ", breakable(frame), class_="known") if frame and state == "wrong" else None


def _slot(word: str) -> str:
    return "–" if word == MISSING else word


def scripts(model: Model, shown: Sequence[Document]) -> Html:
    settings = GenerateSettings(scripts=SCRIPTS)
    # A seed with words that nobody can read is a poor example, if there are others.
    seeds = sorted((d.events[:1] for d in shown if d.events), key=lambda events: UNKNOWN in events[0].words)
    written = [script for seed in seeds[:SEEDS] for script in generate(model, settings, seed_events=seed)]
    return join(
        [
            tag(
                "p",
                "From the first event of a document, in bold, the model goes on by itself; in brackets the "
                "frame that each event was written for or, if none was planned, the one that it is read as. "
                "Words are drawn from the likeliest that have "
                f"together a probability of {settings.top_p:g}, with seed {settings.seed}.",
            ),
            tag("div", *map(script_article, written), class_="scripts"),
        ]
    )


def script_article(script: Script) -> Html:
    """The events of a script, those that it began with in bold."""
    items = []
    for place, written in enumerate(script.events):
        text = " ".join(map(_slot, written.event.padded(len(script.slots))))
        frame = written.planned or written.inferred
        named = tag("small", " [", breakable(frame), "]") if frame else None
        items.append(tag("li", tag("strong", text) if place < script.seeds else text, named))
    return tag(
        "article", tag("ol", *items), class_="script", aria_label=f"Script from: {script.events[0].event}"
    )
