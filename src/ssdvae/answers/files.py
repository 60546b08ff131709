"""What a model says of the documents of a file, or of a folder of shards, by many processes."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ssdvae.answers.unknown import Familiarity
from ssdvae.config import StreamSettings
from ssdvae.data.readers import Skipped
from ssdvae.data.stream import Chunk, Streamed, Task, document_files, found_document, stream
from ssdvae.errors import UserError
from ssdvae.models.base import Model, fastest_device
from ssdvae.progress import SILENT, Progress
from ssdvae.records import to_json

CHUNK = 1000
"""Documents that a process takes at once."""

Ask = partial[Any]
"""Of a model and some documents: an answer for each, in their order. What it is asked with is in it."""


def answer_files(
    model: Model,
    folder: Path | None,
    source: Path,
    out: Path,
    ask: Ask,
    settings: StreamSettings,
    *,
    label: str,
    format: str | None = None,
    skip_bad: Skipped | None = None,
    progress: Progress = SILENT,
    hole: str | None = None,
) -> Streamed:
    """Write the answers of a model in the order of the documents.

    Other processes load it from its ``folder``, if it has one. ``hole`` stands for an event that is missing.
    """
    asked = hashlib.sha256(repr(sorted(ask.keywords.items())).encode()).hexdigest()
    return stream(
        document_files(source, format, model.slots, model.columns),
        _Answering(model, folder, ask, hole),
        out,
        settings,
        about={"question": label, "asked": asked, "format": format, "model": _fingerprint(model)},
        chunk=CHUNK,
        skip_bad=skip_bad,
        progress=progress,
        label=label,
        gpu=fastest_device().type != "cpu",
    )


@dataclass
class _Answering:
    """The work of one process. A model that is in a folder is not sent there: it is read, once."""

    model: Model | None
    folder: Path | None
    ask: Ask
    hole: str | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "model": self.model if self.folder is None else None}

    def __call__(self, tasks: Sequence[Task]) -> Chunk:
        if self.model is None:
            assert self.folder is not None
            self.model = Model.read(self.folder).on_fastest_device()
        documents, errors = [], []
        for _, found in tasks:
            try:
                documents.append(found_document(found, self.model.slots, self.hole))
            except UserError as error:
                errors.append(str(error))
        with _one_thread():
            answers = self.ask(self.model, documents)
            lines = tuple(to_json(answer.to_record(), ensure_ascii=False) for answer in answers)
        counts = {"documents": len(lines), "events": sum(len(document.events) for document in documents)}
        counts |= Familiarity.of(self.model, documents).counts()
        return Chunk(len(tasks), lines, counts, tuple(errors))


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Sums of numbers may depend on how many threads share them, and the answers must not."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _fingerprint(model: Model) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        digest.update(name.encode() + value.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
