"""What one model has learned: its clusters, what follows what, documents it has read, scripts it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ssdvae.analysis.attention import attention_summary
from ssdvae.analysis.clusters import Clusters, clusters
from ssdvae.analysis.generation import Script, generate
from ssdvae.analysis.inference import InferredDocument, InferredEvent, infer_documents
from ssdvae.analysis.transitions import transitions
from ssdvae.config import GenerateSettings, ReportSettings
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.events import MISSING, Document, Event
from ssdvae.errors import UserError
from ssdvae.models.base import EventModel
from ssdvae.report.charts import Link, links
from ssdvae.report.figures import absent, figure
from ssdvae.report.html import Html, join, table, tag
from ssdvae.report.runs import Reported

ROWS, TOP, LINKS, SEEDS = 100, 8, 24, 3


def inside(run: Reported, settings: ReportSettings, id: str) -> Iterator[Html]:
    """The parts of the page about one run; those that the model has no answer for are named, with the reason."""
    if run.corpus is None:
        yield absent(f"Left out: {run.corpus_missing}.")
        return
    try:
        model = EventModel.read(run.folder)
        run.corpus.check_names(model.vocabulary, model.frames)
        documents = first(run.corpus.split(settings.split), settings.sample)
    except UserError as error:
        yield absent(f"Left out: {_sentence(error)}")
        return
    shown = readable(run.corpus, first(documents, settings.documents))
    parts: dict[str, Callable[[], Html]] = {
        "Frames and their words": lambda: cluster_tables(clusters(model, documents), id),
        "What follows what": lambda: strongest_links(model, documents),
        "Documents as the model reads them": lambda: timelines(model, documents, shown),
        "Scripts that the model writes": lambda: scripts(model, shown),
    }
    left_out: dict[str, list[str]] = {}
    for title, part in parts.items():
        try:
            content = part()
        except UserError as error:
            left_out.setdefault(_sentence(error), []).append(title)
        else:
            yield tag("h3", title)
            yield content
    for reason, titles in left_out.items():
        yield absent(f"Left out ({', '.join(titles)}): {reason}")


def _sentence(error: UserError) -> str:
    return str(error).splitlines()[0].removesuffix(".") + "."


def first(documents: Documents, count: int) -> Documents:
    """The first documents of a split."""
    d = documents
    return Documents(d.ids[:count], d.tokens[:count], d.frames[:count], d.lengths[:count])


def readable(corpus: Corpus, documents: Documents) -> list[Document]:
    """Documents in words: a rare word is the unknown one, as the model sees it."""

    def event(tokens: Sequence[int], frame: int) -> Event:
        verb, *others = (corpus.vocabulary.name(word) for word in tokens)
        slots = (None if word == MISSING else word for word in others)
        return Event(verb, *slots, frame=corpus.frames.name(frame) if frame >= 0 else None)

    return [
        Document(str(id), tuple(map(event, tokens[:length].tolist(), frames[:length].tolist())))
        for id, tokens, frames, length in zip(
            documents.ids.to_pylist(), documents.tokens, documents.frames, documents.lengths, strict=True
        )
    ]


def cluster_tables(found: Clusters, id: str) -> Html:
    """Top words of the frames that are inferred most, and top frames of the commonest verbs."""
    frames = [found.frames.name(f) for f in _commonest(found.frame_counts)]
    verbs = [found.vocabulary.name(w) for w in _commonest(found.slot_counts[:, 0])]
    purity = found.purity()
    known = (
        ""
        if purity is None
        else (
            f" Where frames are known, {purity:.1%} of the events have the commonest known frame of their cluster (purity)."
        )
    )
    return join(
        [
            tag(
                "p",
                "Which words a frame makes likely (β_dec), and which frames a word speaks for (β_enc), the strongest "
                "first, as in the paper's Table 2." + known,
            ),
            _filtered(
                "Words of each frame",
                f"{id}-words",
                "frame",
                [(name, found.top_words(name, TOP)) for name in frames],
            ),
            _filtered(
                "Frames of each verb",
                f"{id}-frames",
                "verb",
                [(word, found.top_frames(word, 5)) for word in verbs],
            ),
        ]
    )


def _commonest(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    order = np.argsort(-counts, kind="stable")[:ROWS]
    return [int(number) for number in order if counts[number]]


def _filtered(
    caption: str, id: str, head: str, rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]
) -> Html:
    """A table with a box to look for a row."""
    lines = [
        [name, tag("div", *(tag("span", word) for word, _ in top), class_="chips")] for name, top in rows
    ]
    box = tag(
        "label", f"Find in “{caption.lower()}”", tag("input", type="search", data_filter=id), class_="filter"
    )
    return join(
        [
            box,
            tag(
                "div",
                table(f"{caption} ({len(rows)} commonest)", [head, "strongest first"], lines, names=2),
                id=id,
                class_="tall",
            ),
        ]
    )


def strongest_links(model: EventModel, documents: Documents) -> Html:
    found = transitions(model, documents).strongest(LINKS, by="probability")
    if not found:
        raise UserError("no two frames follow each other often enough in these documents")
    given = [
        Link(
            link.first,
            link.second,
            link.probability,
            f"{link.first} → {link.second}: {link.probability:.0%} of what follows, {link.lift:.1f} times chance, "
            f"expected {link.count:.0f} times",
        )
        for link in found
    ]
    top = found[0]
    rows = [[k.first, k.second, f"{k.probability:.3f}", f"{k.lift:.1f}", f"{k.count:.1f}"] for k in found]
    return figure(
        "The strongest links between frames.",
        f"On the left a frame, on the right the one of the next event; the wider the band, the likelier. The "
        f"strongest: {top.first} is followed by {top.second} {top.probability:.0%} of the time. "
        "Point at a frame, or tab to it, to see only its links.",
        links("Strongest links between frames", given),
        table(
            "Strongest links", ["frame", "next frame", "probability", "lift", "expected count"], rows, names=2
        ),
    )


def timelines(model: EventModel, documents: Documents, shown: Sequence[Document]) -> Html:
    read = list(infer_documents(model, shown, lowercase=False))
    try:
        look = attention_summary(model, documents).overall()
        attention = (
            f" Over all documents that were looked at, {look.own['verb']:.0%} of the attention goes to the verb of the "
            f"event itself, {look.own_event:.0%} to the event; its entropy is {look.entropy:.2f} of at most "
            f"{look.most_entropy:.2f} nats."
        )
        how = " The shade of a word is the attention that its event's frame pays to it; point at a frame, or tab to it, to see where that frame looked in the whole document."
    except UserError:
        attention = how = ""
    return join(
        [
            tag(
                "p",
                "Each document from left to right, with the frame inferred for each event and its probability; no frame was given. "
                "Green is right, red wrong, grey not known." + how + attention,
            ),
            *map(_timeline, read),
        ]
    )


def _timeline(document: InferredDocument) -> Html:
    words = [word for inferred in document.events for word in inferred.event.words]
    items = [_item(inferred, place, words) for place, inferred in enumerate(document.events)]
    return tag(
        "article",
        tag("h4", document.id),
        tag("ol", *items, class_="timeline"),
        class_="document",
        aria_label=f"Document {document.id}",
    )


def _item(inferred: InferredEvent, place: int, words: Sequence[str]) -> Html:
    gold, attention = inferred.gold, inferred.attention
    state = None if gold is None else "right" if gold == inferred.frame else "wrong"
    says = f"{inferred.frame}, {inferred.probability:.0%}" + (f", {state}" if state else "")
    if attention is not None:
        most = sorted(zip(attention, words, strict=True), key=lambda pair: -pair[0])[:3]
        says += "; looked at " + ", ".join(f"{word} {share:.0%}" for share, word in most)
    own = (None,) * 4 if attention is None else attention[4 * place : 4 * place + 4]
    spans = [
        tag(
            "span",
            "–" if word == MISSING else word,
            class_="empty" if word == MISSING else None,
            style=None if share is None else f"--share:{share:.3f}",
        )
        for word, share in zip(inferred.event.words, own, strict=True)
    ]
    button = tag(
        "button",
        inferred.frame,
        " ",
        tag("small", f"{inferred.probability:.0%}"),
        type="button",
        aria_label=says,
        data_attention=None if attention is None else " ".join(f"{share:.3f}" for share in attention),
    )
    known = tag("p", f"known: {gold}", class_="known") if state == "wrong" else None
    return tag("li", button, known, tag("p", *_spaced(spans), class_="words"), class_=state)


def _spaced(parts: Sequence[Html]) -> Iterator[str]:
    for part in parts:
        yield part
        yield " "


def scripts(model: EventModel, shown: Sequence[Document]) -> Html:
    settings = GenerateSettings(scripts=2)
    written = [
        script
        for document in shown[:SEEDS]
        for script in generate(model, settings, seed_events=document.events[:1])
    ]
    return join(
        [
            tag(
                "p",
                "From the first event of a document (bold) the model goes on by itself; in brackets the frame that each event was written for. "
                f"Drawn from the likeliest words that have a probability of {settings.top_p:g} together, seed {settings.seed}.",
            ),
            tag("div", *map(_script, written), class_="scripts"),
        ]
    )


def _script(script: Script) -> Html:
    items = []
    for place, event in enumerate(script.events):
        text = " ".join("–" if word == MISSING else word for word in event.event.words)
        frame = tag("small", f" [{event.planned}]") if event.planned else None
        items.append(tag("li", tag("strong", text) if place < script.seeds else text, frame))
    return tag("article", tag("ol", *items), class_="script", aria_label="Script")
