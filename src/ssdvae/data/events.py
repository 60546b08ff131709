"""Events and documents: the only form in which data enters the system."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ssdvae.config.slots import SLOTS, Slots
from ssdvae.errors import Malformed, shorten

__all__ = [
    "HOLE",
    "MISSING",
    "SLOTS",
    "AnyDocument",
    "AnyEvent",
    "Document",
    "Event",
    "Origin",
    "Slots",
    "Words",
    "document_from_record",
    "document_to_record",
    "event_from_record",
    "event_from_text",
    "event_to_record",
    "folded",
    "to_document",
    "to_event",
]

MISSING = "None"
"""The word that stands in an empty slot."""

HOLE = "?"
"""Stands where a word is wanted; as the head of an event without other words, the whole event is."""

EXTRAS = frozenset({"probability", "lemma", "origin"})
"""What else than its words and its frame may be known of an event."""

Words = tuple[str, ...]
"""What a model sees of an event: one word a slot."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an event was read: the number of its sentence, and the characters of its verb in the document.

    ``text`` is the sentence itself, where it was kept, and ``text_start`` its place in the document.
    """

    sentence: int
    start: int
    end: int
    negated: bool = False
    text: str | None = None
    text_start: int | None = None


@dataclass(frozen=True, slots=True, init=False)
class Event:
    """What happened: a head, such as a verb, with its arguments, and perhaps its frame.

    What the slots are called, and how many there are, is known to whatever holds events: a corpus, a model, a
    reader of files. An empty slot is ``None`` here and the word ``MISSING`` for the model; empty slots at the
    end are left out, so an event is the same however many there are. ``frame`` is a name from any label set,
    or ``None`` where it is not known, and ``probability`` how sure its annotator was. ``lemma`` and
    ``origin`` are there for events that were extracted from text.
    """

    head: str
    arguments: tuple[str | None, ...]
    frame: str | None
    probability: float | None
    lemma: str | None
    origin: Origin | None

    def __init__(
        self,
        head: str,
        *arguments: str | None,
        frame: str | None = None,
        probability: float | None = None,
        lemma: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        while arguments and arguments[-1] is None:
            arguments = arguments[:-1]
        put = object.__setattr__
        put(self, "head", head)
        put(self, "arguments", arguments)
        put(self, "frame", frame)
        put(self, "probability", probability)
        put(self, "lemma", lemma)
        put(self, "origin", origin)

    @classmethod
    def of_words(cls, words: Sequence[str], frame: str | None = None) -> Event:
        """The event that a model sees as these words: the inverse of ``padded``."""
        head, *others = words
        return cls(head, *(None if word == MISSING else word for word in others), frame=frame)

    def changed(self, **changes: Any) -> Event:
        """The same event but for its frame, probability, lemma or origin."""
        known = {name: getattr(self, name) for name in ("frame", "probability", "lemma", "origin")}
        return Event(self.head, *self.arguments, **{**known, **changes})

    def values(self, width: int) -> tuple[str | None, ...]:
        """Head and arguments for so many slots; ``Malformed`` if there are fewer slots than it has words."""
        if len(self.arguments) >= width:
            raise Malformed(f"{1 + len(self.arguments)} words in {shorten(str(self))}", f"{width} at most")
        return (self.head, *self.arguments, *[None] * (width - 1 - len(self.arguments)))

    def padded(self, width: int) -> Words:
        """The words that a model of so many slots sees."""
        return tuple([word or MISSING for word in self.values(width)])

    @property
    def words(self) -> Words:
        """The words without the empty slots at the end."""
        return (self.head, *[word or MISSING for word in self.arguments])

    def __str__(self) -> str:
        return " ".join(self.words)


def folded(words: Words) -> Words:
    """The words in lower case, but not that for an empty slot: it is no word of the text."""
    return tuple(map(_folded, words))


@lru_cache(2**16)
def _folded(word: str) -> str:
    return word if word == MISSING else word.lower()


@dataclass(frozen=True, slots=True)
class Document:
    """Events in the order of the text."""

    id: str
    events: tuple[Event, ...]


def event_from_text(text: str, slots: Slots = SLOTS) -> Event:
    """An event as a person types it: ``verb subj obj mod``, where ``-``, ``_`` and ``None`` are empty slots.

    Slots left out at the end are empty.
    """
    head, *arguments = [None if word in ("-", "_", MISSING) else word for word in text.split()] or [None]
    if head is None or len(arguments) >= len(slots):
        empty = f", with - for an empty slot after the {slots[0]}" if len(slots) > 1 else ""
        raise Malformed(shorten(text.strip()), f"{' '.join(slots)}{empty}")
    return Event(head, *arguments)


def event_from_record(record: object, slots: Slots = SLOTS) -> Event:
    """An event from a mapping with a key for each slot and ``frame``; unknown keys are passed over.

    So are a probability, a lemma and an origin that ``event_to_record`` could not have written: others may
    mean something else by these names, and no model reads them.
    """
    if not isinstance(record, dict | Mapping):  # most are dicts, and that is soon seen
        raise Malformed(shorten(record), f"an event such as {example(slots)}")
    get = record.get
    try:
        head, *arguments = map(one_word, map(get, slots))
        frame = one_word(get("frame"))
    except TypeError:
        key = next(key for key in (*slots, "frame") if not isinstance(get(key), str | None))
        raise Malformed(f"{shorten(record[key])} under {key!r}", "a word in quotes, or null") from None
    if head is None:
        expected = f"every event to have a {slots[0]}; the slots are {', '.join(slots)}"
        raise Malformed(f"no {slots[0]} in {shorten(dict(record))}", expected)
    if not EXTRAS.isdisjoint(record):
        lemma = get("lemma")
        return Event(
            head,
            *arguments,
            frame=frame,
            probability=_probability(get("probability")),
            lemma=lemma if isinstance(lemma, str) and lemma else None,
            origin=_origin(get("origin")),
        )
    return Event(head, *arguments, frame=frame)


def example(slots: Slots) -> str:
    """An event as JSON, to show how one is written."""
    words = dict(zip(slots, ("met", "she"), strict=False))
    return json.dumps({**words, "frame": "…"}, ensure_ascii=False)


@lru_cache(2**16)
def one_word(value: object) -> str | None:
    """A slot is one word to the model: "as of" becomes "as_of", and an empty slot is a missing one.

    A million documents have few words, and what was seen before is soon found.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError
    word = "_".join(value.split())
    return None if word in ("", MISSING) else word


def _probability(value: object) -> float | None:
    number = isinstance(value, float | int) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= 1 else None  # type: ignore[arg-type, operator]  # a number


def _origin(record: object) -> Origin | None:
    match record:
        case {"sentence": int(sentence), "span": [int(start), int(end)], **rest}:
            origin = Origin(sentence, start, end, rest.get("negated") is True)
            match rest:
                case {"text": str(text), "text_start": int(text_start)}:
                    return replace(origin, text=text, text_start=text_start)
            return origin
    return None


def event_to_record(event: Event, slots: Slots = SLOTS) -> dict[str, Any]:
    """The inverse of ``event_from_record``: the words and the frame, and whatever else is known."""
    record: dict[str, Any] = dict(zip(slots, event.values(len(slots)), strict=True))
    record["frame"] = event.frame
    record |= {k: v for k in ("probability", "lemma") if (v := getattr(event, k)) is not None}
    if (origin := event.origin) is not None:
        record["origin"] = {"sentence": origin.sentence, "span": [origin.start, origin.end]}
        if origin.negated:
            record["origin"]["negated"] = True
        if origin.text is not None:
            record["origin"] |= {"text": origin.text, "text_start": origin.text_start}
    return record


def document_from_record(record: object, slots: Slots = SLOTS) -> Document:
    """A document from ``{"id": …, "events": [event, …]}``."""
    if not isinstance(record, Mapping):
        raise Malformed(shorten(record), f'a document such as {{"id": "a", "events": [{example(slots)}]}}')
    if "id" not in record or not isinstance(record["id"], str | int) or isinstance(record["id"], bool):
        raise Malformed(f"the id {shorten(record.get('id'))}", "a word or a number that names the document")
    events = record.get("events")
    if not isinstance(events, list | tuple):
        raise Malformed(f"{shorten(events)} under 'events'", "a list of events")
    return Document(str(record["id"]), tuple([event_from_record(event, slots) for event in events]))


AnyEvent = Event | Mapping[str, Any] | str
AnyDocument = Document | Mapping[str, Any] | Sequence[AnyEvent]
"""What people write for an event and for a document in Python."""


def to_event(value: object, slots: Slots = SLOTS) -> Event:
    """An event from an ``Event``, a mapping of its slots, or a text ``verb subj obj mod``."""
    if isinstance(value, str):
        return event_from_text(value, slots)
    if isinstance(value, Event):
        if not (isinstance(value.head, str) and value.head):
            raise Malformed(shorten(value), f"an event with a {slots[0]}")
        named = zip((*slots, "frame"), (*value.values(len(slots)), value.frame), strict=True)
        if odd := [(slot, word) for slot, word in named if not isinstance(word, str | None)]:
            raise Malformed(f"{shorten(odd[0][1])} as {odd[0][0]}", "a word, or None")
        return value
    if not isinstance(value, Mapping):
        raise Malformed(shorten(value), f'an Event, {example(slots)}, or "{" ".join(slots)}"')
    return event_from_record(value, slots)


def to_document(value: object, id: str, slots: Slots = SLOTS) -> Document:
    """A document from a ``Document``, a mapping with its events, or a list of events, named ``id``."""
    if isinstance(value, Document):
        return Document(value.id, tuple([to_event(event, slots) for event in value.events]))
    events: object = value
    if isinstance(value, Mapping):
        if "events" not in value:
            raise Malformed(shorten(dict(value)), 'a document such as {"id": "a", "events": […]}')
        id, events = str(value.get("id", id)), value["events"]
    if isinstance(events, str) or not isinstance(events, Sequence):
        hint = "a Document, a mapping with its events, or a list of events"
        raise Malformed(shorten(events), hint)
    return Document(id, tuple([to_event(event, slots) for event in events]))


def document_to_record(document: Document, slots: Slots = SLOTS) -> dict[str, Any]:
    """The inverse of ``document_from_record``."""
    return {"id": document.id, "events": [event_to_record(event, slots) for event in document.events]}
