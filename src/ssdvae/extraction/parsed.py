"""Documents on their way: as they stand in a file, and as trees."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ssdvae.config import ExtractSettings
from ssdvae.data.events import Document, Event, Origin
from ssdvae.extraction.english import SPELLED
from ssdvae.extraction.tree import Token, Tree
from ssdvae.extraction.tuples import Slots, events


@dataclass(frozen=True, slots=True)
class Raw:
    """One document as it stands in its file: found there, but not yet understood."""

    id: str
    path: Path
    line: int | None
    content: Any


@dataclass(frozen=True, slots=True)
class Mention:
    """A frame that some parser saw at these characters of a document."""

    start: int
    end: int
    frame: str
    probability: float | None = None


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document with the trees of its sentences; all spans are places in its ``text``."""

    id: str
    text: str
    sentences: tuple[Tree, ...]
    mentions: tuple[Mention, ...] = ()


def spans_of(text: str, words: Iterable[str], start: int = 0) -> list[tuple[int, int]] | None:
    """Where words stand that make up a text with nothing but space between them; ``None`` if they do not."""
    spans = []
    for word in words:
        found = text.find(word, start)
        if found < 0 or text[start:found].strip():
            return None
        start = found + len(word)
        spans.append((found, start))
    return spans


def to_document(parsed: Parsed, settings: ExtractSettings) -> Document:
    """The events of a parsed document, in the order of the text."""
    found = []
    for number, tree in enumerate(parsed.sentences):
        for slots in events(tree):
            if slots.negated and settings.negation == "drop":
                continue
            event = to_event(tree, slots, settings)
            verb = tree[slots.verb]
            origin = Origin(number, verb.start, verb.end, slots.negated)
            if settings.keep_text:
                start, end = min(t.start for t in tree.tokens), max(t.end for t in tree.tokens)
                origin = replace(origin, text=parsed.text[start:end], text_start=start)
            mention = next((m for m in parsed.mentions if m.start < verb.end and verb.start < m.end), None)
            # A frame is one word, too.
            if mention is not None and (frame := "_".join(mention.frame.split())):
                event = event.changed(frame=frame, probability=mention.probability)
            found.append(event.changed(origin=origin))
    return Document(parsed.id, tuple(found))


def to_event(tree: Tree, slots: Slots, settings: ExtractSettings) -> Event:
    """The words that fill the slots."""

    def word(places: Iterable[int | None], lemmas: bool = settings.lemmas) -> str | None:
        tokens = [tree[place] for place in places if place is not None]
        words = [_spelled(t, lemmas).lower() for t in tokens]
        # A slot is one word to the model: "gave up" is gave_up, and a form with a space in it is joined too.
        return "_".join(" ".join(words).split()) or None

    phrase = (slots.verb, *slots.particles)
    # A form of nothing but space would be no word; such a "verb" is only met in damaged files.
    verb = word(phrase) or "_"
    return Event(
        f"not_{verb}" if slots.negated and settings.negation == "mark" else verb,
        word([slots.subj]),
        word([slots.obj]),
        word(slots.mod),
        lemma=word(phrase, lemmas=True),
    )


def _spelled(token: Token, lemma: bool) -> str:
    """A word, or its dictionary form; of a contraction, what its part stands for."""
    if lemma and token.lemma and token.lemma.lower() != token.form.lower():
        return token.lemma
    may_be_part = token.pos in ("VERB", "PRON", "PRP") or token.pos.startswith("VB")
    return SPELLED.get(token.form.lower().replace("’", "'"), token.form) if may_be_part else token.form
