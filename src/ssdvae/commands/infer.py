"""`ssdvae infer`: infer the frames of documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ssdvae.commands.console import TableText
from ssdvae.commands.questions import Answers, question
from ssdvae.data.options import ReadOptions
from ssdvae.inference.options import InferOptions
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.commands.coerce import AnyModel, Documents
    from ssdvae.inference.output import Candidate
    from ssdvae.inference.posterior import InferredDocument
    from ssdvae.io.progress import Progress


@with_options(ReadOptions, InferOptions)
def infer(
    run: AnyModel,
    documents: Documents,
    *,
    progress: bool | Progress = True,
    **options: Any,
) -> Answers[InferredDocument]:
    """Infer the frame of each event of documents.

    >>> list(ssdvae.infer("runs/first", "events.jsonl"))
    >>> list(ssdvae.infer("runs/first", [["arrested police suspect in", {"verb": "jailed"}]]))

    A document is a `Document`, a mapping such as ``{"id": "a", "events": […]}``, or a list of events; an
    event is an `Event`, a mapping such as ``{"verb": "met", "subj": "she"}``, or a text such as
    ``"met she him at"``, with - for an empty slot. An open file is read as typed events, one on each
    line and a blank line after each document. ``format`` and ``skip_bad`` are for files, as in `prepare`.
    """
    from ssdvae.inference.posterior import infer_documents

    return Answers(run, documents, "inferring", infer_documents, InferOptions, options, progress)


def tables(documents: Iterable[InferredDocument]) -> Iterator[TableText]:
    """Yield a table for each document."""
    return map(table, documents)


def table(document: InferredDocument) -> TableText:
    """Return the inferred frames, beside the known ones if there are any; ``=`` marks an observed one."""
    known = any(event.gold for event in document.events)
    others = max((len(event.frames) - 1 for event in document.events), default=0)
    head = ["event", *(["known frame"] if known else []), "inferred frame", "", *["or", ""] * others]
    rows = [
        [
            str(event.event),
            *([f"{event.gold or '–'}{' =' if event.observed else ''}"] if known else []),
            *([] if event.frame else ["unknown", ""]),
            *(text for frame in event.frames[: others + bool(event.frame)] for text in _cells(frame)),
        ]
        for event in document.events
    ]
    unknown = f", unknown words: {len(document.unknown_words)}" if document.unknown_words else ""
    return f"{document.id}{unknown}", head, rows


def _cells(frame: Candidate) -> tuple[str, str]:
    return frame.name, f"{frame.probability:.0%}"


COMMAND = question(
    infer,
    tables,
    InferOptions,
    (
        "ssdvae infer events.jsonl --run runs/first --out inferred.jsonl",
        "echo 'arrested police suspect in' | ssdvae infer --run runs/first --json",
    ),
)
