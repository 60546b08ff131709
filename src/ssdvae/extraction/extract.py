"""From files of text to a file of events, or to a folder of shards."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ssdvae.config import ExtractSettings
from ssdvae.data.events import Document
from ssdvae.data.readers import Skipped
from ssdvae.data.stream import Files, Task, one_by_one, stream
from ssdvae.extraction.parsed import Raw, to_document
from ssdvae.extraction.readers import FORMATS, list_files
from ssdvae.files import Report
from ssdvae.progress import SILENT, Progress

CHUNK = 16
"""Documents that a process takes at once."""


@dataclass
class Extracted:
    """What an extraction did."""

    documents: int = 0
    events: int = 0
    resumed: int = 0
    skipped: Skipped = field(default_factory=lambda: Skipped(unit="document"))


def extract(
    sources: Sequence[Path],
    out: Path,
    settings: ExtractSettings | None = None,
    *,
    format: str | None = None,
    progress: Progress = SILENT,
) -> Extracted:
    """Write the events of all documents, in their order. A bad document is counted and passed over."""
    settings = settings or ExtractSettings()
    files = list_files(sources, format)
    choices = [choice for _, _, choice in files]
    for choice in dict.fromkeys(choices):
        FORMATS[choice].check(settings)
    skipped = Skipped(unit="document")
    done = stream(
        Files(files, [path for path, _, _ in files], sources, partial(_tasks, settings=settings)),
        partial(one_by_one, work=partial(_understood, settings=settings)),
        out,
        settings,
        about={"formats": choices},
        chunk=CHUNK,
        skip_bad=skipped,
        progress=progress,
        label="extracting",
    )
    return Extracted(**done.counts, resumed=done.resumed, skipped=skipped)


def _tasks(
    files: Sequence[tuple[Path, str, str]], report: Report, settings: ExtractSettings
) -> Iterator[Task]:
    """The documents of all files, as quickly as they can be found."""
    for path, name, choice in files:
        for raw in FORMATS[choice].read(path, settings, report):
            # A document that is named by its file is named by the way to it: folders have files of one name.
            named = replace(raw, id=name) if raw.id == path.name else raw
            yield f"{path}, document {named.id!r}", (choice, named)


def _understood(found: tuple[str, Raw], settings: ExtractSettings) -> tuple[Document, Mapping[str, int]]:
    choice, raw = found
    return to_document(FORMATS[choice].parse(raw, settings), settings), {}
