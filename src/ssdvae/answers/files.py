"""What a model says of the documents of a file, or of a folder of shards, by many processes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from ssdvae.answers.unknown import Familiarity
from ssdvae.config import StreamSettings
from ssdvae.data.events import Document
from ssdvae.data.readers import Skipped
from ssdvae.data.stream import Chunk, Streamed, Task, document_files, found_document, stream
from ssdvae.errors import UserError
from ssdvae.files import sha256
from ssdvae.models.base import EventModel, fastest_device
from ssdvae.progress import SILENT, Progress
from ssdvae.records import to_json

CHUNK = 1000
"""Documents that a process takes at once."""

Answer = Callable[[EventModel, Sequence[Document]], Iterable[Mapping[str, Any]]]
"""A record for each document, in their order. It is pickled for the processes that share the work."""


def answer_files(
    model: EventModel | Path,
    source: Path,
    out: Path,
    answer: Answer,
    settings: StreamSettings,
    *,
    about: Mapping[str, Any],
    format: str | None = None,
    skip_bad: Skipped | None = None,
    progress: Progress = SILENT,
    label: str,
) -> Streamed:
    """Write the answers of a model, or of the one in a folder, in the order of the documents.

    ``about`` says what the answers depend on beside the model and the documents.
    """
    digest = _fingerprint(model)
    loaded = _loaded(model, digest) if isinstance(model, Path) else model
    return stream(
        document_files(source, format, loaded.slots, loaded.columns),
        _Answering(model, digest, answer),
        out,
        settings,
        about={**about, "format": format, "model": digest},
        chunk=CHUNK,
        skip_bad=skip_bad,
        progress=progress,
        label=label,
        gpu=fastest_device().type != "cpu",
    )


@dataclass(frozen=True)
class _Answering:
    """The work of one process; a model that is named by its folder is loaded there, once."""

    model: EventModel | Path
    digest: str
    answer: Answer

    def __call__(self, tasks: Sequence[Task]) -> Chunk:
        model = _loaded(self.model, self.digest) if isinstance(self.model, Path) else self.model
        documents, errors = [], []
        for _, found in tasks:
            try:
                documents.append(found_document(found, model.slots))
            except UserError as error:
                errors.append(str(error))
        with _one_thread():
            records = self.answer(model, documents)
            lines = tuple(to_json(dict(record), ensure_ascii=False) for record in records)
        counts = {"documents": len(lines), "events": sum(len(document.events) for document in documents)}
        counts |= Familiarity.of(model, documents).counts()
        return Chunk(len(tasks), lines, counts, tuple(errors))


@lru_cache(1)
def _loaded(folder: Path, digest: str) -> EventModel:
    """The model in a folder, read once; by its fingerprint, since another may come to be there."""
    return EventModel.read(folder).on_fastest_device()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Sums of numbers may depend on how many threads share them, and the answers must not."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _fingerprint(model: EventModel | Path) -> str:
    if isinstance(model, Path):
        return sha256(model / "model.safetensors")
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
