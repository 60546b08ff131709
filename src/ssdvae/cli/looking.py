"""Look: what a model has learned, what it says of given events, and a page about runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jsonargparse import Namespace

from ssdvae import api
from ssdvae.cli.command import Command
from ssdvae.cli.console import say, show
from ssdvae.cli.flags import TakesArguments, add_further_settings, add_settings, given_settings, input_format
from ssdvae.cli.parser import Parser
from ssdvae.cli.tables import explain_tables, inferred_table, script_table
from ssdvae.config import (
    ExplainSettings,
    ExploreSettings,
    GenerateSettings,
    InferSettings,
    ReportSettings,
    StreamSettings,
)
from ssdvae.errors import UserError
from ssdvae.records import to_json

if TYPE_CHECKING:
    from ssdvae.answers.infer import InferredDocument


def _run_flags(parser: Parser, json_help: str) -> TakesArguments:
    files = parser.add_argument_group("model, input and output")
    files.add_argument("run", type=Path, help="run folder, or the name of a model on the Hugging Face Hub")
    files.add_argument("--json", action="store_true", help=json_help)
    return files


def explain_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = _run_flags(parser, "print one JSON object and nothing else")
    files.add_argument("--corpus", type=Path, default=None, help="corpus folder; by default that of the run")
    add_settings(parser, ExplainSettings)


def explain(args: Namespace) -> None:
    settings = given_settings(ExplainSettings, args)
    record = api.explain(args.run, corpus=args.corpus, **settings).to_record(ExplainSettings(**settings))
    if args.json:
        print(to_json(record))
    else:
        show(explain_tables(record))


def infer_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = _run_flags(parser, "print a line of JSON for each document")
    files.add_argument(
        "file",
        nargs="?",
        default="-",
        help="file of documents; without one, events are read from standard input, "
        "as lines of its slots, `verb subj obj mod` (- for an empty one), with a blank line after each "
        "document",
    )
    files.add_argument(
        "--out",
        type=Path,
        default=None,
        help="file to write (.jsonl or .jsonl.gz), or a folder for shards (a name without an ending)",
    )
    input_format(files)
    add_settings(parser, InferSettings)
    add_further_settings(parser, StreamSettings, StreamSettings.names())


def infer(args: Namespace) -> None:
    settings = {"format": args.format, "skip_bad": args.skip_bad, **given_settings(InferSettings, args)}
    typed = args.file == "-"
    if typed and sys.stdin.isatty():
        args.run = api.load(args.run)
        slots = " ".join(args.run.slots)
        say(f"type events as: {slots}   (- for an empty slot; a blank line after the last event)")
        settings["batch"] = 1  # an answer after each document
    documents = sys.stdin.buffer if typed else args.file
    shared = given_settings(StreamSettings, args)
    if args.out is not None:
        count = api.infer_file(args.run, documents, args.out, **settings, **shared)
        say(f"wrote {count:,} documents to {args.out}")
        return
    if shared:
        raise UserError(f"--{next(iter(shared)).replace('_', '-')} goes with --out")
    inferred = _reported(api.infer(args.run, documents, **settings))
    if args.json:
        for document in inferred:
            print(to_json(document.to_record(), ensure_ascii=False), flush=typed)
    else:
        show(inferred_table(document) for document in inferred)


def _reported(documents: Iterable[InferredDocument]) -> Iterator[InferredDocument]:
    """The same documents; after the last one, what the model did not know."""
    words = unknown = 0
    for document in documents:
        words += len(document.slots) * len(document.events)
        unknown += document.unknown_words
        yield document
    if unknown:
        say(f"{unknown:,} of {words:,} words are not in the vocabulary of the model")


def generate_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = _run_flags(parser, "print one JSON object and nothing else")
    files.add_argument(
        "--seed-event",
        nargs="+",
        default=[],
        help='events to begin with, each in quotes: "elected taylor election at", with - for an empty slot; '
        "by default none: the model thinks of a script by itself",
    )
    files.add_argument(
        "--frames",
        default=None,
        help="frames of the events after the seed, with commas between, and _ for one left to the model",
    )
    add_settings(parser, GenerateSettings)


def generate(args: Namespace) -> None:
    names = [] if args.frames is None else [name.strip() for name in args.frames.split(",")]
    frames = [None if name == "_" else name for name in names]
    model = api.load(args.run)
    scripts = api.generate(model, args.seed_event, frames, **given_settings(GenerateSettings, args))
    if unknown := api.unknown_words(model, args.seed_event):
        say(f"not in the vocabulary of the model: {', '.join(unknown)}")
    if args.json:
        print(to_json({"unknown_words": unknown, "scripts": [script.to_record() for script in scripts]}))
    else:
        show(script_table(script, number) for number, script in enumerate(scripts, start=1))


def report_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page to write")
    add_settings(parser, ReportSettings)


def report(args: Namespace) -> None:
    api.write_report(args.runs, args.out, **given_settings(ReportSettings, args))
    say(f"wrote {args.out}; open it in a browser")


def explore_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument(
        "runs", nargs="*", type=Path, help="run folders; by default the model that comes with the package"
    )
    parser.add_argument(
        "--documents",
        type=Path,
        default=None,
        help="corpus folder or file of documents to look at; by default those of each run's corpus",
    )
    add_settings(parser, ExploreSettings)


def explore(args: Namespace) -> None:
    api.explore(args.runs, documents=args.documents, **given_settings(ExploreSettings, args))


COMMANDS = (
    Command(
        "explain",
        "show what a model learned: words and frames, causes, differences",
        "explain",
        explain_flags,
        explain,
        (
            "ssdvae explain runs/first",
            "ssdvae explain runs/first --words told,left --frames Arriving --json",
        ),
    ),
    Command(
        "infer",
        "infer the frames of new documents",
        "infer",
        infer_flags,
        infer,
        (
            "ssdvae infer runs/first events.jsonl --out inferred.jsonl",
            "echo 'arrested police suspect in' | ssdvae infer runs/first --json",
        ),
    ),
    Command(
        "generate",
        "generate scripts from seed events",
        "generate",
        generate_flags,
        generate,
        (
            "ssdvae generate runs/first --seed-event 'arrested police suspect in'",
            "ssdvae generate runs/first --seed-event 'met she him' --frames _,Arrest",
        ),
    ),
    Command(
        "report",
        "write one page about runs: curves, scores, what the models learned",
        "write_report",
        report_flags,
        report,
        ("ssdvae report runs/first", "ssdvae report runs/first --out first.html --split test"),
    ),
    Command(
        "explore",
        "talk to models in the browser, or by a REST API",
        "explore",
        explore_flags,
        explore,
        ("ssdvae explore runs/first", "ssdvae explore runs/first runs/second --documents new.jsonl"),
    ),
)
