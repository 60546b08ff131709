"""`ssdvae embed`: embed events and documents as vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ssdvae.commands.console import TableText
from ssdvae.commands.questions import Answers, question
from ssdvae.data.options import ReadOptions
from ssdvae.inference.options import EmbedOptions
from ssdvae.options import with_options

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ssdvae.commands.coerce import AnyModel, Documents
    from ssdvae.inference.embedding import EmbeddedDocument
    from ssdvae.io.progress import Progress


@with_options(ReadOptions, EmbedOptions)
def embed(
    run: AnyModel,
    documents: Documents,
    *,
    progress: bool | Progress = True,
    **options: Any,
) -> Answers[EmbeddedDocument]:
    """Embed documents and each of their events as vectors.

    >>> next(ssdvae.embed("runs/first", "events.jsonl")).vector

    ``encode`` returns the vectors of single events, or of documents, in one array.
    """
    from ssdvae.inference import embedding

    return Answers(run, documents, "embedding", embedding.embed, EmbedOptions, options, progress)


@with_options(EmbedOptions)
def encode(run: AnyModel, inputs: Any, **options: Any) -> NDArray[np.float32]:
    """Return vectors of events, each by itself, or of documents, in the order of the inputs.

    >>> ssdvae.encode("wiki-en", ["arrested police suspect", "detained officer man"])  # 2 vectors
    >>> ssdvae.encode("wiki-en", [["arrested police suspect", "jailed court man"]])  # 1, of a document

    An event is a text, a mapping or an `Event`; a document is a `Document`, a mapping with ``events``, or a
    list of events. A single one has a single vector.
    """
    from ssdvae.commands.coerce import as_model
    from ssdvae.inference import embedding as event_vectors

    chosen = EmbedOptions(**options)
    return event_vectors.encode(as_model(run), inputs, chosen.batch, chosen.normalize)


def tables(documents: Iterable[EmbeddedDocument]) -> Iterator[TableText]:
    """Yield the first dimensions of the vectors of each document and its events."""
    for found in documents:
        shown = [("(document)", found.vector), *zip(found.document.events, found.events, strict=True)]
        rows = [[str(name), " ".join(f"{x:.2f}" for x in vector[:8]) + " …"] for name, vector in shown]
        yield f"{found.document.id}, {len(found.vector)} dimensions", ["event", "vector"], rows


COMMAND = question(
    embed,
    tables,
    EmbedOptions,
    (
        "ssdvae embed events.jsonl --run runs/first --out vectors.parquet",
        "echo 'arrested police suspect in' | ssdvae embed --run runs/first",
    ),
)
