"""`ssdvae fill`: find what is missing in documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ssdvae.commands.console import TableText, chance
from ssdvae.commands.questions import Answers, question
from ssdvae.data.options import ReadOptions
from ssdvae.inference.options import FillOptions
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.commands.coerce import AnyModel, Documents
    from ssdvae.inference.infill import FilledDocument
    from ssdvae.io.progress import Progress


@with_options(ReadOptions, FillOptions)
def fill(
    run: AnyModel,
    documents: Documents,
    *,
    progress: bool | Progress = True,
    **options: Any,
) -> Answers[FilledDocument]:
    """Fill in missing events (null) and words (?) from both sides.

    >>> next(ssdvae.fill("runs/first", [["arrested police suspect", None, "jailed court ?"]])).holes

    ``None`` (``null`` in a file) stands for an event, and ``?`` for a word; typed, ``?`` alone is an event.
    """
    from ssdvae.inference.infill import fill_documents

    kind = FillOptions
    return Answers(run, documents, "filling", fill_documents, kind, options, progress, holes=True)


def tables(documents: Iterable[FilledDocument]) -> Iterator[TableText]:
    """Yield a table of candidates for each hole."""
    for document in documents:
        if not document.holes:
            yield f"{document.id}: nothing is missing", ["event"], [[str(event)] for event in document.events]
        for hole in document.holes:
            frames = ", ".join(f"{frame.name} {chance(frame.probability)}" for frame in hole.frames[:3])
            title = f"{document.id}, event {hole.place + 1}" + (f"; its frame: {frames}" if frames else "")
            rows = [[str(f.event), chance(f.probability), chance(f.before)] for f in hole.fillings]
            yield title, ["may have been", "by both sides", "by what came before"], rows


COMMAND = question(
    fill,
    tables,
    FillOptions,
    (
        "echo 'arrested police ? in' | ssdvae fill --run runs/first",
        "printf 'met she him\\n?\\nleft he' | ssdvae fill --run runs/first --json",
    ),
)
