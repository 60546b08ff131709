"""Extract events from text: into a file, a folder of shards, or one document after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ssdvae.data.events import Document
from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers import Skipped
from ssdvae.data.stream import Chunk, Files, Task, one_by_one, stream
from ssdvae.engine.pool import chunked
from ssdvae.extraction.readers import FORMATS, list_files
from ssdvae.extraction.readers.text import split_text, with_trees
from ssdvae.extraction.rules import extract_document
from ssdvae.extraction.tree import ParsedDocument, RawDocument
from ssdvae.io.errors import UserError
from ssdvae.io.files import Report
from ssdvae.io.progress import SILENT, Progress

CHUNK = 16
"""Documents that a process takes at once."""

CHARACTERS = 100_000
"""Characters of documents that are parsed at once, if there is more than one."""


@dataclass
class ExtractionCounts:
    """The numbers of documents and events of an extraction."""

    documents: int = 0
    events: int = 0
    resumed: int = 0  # documents that an earlier run had extracted
    labels: int = 0  # frames that the texts have
    labels_without_event: int = 0
    events_without_label: int = 0  # in texts with labels
    skipped: Skipped = field(default_factory=lambda: Skipped(unit="document"))


def extract(
    sources: Sequence[Path],
    out: Path,
    options: ExtractOptions | None = None,
    *,
    format: str | None = None,
    progress: Progress = SILENT,
) -> ExtractionCounts:
    """Write the events of all documents, in their order. A bad document is counted and skipped."""
    options = options or ExtractOptions()
    files = _check_files(sources, options, format)
    skipped = Skipped(unit="document")
    done = stream(
        Files(files, [path for path, _, _ in files], sources, partial(_read, options=options)),
        partial(_extract_chunk, options=options),
        out,
        options,
        about={"formats": [choice for _, _, choice in files]},
        chunk=CHUNK,
        skip_bad=skipped,
        progress=progress,
        label="extracting",
    )
    return ExtractionCounts(**done.counts, resumed=done.resumed, skipped=skipped)


def extract_documents(
    sources: Sequence[Path], options: ExtractOptions, skipped: Skipped, *, format: str | None = None
) -> Iterator[Document]:
    """Yield the documents with their events, in this process. A bad document is counted and skipped."""
    for place, content in _read(_check_files(sources, options, format), skipped, options):
        try:
            yield _extract(content, options)[0]
        except UserError as error:
            skipped.add(str(error))
        except Exception as error:  # a parser may raise anything, and one document must not cost all
            skipped.add(f"{place}: {type(error).__name__}: {error}")


def extract_text(text: str, options: ExtractOptions) -> Document:
    """Return the events of a text."""
    [parsed] = with_trees([split_text("text", text)], options)
    return extract_document(parsed, options)


File = tuple[Path, str, str]
"""A file: its path, its name for the user, and its format."""


def _check_files(sources: Sequence[Path], options: ExtractOptions, format: str | None) -> list[File]:
    """Return the files of the sources; raise if something that reads them is not installed."""
    files = list_files(sources, format)
    for choice in dict.fromkeys(choice for _, _, choice in files):
        FORMATS[choice].check(options)
    return files


def _read(files: Sequence[File], report: Report, options: ExtractOptions) -> Iterator[Task]:
    """Yield the raw documents of all files."""
    for path, name, choice in files:
        for raw in FORMATS[choice].read(path, options, report):
            # A document that is named after its file gets the path: folders have files of one name.
            own, *place = raw.id.rsplit(":", 1)
            named = replace(raw, id=":".join([name, *place])) if own == path.name else raw
            yield f"{path}, document {named.id!r}", (choice, named)


Content = tuple[str, RawDocument] | ParsedDocument
"""A document as it stands in its file, with its format; or with its trees."""


def _extract_chunk(tasks: Sequence[Task], options: ExtractOptions) -> Chunk:
    """Extract the events of some documents: spaCy reads several at once."""

    def parsed() -> Iterator[Task]:
        for some in chunked(tasks, CHARACTERS, lambda task: len(str(task[1][1].content))):
            try:
                documents = list(_parse([content for _, content in some], options))
            except Exception:  # of one document; without its trees, each is parsed alone
                yield from some
            else:
                yield from zip((place for place, _ in some), documents, strict=True)

    return one_by_one(parsed(), partial(_extract, options=options))


def _parse(contents: Iterable[tuple[str, RawDocument]], options: ExtractOptions) -> Iterator[ParsedDocument]:
    return with_trees([FORMATS[choice].parse(raw, options) for choice, raw in contents], options)


def _extract(content: Content, options: ExtractOptions) -> tuple[Document, Mapping[str, int]]:
    parsed = content if isinstance(content, ParsedDocument) else next(_parse([content], options))
    document = extract_document(parsed, options)
    return document, _count_labels(parsed, document)


def _count_labels(parsed: ParsedDocument, document: Document) -> dict[str, int]:
    """Count the labels of a text, and what has no counterpart: labels and events."""
    if not parsed.mentions:
        return {}
    verbs = [(event.origin.start, event.origin.end) for event in document.events if event.origin]
    return {
        "labels": len(parsed.mentions),
        "labels_without_event": sum(not any(m.covers(*verb) for verb in verbs) for m in parsed.mentions),
        "events_without_label": sum(event.frame is None for event in document.events),
    }
