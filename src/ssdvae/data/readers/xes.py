"""Process logs in XES (IEEE 1849): the attributes of each event, and of its trace as ``case:…``.

The file is read as a stream: memory holds one event and the attributes of its trace. A document type is
refused, and with it all entities. An attribute of an attribute is named ``outer.inner``. Lists, containers
and the declarations at the beginning of a log are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ssdvae.io.errors import DataError
from ssdvae.io.files import Report, byte_chunks
from ssdvae.io.limits import LINE, STRING_OVERHEAD

ATTRIBUTES = frozenset({"string", "date", "int", "float", "boolean", "id"})

DEEPEST = 20
"""The deepest nesting of elements; attributes of attributes are at the fourth level."""

NAME = "case:concept:name"


def xes_events(path: Path, report: Report) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line on which each event begins, and its attributes by their keys."""
    log = _Log(path, report)
    fed, most = 0, LINE.bytes
    for chunk in byte_chunks(path):
        log.feed(chunk)
        yield from log.events
        log.events.clear()
        fed += len(chunk)
        if fed - log.parser.CurrentByteIndex > most:
            raise LINE.error(path, log.line, "an element")
    log.feed(b"", last=True)
    yield from log.events


class _Log:
    """The state of the parser, and the events that are complete."""

    def __init__(self, path: Path, report: Report) -> None:
        self.path, self.report = path, report
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = False
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartDoctypeDeclHandler = self.refuse
        self.open: list[str] = []  # elements
        self.keys: list[str] = []  # of the open attributes
        self.passed = 0  # depth of an element that is ignored
        self.traces = 0
        self.trace: dict[str, Any] = {}
        self.event: dict[str, Any] | None = None
        self.begun = 0  # the line of the event
        self.sizes = [0, 0]  # bytes of the trace, and of the event
        self.named = True  # the trace cannot get a name any more
        self.events: list[tuple[int, dict[str, Any]]] = []

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def feed(self, chunk: bytes, last: bool = False) -> None:
        try:
            self.parser.Parse(chunk, last)
        except expat.ExpatError as error:
            found = f"XML that cannot be read ({expat.errors.messages.get(error.code, error)})"
            hint = "the file is cut short, damaged or misnamed: make or download it again"
            raise DataError(self.path, error.lineno, found, "a log in XES", hint) from error
        except (LookupError, ValueError) as error:
            raise DataError(
                self.path, self.line, f"an encoding that is not known ({error})", "UTF-8"
            ) from error

    def refuse(self, *declaration: object) -> None:
        hint = "an entity may stand for any amount of text, or for another file: take the <!DOCTYPE …> out"
        raise DataError(self.path, self.line, "a document type", "a log in XES without one", hint)

    def start(self, name: str, values: dict[str, str]) -> None:
        kind = name.rpartition(" ")[2]
        parent = self.open[-1] if self.open else None
        self.open.append(kind)
        if len(self.open) > DEEPEST:
            raise DataError(self.path, self.line, f"<{kind}> within {DEEPEST} others", "a log in XES")
        if self.passed:
            return
        if parent is None:
            if kind != "log":
                raise DataError(self.path, self.line, f"<{kind[:80]}>", "<log>, as XES has it")
        elif kind == "trace" and parent == "log":
            self.traces += 1
            self.trace, self.sizes[0], self.named = {}, 0, False
        elif kind == "event" and parent in ("trace", "log"):
            self.event, self.sizes[1], self.begun, self.named = {}, 0, self.line, True
        elif kind in ATTRIBUTES and (self.keys or parent in ("trace", "event")):
            self.attribute(kind, values)
        else:
            self.passed = len(self.open)

    def attribute(self, kind: str, values: dict[str, str]) -> None:
        if missing := [name for name in ("key", "value") if name not in values]:
            self.report(DataError(self.path, self.line, f"<{kind}> without a {missing[0]}", "key and value"))
            self.passed = len(self.open)
            return
        self.keys.append(values["key"])
        key, value, of_event = ".".join(self.keys), values["value"], self.event is not None
        self.sizes[of_event] += len(key) + len(value) + 2 * STRING_OVERHEAD
        if sum(self.sizes) > LINE.bytes:
            raise LINE.error(self.path, self.line, "an event or a trace")
        if self.event is not None:
            self.event[key] = value
        elif f"case:{key}" == NAME and self.named:
            # Its events were yielded already, under another name.
            found, expected = "the name of a trace after its events", "it before them, as XES has it"
            raise DataError(self.path, self.line, found, expected)
        else:
            self.trace[f"case:{key}"] = value

    def end(self, name: str) -> None:
        kind = self.open.pop()
        if self.passed:
            if len(self.open) < self.passed:
                self.passed = 0
        elif kind in ATTRIBUTES and self.keys:
            self.keys.pop()
        elif kind == "event" and self.event is not None:
            own = {NAME: f"trace-{self.traces}"} if "trace" in self.open else {}
            self.events.append((self.begun, {**own, **self.trace, **self.event}))
            self.event = None
        elif kind == "trace":
            self.trace = {}
