"""Sentences in the place of typed events: their events are extracted, where spaCy and its model are there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from typing import Any

from ssdvae.data.events import SLOTS, Event, Slots, event_from_text, map_events, slot_format
from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.readers.text import has_parser
from ssdvae.inference.lookup import lookup
from ssdvae.io.errors import Malformed
from ssdvae.models.base import Model

SENTENCE_END = re.compile(r"\w[.!?…][\"'”’)]*$")


def is_sentence(text: str, slots: Slots) -> bool:
    """Tell whether a text is a sentence: it ends like one, or has more words than an event."""
    words = text.split()
    ended = len(words) > 1 and SENTENCE_END.search(words[-1]) is not None
    return slots == SLOTS and (ended or len(words) > len(slots))


def read_text(text: str, model: Model, options: ExtractOptions | None = None) -> list[Event]:
    """Return the event of a typed text, or the events of a sentence."""
    slots = model.slots
    if isinstance(event := named(text, model), Event):
        return [event]
    if not is_sentence(text, slots):
        return [event_from_text(text, slots)]
    options = options or ExtractOptions()
    if not has_parser(options.spacy_model):
        return [_typed(text, slots)]
    from ssdvae.extraction.extract import extract_text  # slow to import

    found = extract_text(text, options).events
    return [event.changed(origin=None) for event in found] or [_typed(text, slots)]


def with_names(document: Any, model: Model) -> Any:
    """Return a document as users write it, with typed events of names with blanks as events."""
    return map_events(document, lambda events: [named(event, model) for event in events])


def named(given: Any, model: Model) -> Any:
    """Return the event of a typed text whose words are names with blanks; anything else as it is."""
    return (isinstance(given, str) and lookup(model).find_names(given)) or given


def _typed(text: str, slots: Slots) -> Event:
    """Return the event of a text in which no parser finds one; say what else could be given."""
    try:
        return event_from_text(text, slots)
    except Malformed as error:
        hint = "or a sentence with a verb, if spaCy and en_core_web_sm are installed"
        raise Malformed(error.found, f"{error.expected}, {hint}") from error


def with_sentences(document: Any, model: Model, options: ExtractOptions | None = None) -> Any:
    """Return a document as users write it, with the events of each sentence in its place."""

    def read(events: Sequence[Any]) -> list[Any]:
        found = (read_text(e, model, options) if isinstance(e, str) else [e] for e in events)
        return list(chain.from_iterable(found))

    return map_events(document, read)


def with_format(error: Malformed, slots: Slots) -> str:
    """Return the message of an input error with the format of events."""
    text = str(error)
    return text if " ".join(slots) in text else f"{text}\nan event is typed as: {slot_format(slots)}"
