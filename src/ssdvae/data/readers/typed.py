"""Events as a person types them: one on each line, and a blank line after each document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO

from ssdvae.data.events import Document, Event, event_from_text
from ssdvae.errors import DataError, Malformed
from ssdvae.files import decode_line, lines_of
from ssdvae.limits import LINE, Held


def read_typed(file: IO[bytes], name: str = "standard input") -> Iterator[Document]:
    """The documents of a stream in UTF-8, numbered from 1."""
    document = Held(name, "a document", LINE)
    events: list[Event] = []
    number = 1
    for place, raw in lines_of(file, name):
        line = decode_line(name, place, raw)
        if line.strip():
            if not events:
                document.begin(place)
            try:
                events.append(event_from_text(document.add(line)))
            except Malformed as error:
                raise DataError(name, place, error.found, error.expected) from error
        elif events:
            yield Document(str(number), tuple(events))
            events, number = [], number + 1
    if events:
        yield Document(str(number), tuple(events))
