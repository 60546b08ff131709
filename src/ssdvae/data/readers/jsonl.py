"""JSON lines: one document per line, or one event, which is then a document by itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ssdvae.data.events import SLOTS, Document, Slots, document_from_record, document_to_record
from ssdvae.io.errors import DataError, Malformed
from ssdvae.io.files import (
    AnyPath,
    Report,
    atomic_write,
    byte_lines,
    decode_line,
    open_text_for_writing,
    stop_at_first_error,
    text_lines,
)
from ssdvae.io.records import from_json, to_json


def read_jsonl(path: Path, report: Report, slots: Slots = SLOTS) -> Iterator[Document]:
    """Yield the documents of a file; blank lines are ignored."""
    return parse_lines(path, byte_lines(path), report, slots)


def parse_lines(
    path: Path, lines: Iterable[tuple[int, bytes]], report: Report, slots: Slots = SLOTS
) -> Iterator[Document]:
    """Yield the documents of some lines of a file."""
    for number, line in lines:
        try:
            text = decode_line(path, number, line)
            if not text.strip():
                continue
            document = parse_line(path, number, text, slots)
        except DataError as error:
            report(error)
        else:
            yield document


def filled_lines(path: AnyPath, report: Report = stop_at_first_error) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of each line that is not blank."""
    return ((number, text) for number, text in text_lines(path, report) if text.strip())


def parse_line(path: Path, number: int, text: str, slots: Slots = SLOTS, hole: str | None = None) -> Document:
    """Return the document of a line.

    ``null`` among its events is an error, or stands for one whose head is ``hole``.
    """
    try:
        return _document(text, number, slots, hole)
    except Malformed as error:
        # The beginning of JSON that is spread over many lines.
        spread = number == 1 and text.strip() in ("[", "{")
        hint = "is this one JSON value over many lines? jq -c '.[]' turns a list into lines"
        raise DataError(path, number, error.found, error.expected, hint if spread else "") from error


def _document(text: str, number: int, slots: Slots, hole: str | None) -> Document:
    record = parse_json(text)
    if hole is not None and isinstance(record, dict) and isinstance(record.get("events"), list):
        record["events"] = [{slots[0]: hole} if event is None else event for event in record["events"]]
    if isinstance(record, dict) and slots[0] in record and "events" not in record:
        record = {"id": record.get("id", f"line-{number}"), "events": [record]}
    return document_from_record(record, slots)


def parse_json(text: str) -> Any:
    """Return the value of a line; raise ``Malformed`` if it is not JSON, or could not be written again."""
    value = from_json(text)
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            found = "half of a surrogate pair (an escape such as \\ud800)"
            raise Malformed(found, "whole characters") from error
    return value


class Title(NamedTuple):
    """The title of a document, and the address of its text, empty if it has none."""

    title: str
    url: str


def read_titles(path: Path) -> dict[str, Title]:
    """Return the titles of the documents of a file that have one; those of Wikipedia have an address too."""
    found = {}
    for _, text in filled_lines(path, lambda error: None):
        try:
            match parse_json(text):
                case {"id": str(id), "title": str(title), **rest}:
                    page = re.fullmatch(r"enwiki-(\d+)", id)
                    url = f"https://en.wikipedia.org/?curid={page[1]}" if page else str(rest.get("url"))
                    found[id] = Title(title, url if url.startswith(("https://", "http://")) else "")
        except Malformed:
            continue  # those who read the documents are told
    return found


def write_jsonl(path: AnyPath, documents: Iterable[Document], slots: Slots = SLOTS) -> int:
    """Write documents and return their number. If anything fails, an old file stays as it was."""
    return write_records(path, (document_to_record(document, slots) for document in documents))


def write_records(path: AnyPath, records: Iterable[dict[str, Any]]) -> int:
    """Write records and return their number. If anything fails, an old file stays as it was."""
    count = 0
    with atomic_write(path) as temporary, open_text_for_writing(temporary) as file:
        for record in records:
            file.write(to_json(record, ensure_ascii=False) + "\n")
            count += 1
    return count
