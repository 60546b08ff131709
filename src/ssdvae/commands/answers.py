"""Answers about documents: one after another, or all of them into a file by many processes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ssdvae.commands import AnyPath
from ssdvae.commands.coerce import AnyModel, Documents, as_documents, as_model, folder_of, log_skipped
from ssdvae.data.events import HOLE
from ssdvae.data.options import StreamOptions
from ssdvae.data.readers import Skipped
from ssdvae.inference import output as tables
from ssdvae.inference.oov import OovStats
from ssdvae.inference.output import TABLES, Answer, answer_file, answer_files
from ssdvae.io.errors import UserError
from ssdvae.io.progress import SILENT, Progress, resolve, track
from ssdvae.models.base import Model
from ssdvae.options import with_options

if TYPE_CHECKING:
    import pandas

log = logging.getLogger("ssdvae")

Found = TypeVar("Found", bound=Answer)


class Answers(Iterator[Found], Generic[Found]):
    """Answers to a question about documents, computed when they are asked for.

    ``ask(model, documents, **asked)`` is the question. With ``holes``, something may be missing in documents.
    """

    def __init__(
        self,
        run: AnyModel,
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
        read = as_documents(documents, format, self.skipped, self.model, self.hole)
        self.found = iter(self.ask(self.model, log_skipped(track(self.progress, read, label), self.skipped)))

    def __next__(self) -> Found:
        return next(self.found)

    def written(self, out: Path, settings: StreamOptions) -> int:
        """Write all answers and return their number. Many processes share the documents of a file."""
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
        OovStats.counted(done.counts).warn()
        return done.counts["documents"]


def write_one_by_one(out: Path, answers: Answer | Iterable[Answer], settings: StreamOptions) -> int:
    """Write answers by this process alone and return their number."""
    usual = StreamOptions().values()
    if given := [name for name, value in settings.values().items() if value != usual[name]]:
        raise UserError(
            f"--{given[0].replace('_', '-')} is for documents of a file, and answers as JSON lines or shards"
        )
    return tables.write_answers(out, answers)


@with_options(StreamOptions)
def write_answers(answers: Answer | Iterable[Answer], out: AnyPath, **options: Any) -> int:
    """Write the answers to any question as JSON lines, a table (CSV, Parquet) or shards; return their number.

    >>> ssdvae.write_answers(ssdvae.infer("runs/first", "events.jsonl"), "inferred.jsonl")
    >>> ssdvae.write_answers(ssdvae.score("runs/first", "shards"), "scored", jobs=8)
    >>> ssdvae.write_answers(ssdvae.score("runs/first", "events.jsonl"), "scored.parquet")
    >>> ssdvae.write_answers(ssdvae.explain("runs/first").transitions, "transitions.csv")

    A name without an ending is a folder for shards. Where JSON lines or shards are made of a file, or of a
    folder of shards, many processes share the work, and resume it when it was stopped; in a script, call
    it under ``if __name__ == "__main__"``, or with ``jobs=1``.
    """
    chosen = StreamOptions(**options)
    if isinstance(answers, Answers):
        return answers.written(Path(out), chosen)
    return write_one_by_one(Path(out), answers, chosen)


def to_dataframe(answers: Answer | Iterable[Answer]) -> pandas.DataFrame:
    """Return the answers to any question as a DataFrame: a row for each event, candidate or transition.

    >>> ssdvae.to_dataframe(ssdvae.score("runs/first", "events.jsonl")).nlargest(10, "nats")
    >>> ssdvae.to_dataframe(ssdvae.explain("runs/first").transitions)
    """
    return tables.to_dataframe(answers)
