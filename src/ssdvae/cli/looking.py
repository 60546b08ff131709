"""The commands that look into a model: parse, call, print. Nothing heavy is imported before one is chosen."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import Namespace

from ssdvae.cli.console import bar, counted, say, table
from ssdvae.cli.flags import Parser, add_settings, input_format, json_lines, read_settings
from ssdvae.config import ExplainSettings, GenerateSettings, InferSettings
from ssdvae.records import to_json

if TYPE_CHECKING:
    from ssdvae.answers.infer import InferredDocument
    from ssdvae.cli.tables import TableText
    from ssdvae.data.events import Document


def _run_flags(parser: Parser, json_help: str) -> None:
    parser.add_argument("run", type=Path, help="run folder, or the name of a model on the Hugging Face Hub")
    parser.add_argument("--json", action="store_true", help=json_help)


def explain_flags(parser: Parser, argv: Sequence[str]) -> None:
    _run_flags(parser, "print one JSON object and nothing else")
    parser.add_argument("--corpus", type=Path, default=None, help="corpus folder; by default that of the run")
    add_settings(parser, ExplainSettings)


def explain(args: Namespace) -> None:
    from ssdvae import api
    from ssdvae.cli.tables import explain_tables
    from ssdvae.data.corpus import Corpus
    from ssdvae.runs import Run

    settings = read_settings(ExplainSettings, args)
    corpus = Corpus(args.corpus or Run(args.run).config()[0])
    with bar("reading", corpus.manifest["splits"][settings.split]["documents"]) as tick:
        found = api.explain(args.run, corpus=corpus, tick=tick, **settings.to_dict())
    record = found.to_record(settings)
    if args.json:
        print(to_json(record))
    else:
        _show(explain_tables(record))


def infer_flags(parser: Parser, argv: Sequence[str]) -> None:
    _run_flags(parser, "print a line of JSON for each document")
    parser.add_argument(
        "file",
        nargs="?",
        default="-",
        help="file of documents; without one, events are read from standard input, "
        "as lines `verb subj obj mod` (- for an empty slot) with a blank line after each document",
    )
    parser.add_argument("--out", type=Path, default=None, help="file to write (.jsonl or .jsonl.gz)")
    input_format(parser)
    add_settings(parser, InferSettings)


def infer(args: Namespace) -> None:
    from ssdvae import api
    from ssdvae.cli.tables import inferred_table
    from ssdvae.data.readers import Skipped, read_documents
    from ssdvae.data.readers.jsonl import write_records
    from ssdvae.data.readers.typed import read_typed

    settings, skipped = read_settings(InferSettings, args).to_dict(), Skipped() if args.skip_bad else None
    out = None if args.out is None else json_lines(args.out)
    documents: Iterable[Document]
    if args.file == "-":
        documents = read_typed(sys.stdin.buffer)
        if sys.stdin.isatty():
            say(
                "type events as: verb subj obj mod   (- for an empty slot; a blank line after the last event)"
            )
            settings["batch"] = 1  # an answer after each document
    else:
        documents = counted(read_documents(args.file, format=args.format, skip_bad=skipped), "inferring")
    inferred = _reported(api.infer(args.run, documents, **settings))
    if out is not None:
        say(f"wrote {write_records(out, (d.to_record() for d in inferred)):,} documents to {out}")
    elif args.json:
        for document in inferred:
            print(to_json(document.to_record(), ensure_ascii=False), flush=args.file == "-")
    else:
        _show(inferred_table(document) for document in inferred)
    if skipped is not None:
        say(str(skipped))


def _reported(documents: Iterable[InferredDocument]) -> Iterator[InferredDocument]:
    """The same documents; after the last one, what the model did not know."""
    words = unknown = 0
    for document in documents:
        words += 4 * len(document.events)
        unknown += document.unknown_words
        yield document
    if unknown:
        say(f"{unknown:,} of {words:,} words are not in the vocabulary of the model")


def generate_flags(parser: Parser, argv: Sequence[str]) -> None:
    _run_flags(parser, "print one JSON object and nothing else")
    parser.add_argument(
        "--seed-event",
        nargs="+",
        default=[],
        help='events to begin with, each in quotes: "elected taylor election at", with - for an empty slot; '
        "by default none: the model thinks of a script by itself",
    )
    parser.add_argument(
        "--frames",
        default=None,
        help="frames of the events after the seed, with commas between, and _ for one left to the model",
    )
    add_settings(parser, GenerateSettings)


def generate(args: Namespace) -> None:
    from ssdvae import api
    from ssdvae.answers.infer import unknown_words
    from ssdvae.cli.tables import script_table

    settings = read_settings(GenerateSettings, args).to_dict()
    names = [] if args.frames is None else [name.strip() for name in args.frames.split(",")]
    frames = [None if name == "_" else name for name in names]
    model = api.load(args.run)
    scripts = api.generate(model, args.seed_event, frames, **settings)
    seed = [event.event for event in scripts[0].events[: scripts[0].seeds]]
    if unknown := unknown_words(model, seed):
        say(f"not in the vocabulary of the model: {', '.join(unknown)}")
    if args.json:
        print(to_json({"unknown_words": unknown, "scripts": [script.to_record() for script in scripts]}))
    else:
        _show(script_table(script, number) for number, script in enumerate(scripts, start=1))


def _show(tables: Iterable[TableText]) -> None:
    from rich.console import Console

    # Wide enough elsewhere: what is piped into a file has no width of its own.
    out = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
    for title, head, lines in tables:
        out.print(table(title, head, lines))
