"""Documents as a model reads them, and scripts that it writes."""

from __future__ import annotations

from collections.abc import Sequence

from ssdvae.answers.generate import Script, generate
from ssdvae.answers.infer import InferredDocument, InferredEvent, infer_documents
from ssdvae.config import GenerateSettings
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.events import MISSING, Document, Event
from ssdvae.data.vocabulary import UNKNOWN
from ssdvae.evaluation.attention import AttentionSummary
from ssdvae.models.base import EventModel
from ssdvae.report.html import Html, breakable, join, tag

SEEDS, SCRIPTS = 3, 2


def to_documents(corpus: Corpus, documents: Documents) -> list[Document]:
    """Documents in words: a rare word is the unknown one, as the model sees it."""

    def event(tokens: Sequence[int], frame: int) -> Event:
        words = [corpus.vocabulary.name(word) for word in tokens]
        return Event.of_words(words, corpus.frames.name(frame) if frame >= 0 else None)

    return [
        Document(str(id), tuple(map(event, documents.tokens[part].tolist(), documents.frames[part].tolist())))
        for id, part in zip(documents.ids.to_pylist(), documents.parts(), strict=True)
    ]


def timelines(model: EventModel, attention: AttentionSummary | None, shown: Sequence[Document]) -> Html:
    """Some documents with their frames; the sentence about attention is over all that are looked at."""
    read = list(infer_documents(model, shown, lowercase=False))
    return join(
        [
            tag(
                "p",
                "The frame inferred for each event, and its probability; no frame was given. ✓ is right, "
                f"✗ is wrong, and neither stands where the frame is not known.{_sentence(attention)}",
            ),
            *map(_timeline, read),
        ]
    )


def _sentence(attention: AttentionSummary | None) -> str:
    """Where frames look, in words; nothing for a model that infers frames without attention."""
    if attention is None:
        return ""
    look = attention.overall()
    return (
        " The shade of a word is the attention that the frame of its event pays to it; point at a frame, or "
        "tab to it, to see where it looked in the whole document. Over all documents that were looked at, "
        f"{look.own['verb']:.0%} of the attention goes to the event's own verb and {look.own_event:.0%} to "
        f"the event; its entropy is {look.entropy:.2f} of at most {look.most_entropy:.2f} nats."
    )


def _timeline(document: InferredDocument) -> Html:
    width = len(document.slots)
    words = [word for inferred in document.events for word in inferred.event.padded(width)]
    items = [_item(inferred, place, words, width) for place, inferred in enumerate(document.events)]
    return tag(
        "article",
        tag("h5", document.id),
        tag("ol", *items, class_="timeline"),
        class_="document",
        aria_label=f"Document {document.id}",
    )


def _item(inferred: InferredEvent, place: int, words: Sequence[str], width: int) -> Html:
    """An event below its frame."""
    known, attention = inferred.gold, inferred.attention
    state = None if known is None else "right" if known == inferred.frame else "wrong"
    sure = f"{inferred.probability:.0%}"
    spoken = ", ".join(filter(None, (inferred.frame, sure, state)))
    if attention is not None:
        most = sorted(zip(attention, words, strict=True), key=lambda pair: -pair[0])[:3]
        spoken += "; looked at " + ", ".join(f"{word} {share:.0%}" for share, word in most)
    frame = tag(
        "button" if attention else "div",
        breakable(inferred.frame),
        tag("small", " " + sure + {"right": " ✓", "wrong": " ✗", None: ""}[state]),
        class_="frame",
        type="button" if attention else None,
        aria_label=spoken if attention else None,
        data_attention=attention and " ".join(f"{share:.3f}" for share in attention),
    )
    correction = tag("p", "known: ", breakable(known), class_="known") if known and state == "wrong" else None
    own = slice(width * place, width * (place + 1))
    shares = attention[own] if attention else (None,) * width
    text = [
        tag(
            "span",
            _slot(word),
            class_="empty" if word == MISSING else None,
            style=None if share is None else f"--share:{share:.3f}",
        )
        for word, share in zip(words[own], shares, strict=True)
    ]
    return tag("li", frame, correction, tag("p", Html(" ").join(text), class_="words"), class_=state)


def _slot(word: str) -> str:
    return "–" if word == MISSING else word


def scripts(model: EventModel, shown: Sequence[Document]) -> Html:
    settings = GenerateSettings(scripts=SCRIPTS)
    # A seed with words that nobody can read is a poor example, if there are others.
    seeds = sorted((d.events[:1] for d in shown if d.events), key=lambda events: UNKNOWN in events[0].words)
    written = [script for seed in seeds[:SEEDS] for script in generate(model, settings, seed_events=seed)]
    return join(
        [
            tag(
                "p",
                "From the first event of a document, in bold, the model goes on by itself; in brackets the "
                "frame that each event was written for. Words are drawn from the likeliest that have "
                f"together a probability of {settings.top_p:g}, with seed {settings.seed}.",
            ),
            tag("div", *map(_script, written), class_="scripts"),
        ]
    )


def _script(script: Script) -> Html:
    items = []
    for place, written in enumerate(script.events):
        text = " ".join(map(_slot, written.event.padded(len(script.slots))))
        frame = tag("small", " [", breakable(written.planned), "]") if written.planned else None
        items.append(tag("li", tag("strong", text) if place < script.seeds else text, frame))
    return tag(
        "article", tag("ol", *items), class_="script", aria_label=f"Script from: {script.events[0].event}"
    )
