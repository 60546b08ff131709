"""Events as a person types them: one on each line, and a blank line after each document."""

from __future__ import annotations

import io
from collections.abc import Iterator

from ssdvae.data.events import SLOTS, Document, Event, Slots, event_from_text
from ssdvae.errors import DataError, Malformed
from ssdvae.files import HasLines, decode_line, lines_of
from ssdvae.limits import LINE, Held


class _Encoded:
    """A stream of text, line by line in UTF-8; what it has given already is not given again."""

    def __init__(self, file: io.TextIOBase) -> None:
        self.file = file

    def readline(self, size: int) -> bytes:
        return self.file.readline(size).encode("utf-8", "surrogatepass")


def read_typed(
    file: HasLines | io.TextIOBase, name: str = "standard input", slots: Slots = SLOTS
) -> Iterator[Document]:
    """The documents of a stream, in UTF-8 if it is one of bytes, numbered from 1."""
    lines = lines_of(_Encoded(file) if isinstance(file, io.TextIOBase) else file, name)
    document = Held(name, "a document", LINE)
    events: list[Event] = []
    number = 1
    for place, raw in lines:
        line = decode_line(name, place, raw)
        if line.strip():
            if not events:
                document.begin(place)
            try:
                events.append(event_from_text(document.add(line), slots))
            except Malformed as error:
                raise DataError(name, place, error.found, error.expected) from error
        elif events:
            yield Document(str(number), tuple(events))
            events, number = [], number + 1
    if events:
        yield Document(str(number), tuple(events))
