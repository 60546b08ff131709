"""Shared by the commands that ask a model about documents: their flags, and how answers are printed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ssdvae.commands import Command
from ssdvae.commands.console import TableText, say, show
from ssdvae.data.options import StreamOptions
from ssdvae.io.errors import UserError
from ssdvae.io.records import to_json
from ssdvae.options import Options, flag, with_options

Tables = Callable[[Iterable[Any]], Iterable[TableText]]
"""A function that returns the printed form of answers."""


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
        format: str | None = None,
        skip_bad: bool = False,
        **options: Any,
    ) -> None:
        documents, model, how = read_input(file, run)
        stream, own = split_options(options)
        answers = ask(model, documents, format=format, skip_bad=skip_bad, **{**how, **own})
        give(answers, tables, out=out, json=json, stream=stream)

    main.__doc__ = f"""{(ask.__doc__ or "").splitlines()[0]}

    Args:
        file: file of documents, or folder of shards; without one, events are read from standard input, one a
            line as `verb subj obj mod` (- for an empty slot), with a blank line after each document
        run: run folder, or the name of a model; by default the model in the package
        out: file to write, .jsonl, .jsonl.gz, .csv or .parquet; or a folder for shards (no ending)
        json: print a line of JSON for each document
        format: jsonl, csv, parquet, official or xes; by default as named
        skip_bad: count and report malformed input instead of stopping
    """
    return Command(with_options(kind, StreamOptions)(main), examples=examples)


def split_options(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the given options of streams, and the others."""
    stream = {name: value for name, value in options.items() if name in StreamOptions.names()}
    return stream, {name: value for name, value in options.items() if name not in stream}


def read_input(file: str | None, run: str | None) -> tuple[Any, Any, dict[str, Any]]:
    """Return the documents, the model, and how they are read."""
    if file is not None:
        return file, run, {}
    if not sys.stdin.isatty():
        return sys.stdin.buffer, run, {}
    from ssdvae.commands.coerce import load

    model = load(run)
    say(f"type events as: {' '.join(model.slots)}   (- for an empty slot; a blank line after the last event)")
    return sys.stdin.buffer, model, {"batch": 1}  # an answer after each document


def give(
    answers: Iterable[Any], tables: Tables, *, out: Path | None, json: bool, stream: dict[str, Any]
) -> None:
    """Write answers to a file, or print them as lines of JSON or as tables."""
    if out is not None:
        from ssdvae.commands.answers import write_answers

        count = write_answers(answers, out, **stream)
        say(f"wrote {count:,} answers to {out}")
    elif stream:
        raise UserError(f"{flag(next(iter(stream)))} goes with --out")
    elif json:
        for answer in warn_if_empty(answers):
            print(to_json(answer.to_record(), ensure_ascii=False), flush=True)
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
