"""Answers about documents: one after another, or all of them into a file by many processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from ssdvae.answers.files import answer_files
from ssdvae.answers.table import TABLES, Answer, answer_file, write_answers
from ssdvae.answers.unknown import Familiarity
from ssdvae.api.given import Documents, given_documents, said
from ssdvae.api.signatures import AnyPath
from ssdvae.api.training import as_model, folder_of
from ssdvae.config import StreamSettings
from ssdvae.data.events import HOLE
from ssdvae.data.readers import Skipped
from ssdvae.errors import UserError
from ssdvae.models.base import Model
from ssdvae.progress import SILENT, Progress, resolve, track

log = logging.getLogger("ssdvae.api")

Found = TypeVar("Found", bound=Answer)


class Answers(Iterator[Found], Generic[Found]):
    """What a question gives for each document, when it is asked for.

    ``ask(model, documents, **asked)`` is the question. With ``holes``, something may be missing in documents.
    """

    def __init__(
        self,
        run: Model | AnyPath | None,
        documents: Documents,
        ask: Callable[..., Iterable[Found]],
        asked: Mapping[str, Any],
        label: str,
        *,
        format: str | None,
        skip_bad: bool,
        progress: bool | Progress,
        model: Model | None = None,
        holes: bool = False,
    ) -> None:
        self.model = as_model(run) if model is None else model
        self.folder = None if isinstance(run, Model) else folder_of(run)
        self.documents, self.format, self.hole = documents, format, HOLE if holes else None
        self.ask: partial[Iterable[Found]] = partial(ask, **asked)
        self.label = label
        self.skipped = Skipped() if skip_bad else None
        self.progress = resolve(progress) if isinstance(documents, str | Path) else SILENT
        read = given_documents(documents, format, self.skipped, self.model, self.hole)
        self.found = iter(self.ask(self.model, said(track(self.progress, read, label), self.skipped)))

    def __next__(self) -> Found:
        return next(self.found)

    def written(self, out: Path, settings: StreamSettings) -> int:
        """Write all of them; returns how many. Documents of a file are shared by many processes."""
        if not isinstance(self.documents, str | Path) or out.suffix in TABLES:
            return write_one_by_one(out, self, settings)
        done = answer_files(
            self.model,
            self.folder,
            Path(self.documents),
            out if not out.suffix else answer_file(out),
            self.ask,
            settings,
            format=self.format,
            skip_bad=self.skipped,
            progress=self.progress,
            label=self.label,
            hole=self.hole,
        )
        if self.skipped is not None:
            log.info(str(self.skipped))
        Familiarity.counted(done.counts).warn()
        return done.counts["documents"]


def write_one_by_one(out: Path, answers: Answer | Iterable[Answer], settings: StreamSettings) -> int:
    """Write answers by this process alone; returns how many."""
    usual = StreamSettings().values()
    if given := [name for name, value in settings.values().items() if value != usual[name]]:
        raise UserError(
            f"--{given[0].replace('_', '-')} is for documents of a file, and answers as JSON lines or shards"
        )
    return write_answers(out, answers)
