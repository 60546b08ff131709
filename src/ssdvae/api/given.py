"""Events and documents as people give them: a file, what is typed, or Python's own."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ssdvae.answers.fill import with_holes
from ssdvae.answers.unknown import Familiarity, warned
from ssdvae.api.signatures import AnyPath
from ssdvae.data.events import AnyDocument, AnyEvent, Document, Event, Slots, to_document, to_event
from ssdvae.data.readers import Skipped, read_documents
from ssdvae.data.readers.typed import read_typed
from ssdvae.data.stream import document_files, found_documents
from ssdvae.errors import Malformed, UserError, shorten
from ssdvae.files import stop_at_first_error
from ssdvae.models.base import Model

log = logging.getLogger("ssdvae.api")

Documents = AnyPath | IO[str] | IO[bytes] | AnyDocument | Iterable[AnyDocument]
"""A file, an open file of typed events, one document, or some of them."""


def given_events(given: AnyEvent | Sequence[AnyEvent], model: Model, *, warn: bool = True) -> list[Event]:
    """One event or several; if most of their words are unknown to the model, a warning says so."""
    some = [given] if isinstance(given, str | Event | Mapping) else given
    try:
        events = [to_event(event, model.slots) for event in some]
    except Malformed as error:
        raise UserError(f"a seed event: {error}") from error
    if warn:
        Familiarity.of(model, [Document("", tuple(events))]).warn()
    return events


def given_documents(
    given: Documents, format: str | None, skipped: Skipped | None, model: Model, hole: str | None = None
) -> Iterator[Document]:
    """Documents one after another; ``null`` among their events is an error, or ``hole`` stands for it.

    If most of their words are unknown to the model, a warning says so.
    """
    return warned(model, _read(given, format, skipped, model, hole))


def _read(
    given: Documents, format: str | None, skipped: Skipped | None, model: Model, hole: str | None
) -> Iterator[Document]:
    if isinstance(given, str | Path):
        if hole is not None:
            report = stop_at_first_error if skipped is None else skipped
            files = document_files(Path(given), format, model.slots, model.columns)
            return found_documents(files, report, model.slots, hole)
        return read_documents(given, format, skipped, model.slots, model.columns)
    if isinstance(given, io.TextIOBase | io.BufferedIOBase):
        return read_typed(given, slots=model.slots)
    if isinstance(given, Document | Mapping):
        given = [given]
    if not isinstance(given, Iterable):
        raise UserError(f"found {shorten(given)} as documents, expected a file or some documents")
    return _converted(given, model.slots, hole is not None)


def said(documents: Iterable[Document], skipped: Skipped | None) -> Iterator[Document]:
    """The same documents; after the last one, what was skipped is logged."""
    yield from documents
    if skipped is not None:
        log.info(str(skipped))


def _converted(given: Iterable[Any], slots: Slots, holes: bool) -> Iterator[Document]:
    for number, document in enumerate(given, start=1):
        try:
            yield to_document(with_holes(document) if holes else document, str(number), slots)
        except Malformed as error:
            raise UserError(f"document {number}: {error}") from error
