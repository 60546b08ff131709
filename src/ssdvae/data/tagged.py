"""Events as the public text files have them: ``verb subj obj mod <TUP> verb subj obj mod <TUP> …``.

With other slots, one word for each of them. The authors' files of documents and the public cloze files share
this format, and this reading of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ssdvae.data.events import SLOTS, Slots
from ssdvae.errors import Malformed, shorten

EVENT_TAG = "<TUP>"
"""Stands between two events; read in any case."""

NULL = "_NULL_"
"""Stands in an empty slot; read in any case."""


def split_at(words: Sequence[str], tag: str) -> list[list[str]]:
    """The words between the tags, in any case; n tags give n + 1 lists."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word.upper() == tag:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def split_events(words: Sequence[str], slots: Slots = SLOTS, place: str = "") -> list[list[str]]:
    """The words of each event, one a slot; ``place`` says in errors where the events stand."""
    events = split_at(words, EVENT_TAG)
    for number, event in enumerate(events, start=1):
        if len(event) != len(slots):
            found = f"{len(event)} words in event {number}{place}, {shorten(' '.join(event))}"
            raise Malformed(found, f"{len(slots)} words: {' '.join(slots)}")
    return events
