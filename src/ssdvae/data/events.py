"""Events and documents: the only form in which data enters the system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from ssdvae.errors import Malformed, shorten

SLOTS = ("verb", "subj", "obj", "mod")
"""The four places of an event, in the order in which they are read and written."""

MISSING = "None"
"""The word that stands in an empty slot."""

KEYS = (*SLOTS, "frame")
"""What a model is told of an event."""

EXTRAS = frozenset({"probability", "lemma", "origin"})
"""What else may be known of it."""

Words = tuple[str, str, str, str]
"""What a model sees of an event."""


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


@dataclass(frozen=True, slots=True)
class Event:
    """Who did what to whom: a verb with its subject, object and modifier, and perhaps its frame.

    An empty slot is ``None`` here and the word ``MISSING`` for the model. ``frame`` is a name from
    any label set, or ``None`` where it is not known, and ``probability`` how sure its annotator was.
    ``lemma`` and ``origin`` are there for events that were extracted from text.
    """

    verb: str
    subj: str | None = None
    obj: str | None = None
    mod: str | None = None
    frame: str | None = None
    probability: float | None = field(default=None, kw_only=True)
    lemma: str | None = field(default=None, kw_only=True)
    origin: Origin | None = field(default=None, kw_only=True)

    @classmethod
    def of_words(cls, words: Sequence[str], frame: str | None = None) -> Event:
        """The event that a model sees as these words: the inverse of ``words``."""
        verb, *others = words
        subj, obj, mod = (None if word == MISSING else word for word in others)
        return cls(verb, subj, obj, mod, frame)

    @property
    def words(self) -> Words:
        """The four words that the model sees."""
        return (self.verb, self.subj or MISSING, self.obj or MISSING, self.mod or MISSING)

    def __str__(self) -> str:
        return " ".join(self.words)


def folded(words: Words) -> Words:
    """The words in lower case, but not that for an empty slot: it is no word of the text."""
    verb, subj, obj, mod = map(_folded, words)
    return verb, subj, obj, mod


@lru_cache(2**16)
def _folded(word: str) -> str:
    return word if word == MISSING else word.lower()


@dataclass(frozen=True, slots=True)
class Document:
    """Events in the order of the text."""

    id: str
    events: tuple[Event, ...]


def event_from_text(text: str) -> Event:
    """An event as a person types it: ``verb subj obj mod``, where ``-``, ``_`` and ``None`` are empty slots.

    Slots left out at the end are empty.
    """
    words = [None if word in ("-", "_", MISSING) else word for word in text.split()]
    if not 1 <= len(words) <= len(SLOTS) or words[0] is None:
        raise Malformed(shorten(text.strip()), "verb subj obj mod, with - for an empty slot after the verb")
    return Event(*words)  # type: ignore[arg-type]  # the verb was just seen not to be None


def event_from_record(record: object) -> Event:
    """An event from a mapping with the keys of ``SLOTS`` and ``frame``; unknown keys are passed over.

    So are a probability, a lemma and an origin that ``event_to_record`` could not have written: others may
    mean something else by these names, and no model reads them.
    """
    if not isinstance(record, dict | Mapping):  # most are dicts, and that is soon seen
        raise Malformed(shorten(record), 'an event such as {"verb": "met", "subj": "she", "frame": …}')
    try:
        verb, subj, obj, mod, frame = map(_one_word, map(record.get, KEYS))
    except TypeError:
        key = next(key for key in KEYS if not isinstance(record.get(key), str | None))
        raise Malformed(f"{shorten(record[key])} under {key!r}", "a word in quotes, or null") from None
    if verb is None:
        raise Malformed(f"no verb in {shorten(dict(record))}", "every event to have a verb")
    if not EXTRAS.isdisjoint(record):
        probability, lemma = record.get("probability"), record.get("lemma")
        return Event(
            verb,
            subj,
            obj,
            mod,
            frame,
            probability=_probability(probability),
            lemma=lemma if isinstance(lemma, str) and lemma else None,
            origin=_origin(record.get("origin")),
        )
    return Event(verb, subj, obj, mod, frame)


@lru_cache(2**16)
def _one_word(value: object) -> str | None:
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


def event_to_record(event: Event) -> dict[str, Any]:
    """The inverse of ``event_from_record``: the words and the frame, and whatever else is known."""
    record: dict[str, Any] = {key: getattr(event, key) for key in KEYS}
    record |= {k: v for k in ("probability", "lemma") if (v := getattr(event, k)) is not None}
    if (origin := event.origin) is not None:
        record["origin"] = {"sentence": origin.sentence, "span": [origin.start, origin.end]}
        if origin.negated:
            record["origin"]["negated"] = True
        if origin.text is not None:
            record["origin"] |= {"text": origin.text, "text_start": origin.text_start}
    return record


def document_from_record(record: object) -> Document:
    """A document from ``{"id": …, "events": [event, …]}``."""
    if not isinstance(record, Mapping):
        raise Malformed(shorten(record), 'a document such as {"id": "a", "events": [{"verb": "met"}]}')
    if "id" not in record or not isinstance(record["id"], str | int) or isinstance(record["id"], bool):
        raise Malformed(f"the id {shorten(record.get('id'))}", "a word or a number that names the document")
    events = record.get("events")
    if not isinstance(events, list | tuple):
        raise Malformed(f"{shorten(events)} under 'events'", "a list of events")
    return Document(str(record["id"]), tuple(event_from_record(event) for event in events))


def document_to_record(document: Document) -> dict[str, Any]:
    """The inverse of ``document_from_record``."""
    return {"id": document.id, "events": [event_to_record(event) for event in document.events]}
