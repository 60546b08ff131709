"""Events and documents: the only form in which data enters the system."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ssdvae.io.errors import Malformed, shorten

Slots = tuple[str, ...]

SLOTS: Slots = ("verb", "subj", "obj", "mod")
"""The default slots: who did what to whom. The first is the head, of which a frame is the class."""

RESERVED = (
    *("id", "events", "frame", "probability", "lemma", "origin", "time"),
    *("gold", "head_known", "observed", "runner_up", "runner_up_probability", "alternatives", "attention"),
)
"""Keys of events in files, or in the answers of `infer`: no slot can have these names."""


def check_slots(names: Iterable[str]) -> Slots:
    """Return the names of slots; raise ``Malformed`` if events cannot have such slots."""
    slots = tuple(names)
    if not slots:
        raise Malformed("no slots", "one at least, the head of an event")
    for place, name in enumerate(slots):
        if name.split() != [name] or "," in name:
            raise Malformed(f"a slot {shorten(name)}", "a name without spaces and commas")
        if name.lower() in RESERVED:
            raise Malformed(f"a slot {name}", f"another name than {', '.join(RESERVED)}")
        if name.lower() in [other.lower() for other in slots[:place]]:
            raise Malformed(f"the slot {name} twice", "each name once, in upper or lower case")
    return slots


MISSING = "None"
"""The word that stands in an empty slot."""

END = "<end of case>"
"""The head of the event that stands for the end of a case in answers; no corpus has it."""

HOLE = "?"
"""The placeholder of a missing word; as the head of an event without other words, of a missing event."""

MOST_SECONDS = 2.0**43
"""A time beyond this many seconds from 1970 is none: 280,000 years."""

EXTRAS = frozenset({"probability", "alternatives", "lemma", "origin", "time"})
"""The optional keys of an event beside its words and its frame."""

Words = tuple[str, ...]
"""An event as a model sees it: one word per slot."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of an event in a text: the number of its sentence, and the character span of its verb.

    ``text`` is the sentence itself, if it was stored, and ``text_start`` its offset in the document.
    """

    sentence: int
    start: int
    end: int
    negated: bool = False
    text: str | None = None
    text_start: int | None = None


@dataclass(frozen=True, slots=True, init=False)
class Event:
    """An event: a head, such as a verb, its arguments, and perhaps its frame.

    The corpus, model or reader knows the names and the number of the slots. An empty slot is ``None`` here
    and the word ``MISSING`` for a model; empty slots at the end are left out, so that equal events are equal
    whatever the number of slots. ``frame`` is a name from any label set, or ``None`` if it is latent, and
    ``probability`` the confidence of its annotator, whose ``alternatives`` are the next frames and their
    probabilities. Events that were extracted from text have ``lemma`` and ``origin``, those of logs a
    ``time`` in seconds since 1970.
    """

    head: str
    arguments: tuple[str | None, ...]
    frame: str | None
    probability: float | None
    alternatives: tuple[tuple[str, float], ...]
    lemma: str | None
    origin: Origin | None
    time: float | None = field(compare=False)  # an event that happens again is the same

    def __init__(
        self,
        head: str,
        *arguments: str | None,
        frame: str | None = None,
        probability: float | None = None,
        alternatives: tuple[tuple[str, float], ...] = (),
        lemma: str | None = None,
        origin: Origin | None = None,
        time: float | None = None,
    ) -> None:
        while arguments and arguments[-1] is None:
            arguments = arguments[:-1]
        put = object.__setattr__
        put(self, "head", head)
        put(self, "arguments", arguments)
        put(self, "frame", frame)
        put(self, "probability", probability)
        put(self, "alternatives", alternatives)
        put(self, "lemma", lemma)
        put(self, "origin", origin)
        put(self, "time", time)

    @classmethod
    def of_words(cls, words: Sequence[str], frame: str | None = None) -> Event:
        """Return the event of these words: the inverse of ``padded``."""
        head, *others = words
        return cls(head, *(None if word == MISSING else word for word in others), frame=frame)

    def changed(self, **changes: Any) -> Event:
        """Return the event with another frame, probability, alternatives, lemma, origin or time."""
        known = {name: getattr(self, name) for name in ("frame", *EXTRAS)}
        return Event(self.head, *self.arguments, **{**known, **changes})

    def values(self, width: int) -> tuple[str | None, ...]:
        """Return head and arguments for ``width`` slots; raise ``Malformed`` if it has more words."""
        if len(self.arguments) >= width:
            raise Malformed(f"{1 + len(self.arguments)} words in {shorten(str(self))}", f"{width} at most")
        return (self.head, *self.arguments, *[None] * (width - 1 - len(self.arguments)))

    def padded(self, width: int) -> Words:
        """Return one word for each of ``width`` slots, ``MISSING`` in empty ones."""
        return tuple([word or MISSING for word in self.values(width)])

    @property
    def words(self) -> Words:
        """The words, without the empty slots at the end."""
        return (self.head, *[word or MISSING for word in self.arguments])

    def __str__(self) -> str:
        """Return the words as they are typed: with commas if one of them has blanks."""
        return (", " if any(" " in word for word in self.words) else " ").join(self.words)


def folded(words: Words) -> Words:
    """Return the words in lower case, except ``MISSING``, which is no word of the text."""
    return tuple(map(_folded, words))


@lru_cache(2**16)
def _folded(word: str) -> str:
    return word if word == MISSING else word.lower()


@dataclass(frozen=True, slots=True)
class Document:
    """A sequence of events, in the order of the text or of time."""

    id: str
    events: tuple[Event, ...]


def slot_format(slots: Slots) -> str:
    """Return how an event is typed."""
    return " ".join(slots) + (f", with - for an empty slot after the {slots[0]}" if len(slots) > 1 else "")


def event_from_text(text: str, slots: Slots = SLOTS) -> Event:
    """Return the event of a typed text, ``verb subj obj mod``; ``-``, ``_`` and ``None`` are empty slots.

    Slots left out at the end are empty. In a log commas may part the words, which then may have blanks.
    """
    parts = text.split(",") if "," in text and slots != SLOTS else text.split()
    head, *arguments = [None if word in ("-", "_") else words_of(word) for word in map(str.strip, parts)] or [
        None
    ]
    if head is None or len(arguments) >= len(slots):
        raise Malformed(shorten(text.strip()), slot_format(slots))
    return Event(head, *arguments)


def event_from_record(record: object, slots: Slots = SLOTS) -> Event:
    """Return the event of a mapping with a key for each slot and ``frame``; unknown keys are ignored.

    So are a probability, alternatives, a lemma, an origin and a time of another type: other programs may mean
    something else by these names. A number that is no probability is refused.
    """
    if not isinstance(record, dict | Mapping):  # dict first, which is faster to check
        raise Malformed(shorten(record), f"an event such as {example(slots)}")
    get, normal = record.get, one_word if slots == SLOTS else words_of
    try:
        head, *arguments = map(normal, map(get, slots))
        frame = normal(get("frame"))
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
            alternatives=_alternatives(get("alternatives")),
            lemma=lemma if isinstance(lemma, str) and lemma else None,
            origin=_origin(get("origin")),
            time=_time(get("time")),
        )
    return Event(head, *arguments, frame=frame)


def example(slots: Slots) -> str:
    """Return an example of an event as JSON."""
    words = dict(zip(slots, ("met", "she"), strict=False))
    return json.dumps({**words, "frame": "…"}, ensure_ascii=False)


@lru_cache(2**16)
def words_of(value: object, blank: str = " ") -> str | None:
    """Return the text of a slot with single blanks; None if it is empty."""
    # Cached: a million documents have few distinct words.
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError
    word = blank.join(value.split())
    return None if word in ("", MISSING) else word


@lru_cache(2**16)
def one_word(value: object) -> str | None:
    """Return the text of a slot of a text as one word: "as of" becomes "as_of"; None if it is empty."""
    return words_of(value, "_")


def _probability(value: object) -> float | None:
    if not isinstance(value, float | int) or isinstance(value, bool):
        return None
    if not 0 <= value <= 1:
        raise Malformed(f"{shorten(value)} under 'probability'", "a number from 0 to 1")
    return float(value)


def _alternatives(records: object) -> tuple[tuple[str, float], ...]:
    found = []
    for record in records if isinstance(records, list | tuple) else ():
        match record:
            case {"frame": str(frame), "probability": float() | int() as value}:
                found.append((one_word(frame) or MISSING, _probability(value) or 0.0))
    return tuple(found)


def _time(value: object) -> float | None:
    """Return seconds since 1970 of a number of them, or of a time as ISO 8601 has it."""
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    known = isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < MOST_SECONDS
    return float(value) if known else None  # type: ignore[arg-type]  # a number


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
    """Return an event as a mapping, the inverse of ``event_from_record``."""
    record: dict[str, Any] = dict(zip(slots, event.values(len(slots)), strict=True))
    record["frame"] = event.frame
    record |= {k: v for k in ("probability", "lemma", "time") if (v := getattr(event, k)) is not None}
    if event.alternatives:
        record["alternatives"] = [{"frame": f, "probability": p} for f, p in event.alternatives]
    if (origin := event.origin) is not None:
        record["origin"] = {"sentence": origin.sentence, "span": [origin.start, origin.end]}
        if origin.negated:
            record["origin"]["negated"] = True
        if origin.text is not None:
            record["origin"] |= {"text": origin.text, "text_start": origin.text_start}
    return record


def document_from_record(record: object, slots: Slots = SLOTS) -> Document:
    """Return the document of ``{"id": …, "events": [event, …]}``."""
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
"""The ways to write an event and a document in Python."""


def to_event(value: object, slots: Slots = SLOTS) -> Event:
    """Return the event of an ``Event``, a mapping of its slots, or a text ``verb subj obj mod``."""
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
    """Return the document of a ``Document``, a mapping with its events, or a list of events, named ``id``."""
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


def map_events(given: Any, change: Callable[[Sequence[Any]], Any]) -> Any:
    """Return a document as users write it with its list of events changed."""
    if isinstance(given, Mapping) and isinstance(given.get("events"), list | tuple):
        return {**given, "events": change(given["events"])}
    return change(given) if isinstance(given, list | tuple) else given


def document_to_record(document: Document, slots: Slots = SLOTS) -> dict[str, Any]:
    """Return a document as a mapping, the inverse of ``document_from_record``."""
    return {"id": document.id, "events": [event_to_record(event, slots) for event in document.events]}
