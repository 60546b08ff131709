"""The files of the paper's authors: events in ``X_TUP.txt``, their frames in ``X_frame.txt``.

A line of the first is a document, ``verb subj obj mod <TUP> verb subj obj mod <TUP> …``; the same line of
the second has one frame for each event. Both files may be compressed (.gz).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

from ssdvae.data.events import SLOTS, Document, Event, Slots, event_from_record
from ssdvae.data.tagged import EVENT_TAG, NULL, split_events
from ssdvae.errors import DataError, Malformed
from ssdvae.files import Report, byte_lines, decode_line

NO_WORD = (NULL, "NONE")
NO_FRAME = "__NOFRAME__"


def read_official(path: Path, report: Report, slots: Slots = SLOTS) -> Iterator[Document]:
    """The documents of a ``_TUP`` file, named by their lines: ``train_0.6:17``."""
    frame_path = frame_file(path)
    stem = _part(path)[0]
    ended = (0, b"")
    # By bytes: a line that cannot be decoded must not put the two files out of step.
    for events, frames in zip_longest(byte_lines(path), byte_lines(frame_path), fillvalue=ended):
        number = max(events[0], frames[0])
        if not events[1].strip() and not frames[1].strip():
            continue
        if ended in (events, frames):
            # Never passed over: with a line lost somewhere, every frame so far is in doubt.
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
    """The file with the frames, beside the one with the events; one of the two may be compressed."""
    stem, rest = _part(path)
    looked_for = path.with_name(f"{stem}_frame{rest}")
    other = looked_for.with_name(
        looked_for.name[:-3] if rest.lower().endswith(".gz") else looked_for.name + ".gz"
    )
    for candidate in (looked_for, other):
        if candidate.exists():
            return candidate
    hint = "the frames are required: one line per document, one frame (or __NOFRAME__) per event"
    raise DataError(path, None, f"no frame file {looked_for}", "one beside the file of events", hint)


def _part(path: Path) -> tuple[str, str]:
    """What stands before and after ``_TUP`` in the name of a file."""
    parts = re.fullmatch(r"(.*)_TUP(.*)", path.name, re.IGNORECASE | re.DOTALL)
    if parts is None:
        raise DataError(path, None, f"the name {path.name}", "a name such as train_0.6_TUP.txt")
    return parts[1], parts[2]


def _events(words: list[str], frames: list[str], frame_name: str, slots: Slots) -> tuple[Event, ...]:
    if words and words[-1].upper() == EVENT_TAG:
        words = words[:-1]  # the tag may also close the line
    events = [
        {slot: _word(word) for slot, word in zip(slots, event, strict=True)}
        for event in (split_events(words, slots) if words else ())
    ]
    if len(frames) != len(events):
        found = f"{len(events)} events, but {len(frames)} frames on the same line of {frame_name}"
        raise Malformed(found, "a frame for each event")
    return tuple(
        event_from_record({**event, "frame": None if frame == NO_FRAME else frame}, slots)
        for event, frame in zip(events, frames, strict=True)
    )


def _word(word: str) -> str | None:
    return None if word.upper() in NO_WORD else word.lower()
