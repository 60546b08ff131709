"""Events as a person types them: one on each line, and a blank line after each document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ssdvae.data.events import Document, Event, event_from_text
from ssdvae.errors import DataError, Malformed


def read_typed(lines: Iterable[str], name: str = "standard input") -> Iterator[Document]:
    """The documents of some lines, numbered from 1."""
    events: list[Event] = []
    number = 1
    for place, line in enumerate(lines, start=1):
        if line.strip():
            try:
                events.append(event_from_text(line))
            except Malformed as error:
                raise DataError(name, place, error.found, error.expected) from error
        elif events:
            yield Document(str(number), tuple(events))
            events, number = [], number + 1
    if events:
        yield Document(str(number), tuple(events))
