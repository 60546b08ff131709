"""Events in plain text: the files of the paper's authors, and events that a person types.

The authors' files have a document on each line of ``X_TUP.txt``, ``verb subj obj mod <TUP> verb subj …``, and
one frame for each event on the same line of ``X_frame.txt``. Both may be compressed (.gz). The public cloze
files have events in the same format. Typed events are one on each line, with a blank line after each
document.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from ssdvae.data.events import SLOTS, Document, Event, Slots, event_from_record, event_from_text
from ssdvae.io.errors import DataError, Malformed, locate_errors, shorten
from ssdvae.io.files import HasLines, Report, byte_lines, decode_line, numbered_lines
from ssdvae.io.limits import LINE, SizeCounter

EVENT_TAG = "<TUP>"
"""Separates two events; read in any case."""

NULL = "_NULL_"
"""Stands in an empty slot; read in any case."""

NO_WORD = (NULL, "NONE")
NO_FRAME = "__NOFRAME__"


def split_at(words: Sequence[str], tag: str) -> list[list[str]]:
    """Return the words between the tags, which are read in any case; n tags give n + 1 lists."""
    parts: list[list[str]] = [[]]
    for word in words:
        if word.upper() == tag:
            parts.append([])
        else:
            parts[-1].append(word)
    return parts


def split_events(words: Sequence[str], slots: Slots = SLOTS, place: str = "") -> list[list[str]]:
    """Return the words of each event, one per slot; ``place`` says in errors where the events stand."""
    events = split_at(words, EVENT_TAG)
    for number, event in enumerate(events, start=1):
        if len(event) != len(slots):
            found = f"{len(event)} words in event {number}{place}, {shorten(' '.join(event))}"
            raise Malformed(found, f"{len(slots)} words: {' '.join(slots)}")
    return events


def read_official(path: Path, report: Report, slots: Slots = SLOTS) -> Iterator[Document]:
    """Yield the documents of a ``_TUP`` file, named by their lines: ``train_0.6:17``."""
    frame_path = frame_file(path)
    stem = _split_name(path)[0]
    ended = (0, b"")
    # By bytes: a line that cannot be decoded must not put the two files out of step.
    for events, frames in zip_longest(byte_lines(path), byte_lines(frame_path), fillvalue=ended):
        number = max(events[0], frames[0])
        if not events[1].strip() and not frames[1].strip():
            continue
        if ended in (events, frames):
            # Never skipped: with a line lost somewhere, every frame so far is in doubt.
            short, long = (path, frame_path) if events == ended else (frame_path, path)
            expected = f"as many lines as in {long.name}, which has a document there"
            raise DataError(short, number, "the end of the file", expected)
        try:
            words = decode_line(path, number, events[1]).split()
            names = decode_line(frame_path, number, frames[1]).split()
            document = Document(f"{stem}:{number}", _events(words, names, frame_path.name, slots))
        except Malformed as error:
            report(DataError(path, number, error.found, error.expected))
        except DataError as error:
            report(error)
        else:
            yield document


def frame_file(path: Path) -> Path:
    """Return the file with the frames, beside the one with the events; one of the two may be compressed."""
    stem, rest = _split_name(path)
    looked_for = path.with_name(f"{stem}_frame{rest}")
    other = looked_for.with_name(
        looked_for.name[:-3] if rest.lower().endswith(".gz") else looked_for.name + ".gz"
    )
    for candidate in (looked_for, other):
        if candidate.exists():
            return candidate
    hint = "the frames are required: one line per document, one frame (or __NOFRAME__) per event"
    raise DataError(path, None, f"no frame file {looked_for}", "one beside the file of events", hint)


def _split_name(path: Path) -> tuple[str, str]:
    """Return what stands before and after ``_TUP`` in the name of a file."""
    parts = re.fullmatch(r"(.*)_TUP(.*)", path.name, re.IGNORECASE | re.DOTALL)
    if parts is None:
        raise DataError(path, None, f"the name {path.name}", "a name such as train_0.6_TUP.txt")
    return parts[1], parts[2]


def _events(words: list[str], frames: list[str], frame_name: str, slots: Slots) -> tuple[Event, ...]:
    if words and words[-1].upper() == EVENT_TAG:
        words = words[:-1]  # the tag may also close the line
    events = split_events(words, slots) if words else []
    if len(frames) != len(events):
        found = f"{len(events)} events, but {len(frames)} frames on the same line of {frame_name}"
        raise Malformed(found, "a frame for each event")
    found_events = []
    for event, frame in zip(events, frames, strict=True):
        cells = [None if word.upper() in NO_WORD else word.lower() for word in event]
        record = {**dict(zip(slots, cells, strict=True)), "frame": None if frame == NO_FRAME else frame}
        found_events.append(event_from_record(record, slots))
    return tuple(found_events)


class _Encoded:
    """A stream of text as lines in UTF-8."""

    def __init__(self, file: io.TextIOBase) -> None:
        self.file = file

    def readline(self, size: int) -> bytes:
        return self.file.readline(size).encode("utf-8", "surrogatepass")


def read_typed(
    file: HasLines | io.TextIOBase,
    name: str = "standard input",
    slots: Slots = SLOTS,
    parse: Callable[[str, Slots], Sequence[Event]] = lambda text, slots: [event_from_text(text, slots)],
) -> Iterator[Document]:
    """Yield the typed documents of a stream, numbered from 1; ``parse`` gives the events of a line."""
    lines = numbered_lines(_Encoded(file) if isinstance(file, io.TextIOBase) else file, name)
    document = SizeCounter(name, "a document", LINE)
    events: list[Event] = []
    number = 1
    for place, raw in lines:
        line = decode_line(name, place, raw)
        if line.strip():
            if not events:
                document.begin(place)
            with locate_errors(name, place):
                events += parse(document.add(line), slots)
        elif events:
            yield Document(str(number), tuple(events))
            events, number = [], number + 1
    if events:
        yield Document(str(number), tuple(events))
