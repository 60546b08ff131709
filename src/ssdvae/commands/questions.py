"""Questions about documents: flags of their commands, and answers that are iterated, printed or written."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ssdvae.commands import AnyPath, Command
from ssdvae.commands.console import TableText, say, show
from ssdvae.data.options import ReadOptions, StreamOptions
from ssdvae.io.errors import UserError
from ssdvae.io.records import to_json
from ssdvae.options import Options, flag, split_options, with_options

if TYPE_CHECKING:
    from ssdvae.commands.coerce import AnyModel, Documents
    from ssdvae.inference.output import Answer
    from ssdvae.io.progress import Progress
    from ssdvae.models.base import Model

log = logging.getLogger("ssdvae")

AnyAnswer = TypeVar("AnyAnswer", bound="Answer")

Tables = Callable[[Iterable[Any]], Iterable[TableText]]
"""A function that returns the printed form of answers."""


class Answers(Iterator[AnyAnswer], Generic[AnyAnswer]):
    """Answers to a question about documents, computed when they are asked for.

    ``ask(model, documents, …)`` is the question, with the options of ``kind`` and ``further`` arguments. With
    ``holes``, something may be missing in documents.
    """

    def __init__(
        self,
        run: AnyModel,
        documents: Documents,
        label: str,
        ask: Callable[..., Iterable[AnyAnswer]],
        kind: type[Options],
        options: Mapping[str, Any],
        progress: bool | Progress,
        *,
        model: Model | None = None,
        holes: bool = False,
        **further: Any,
    ) -> None:
        from ssdvae.commands.coerce import as_documents, as_model
        from ssdvae.data.events import HOLE

        self.run, self.documents, self.label, self.progress = run, documents, label, progress
        read, own = split_options(options, ReadOptions)
        self.read, self.hole = ReadOptions(**read), HOLE if holes else None
        self.ask: partial[Iterable[AnyAnswer]] = partial(ask, **kind(**own).values(), **further)
        self.model = as_model(run) if model is None else model
        found = as_documents(documents, self.read, self.model, progress, label, self.hole)
        self.answers = iter(self.ask(self.model, found))

    def __next__(self) -> AnyAnswer:
        return next(self.answers)

    def write(self, out: Path, options: StreamOptions) -> int:
        """Write all answers about a file and return their number. Many processes share its documents."""
        from ssdvae.commands.coerce import folder_of
        from ssdvae.data.readers import Skipped
        from ssdvae.inference.inputs import OovStats
        from ssdvae.inference.output import answer_file, answer_files
        from ssdvae.io.progress import resolve
        from ssdvae.models.base import Model

        skipped = Skipped() if self.read.skip_bad else None
        done = answer_files(
            self.model,
            None if isinstance(self.run, Model) else folder_of(self.run),
            Path(str(self.documents)),
            answer_file(out) if out.suffix else out,
            self.ask,
            options,
            format=self.read.format,
            skip_bad=skipped,
            progress=resolve(self.progress),
            label=self.label,
            hole=self.hole,
        )
        if skipped is not None:
            log.info(str(skipped))
        OovStats(done.counts["words"], done.counts["unknown_words"]).warn()
        return done.counts["documents"]


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
    from ssdvae.inference.output import TABLES, write_one_by_one

    chosen, path = StreamOptions(**options), Path(out)
    of_file = isinstance(answers, Answers) and isinstance(answers.documents, str | Path)
    if isinstance(answers, Answers) and of_file and path.suffix not in TABLES:
        return answers.write(path, chosen)
    if changed := [name for name, value in StreamOptions() if getattr(chosen, name) != value]:
        raise UserError(f"{flag(changed[0])} is for documents of a file, and answers as JSON lines or shards")
    return write_one_by_one(path, answers)


def question(
    ask: Callable[..., Iterable[Any]], tables: Tables, kind: type[Options], examples: tuple[str, ...]
) -> Command:
    """Return the command of a question about the documents of a file, or about events that are typed."""

    def main(
        file: str | None = None,
        *,
        run: str | None = None,
        out: Path | None = None,
        json: bool = False,
        **options: Any,
    ) -> None:
        stream, own = split_options(options, StreamOptions)
        answers = ask(*read_input(file, run, own), **own)
        give(answers, tables, out=out, json=json, stream=stream)

    main.__doc__ = f"""{(ask.__doc__ or "").splitlines()[0]}

    Args:
        file: file of documents, or folder of shards; without one, events are read from standard input, one a
            line as `verb subj obj mod` (- for an empty slot), with a blank line after each document
        run: run folder, or the name of a model; by default the model in the package
        out: file to write, .jsonl, .jsonl.gz, .csv or .parquet; or a folder for shards (no ending)
        json: print a line of JSON for each document
    """
    return Command(with_options(ReadOptions, kind, StreamOptions)(main), examples=examples)


def read_input(file: str | None, run: str | None, options: dict[str, Any]) -> tuple[Any, Any]:
    """Return the model and the documents: those of a file, or typed ones, each answered when it ends."""
    if file is not None:
        return run, file
    if not is_terminal():
        return run, sys.stdin.buffer
    from ssdvae.commands.coerce import load
    from ssdvae.data.events import slot_format

    model = load(run)
    say(f"type events as: {slot_format(model.slots)}; a blank line after the last event")
    options.setdefault("batch", 1)
    return model, sys.stdin.buffer


def is_terminal() -> bool:
    """Tell whether standard input is a terminal, or there is none."""
    return sys.stdin is None or sys.stdin.isatty()


def check_events(events: Iterable[str]) -> None:
    """Refuse an event on the command line that is the path of a file that does not exist."""
    from ssdvae.data.events import SLOTS, slot_format
    from ssdvae.data.readers import ENDINGS

    for event in events:
        if " " not in event and ("/" in event or event.endswith(tuple(ENDINGS))):
            raise UserError(
                f"{event}: no such file; an event is typed in quotes, as 'arrested police suspect in' "
                f"({slot_format(SLOTS)})"
            )


def give(
    answers: Iterable[Any],
    tables: Tables,
    *,
    out: Path | None = None,
    json: bool,
    stream: Mapping[str, Any] | None = None,
    record: Callable[[Any], Any] = lambda answer: answer.to_record(),
) -> None:
    """Write answers to a file, or print them as lines of JSON or as tables."""
    if out is not None:
        count = write_answers(answers, out, **(stream or {}))
        say(f"wrote {count:,} answers to {out}")
    elif stream:
        raise UserError(f"{flag(next(iter(stream)))} goes with --out")
    elif json:
        for answer in warn_if_empty(answers):
            print(to_json(record(answer), ensure_ascii=False), flush=True)
    else:
        show(tables(warn_if_empty(answers)))


def warn_if_empty(answers: Iterable[Any]) -> Iterator[Any]:
    """Yield the same answers; say so if there are none."""
    empty = True
    for answer in answers:
        empty = False
        yield answer
    if empty:
        say("there was no document to read")
