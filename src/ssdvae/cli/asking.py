"""Ask a model about your data: frames, what is next, unusual, missing, alike; and let it write scripts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import Namespace

from ssdvae import api
from ssdvae.cli.answer_tables import (
    filled_tables,
    next_tables,
    scored_table,
    similar_table,
    unusual_table,
)
from ssdvae.cli.command import Command
from ssdvae.cli.console import say, show
from ssdvae.cli.flags import TakesArguments, add_further_settings, add_settings, given_settings, input_format
from ssdvae.cli.layout import TableText
from ssdvae.cli.parser import Parser
from ssdvae.cli.tables import inferred_table, script_table
from ssdvae.config import (
    EmbedSettings,
    FillSettings,
    GenerateSettings,
    InferSettings,
    NextSettings,
    ScoreSettings,
    Settings,
    SimilarSettings,
    StreamSettings,
)
from ssdvae.errors import UserError
from ssdvae.records import to_json

if TYPE_CHECKING:
    from ssdvae.answers.infer import InferredDocument

ENDINGS = ".jsonl, .jsonl.gz, .csv or .parquet"
TYPED = (
    "without one, events are read from standard input, as lines of its slots, `verb subj obj mod` (- for an "
    "empty one), with a blank line after each document"
)


def _run_flags(parser: Parser, json_help: str) -> TakesArguments:
    files = parser.add_argument_group("input, model and output")
    files.add_argument(
        "--run",
        type=Path,
        default=None,
        help="run folder, or the name of a model; by default the model that comes with the package",
    )
    files.add_argument("--json", action="store_true", help=json_help)
    return files


def _file_flags(parser: Parser, kind: type[Settings]) -> TakesArguments:
    files = _run_flags(parser, "print a line of JSON for each document")
    files.add_argument(
        "file", nargs="?", default="-", help=f"file of documents, or folder of shards; {TYPED}"
    )
    _written_flags(parser, files, kind)
    return files


def _written_flags(parser: Parser, files: TakesArguments, kind: type[Settings]) -> None:
    out = f"file to write: {ENDINGS}; or a folder for shards (a name without an ending)"
    files.add_argument("--out", type=Path, default=None, help=out)
    input_format(files)
    add_settings(parser, kind)
    add_further_settings(parser, StreamSettings, StreamSettings.names())


def _input(args: Namespace) -> tuple[Any, dict[str, Any]]:
    """What is read, and how."""
    typed = args.file == "-"
    settings: dict[str, Any] = {"format": args.format, "skip_bad": args.skip_bad}
    if typed and sys.stdin.isatty():
        args.run = api.load(args.run)
        slots = " ".join(args.run.slots)
        say(f"type events as: {slots}   (- for an empty slot; a blank line after the last event)")
        settings["batch"] = 1  # an answer after each document
    return sys.stdin.buffer if typed else args.file, settings


def _give(args: Namespace, answers: Iterable[Any], tables: Any) -> None:
    """To a file, as lines of JSON, or as tables."""
    shared = given_settings(StreamSettings, args)
    if args.out is not None:
        count = api.write_answers(answers, args.out, **shared)
        say(f"wrote {count:,} answers to {args.out}")
    elif shared:
        raise UserError(f"--{next(iter(shared)).replace('_', '-')} goes with --out")
    elif args.json:
        for answer in _told_if_none(answers):
            print(to_json(answer.to_record(), ensure_ascii=False), flush=True)
    else:
        show(table for answer in _told_if_none(answers) for table in tables(answer))


def _told_if_none(answers: Iterable[Any]) -> Iterator[Any]:
    """The same answers; silence could be taken for success where nothing was read."""
    none = True
    for answer in answers:
        none = False
        yield answer
    if none:
        say("there was no document to read")


def infer_flags(parser: Parser, argv: Sequence[str]) -> None:
    _file_flags(parser, InferSettings)


def infer(args: Namespace) -> None:
    documents, how = _input(args)
    inferred = api.infer(args.run, documents, **{**how, **given_settings(InferSettings, args)})
    _give(args, inferred if args.out else _reported(inferred), lambda document: [inferred_table(document)])


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
        "seed_events",
        nargs="*",
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
    scripts = api.generate(model, args.seed_events, frames, **given_settings(GenerateSettings, args))
    if unknown := api.unknown_words(model, args.seed_events):
        say(f"not in the vocabulary of the model: {', '.join(unknown)}")
    if args.json:
        print(to_json({"unknown_words": unknown, "scripts": [script.to_record() for script in scripts]}))
    else:
        show(script_table(script, number) for number, script in enumerate(scripts, start=1))


def next_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = _run_flags(parser, "print a line of JSON for each document")
    files.add_argument(
        "events",
        nargs="*",
        default=[],
        help='events that came before, each in quotes: "arrested police suspect in"; or a file of documents',
    )
    files.add_argument(
        "--given",
        nargs="+",
        default=None,
        metavar="NAME=VALUE",
        help="what is known of the next event: its frame (frame=Arrest), or words (subj=police)",
    )
    _written_flags(parser, files, NextSettings)


def next_(args: Namespace) -> None:
    given = None
    if args.given is not None:
        if wrong := [text for text in args.given if "=" not in text]:
            raise UserError(f"--given: found {wrong[0]!r}, expected NAME=VALUE, such as frame=Arrest")
        given = dict(text.split("=", 1) for text in args.given)
    one_file = len(args.events) == 1 and Path(args.events[0]).exists()
    documents = args.events[0] if one_file else [{"id": "events", "events": args.events}]
    settings = {"format": args.format, "skip_bad": args.skip_bad, **given_settings(NextSettings, args)}
    _give(args, api.next_events(args.run, documents, given=given, **settings), next_tables)


def score_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = _file_flags(parser, ScoreSettings)
    files.add_argument(
        "--top",
        type=int,
        default=None,
        metavar="N",
        help="the N most surprising events alone, with what was expected instead",
    )


def score(args: Namespace) -> None:
    documents, how = _input(args)
    settings = {**how, **given_settings(ScoreSettings, args)}
    if args.top is None:
        _give(args, api.score(args.run, documents, **settings), lambda document: [scored_table(document)])
        return
    settings.pop("frames", None)
    found = api.unusual(args.run, documents, args.top, **settings)
    if args.out is not None or args.json:
        _give(args, found, unusual_table)
    else:
        show([unusual_table(found)])


def fill_flags(parser: Parser, argv: Sequence[str]) -> None:
    _file_flags(parser, FillSettings)


def fill(args: Namespace) -> None:
    documents, how = _input(args)
    settings = {**how, **given_settings(FillSettings, args)}
    _give(args, api.fill(args.run, documents, **settings), filled_tables)


def embed_flags(parser: Parser, argv: Sequence[str]) -> None:
    _file_flags(parser, EmbedSettings)


def embed(args: Namespace) -> None:
    documents, how = _input(args)
    found = api.embed(args.run, documents, **{**how, **given_settings(EmbedSettings, args)})
    _give(args, found, _vector_table)


def _vector_table(embedded: Any) -> list[TableText]:
    shown = [("(document)", embedded.vector), *zip(embedded.document.events, embedded.events, strict=True)]
    rows = [[str(what), " ".join(f"{x:.2f}" for x in vector[:8]) + " …"] for what, vector in shown]
    return [(f"{embedded.document.id}, {len(embedded.vector)} dimensions", ["event", "vector"], rows)]


def similar_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = _run_flags(parser, "print a line of JSON for each event that is near")
    files.add_argument("events", nargs="+", help='events, each in quotes: "arrested police suspect in"')
    files.add_argument("--among", required=True, type=Path, help="file of documents to find them in")
    files.add_argument("--out", type=Path, default=None, help=f"file to write: {ENDINGS}")
    input_format(files)
    add_settings(parser, SimilarSettings)


def similar(args: Namespace) -> None:
    settings = {"format": args.format, "skip_bad": args.skip_bad, **given_settings(SimilarSettings, args)}
    found = api.similar(args.run, args.events, args.among, **settings)
    if args.out is not None or args.json:
        _give(args, found, None)
    else:
        show([similar_table(found)])


COMMANDS = (
    Command(
        "infer",
        "infer the frames of new documents",
        "infer",
        infer_flags,
        infer,
        (
            "ssdvae infer events.jsonl --run runs/first --out inferred.jsonl",
            "echo 'arrested police suspect in' | ssdvae infer --run runs/first --json",
        ),
        data_first="FILE --run RUN",
    ),
    Command(
        "next",
        "what comes next: its frame, its head, the likeliest events",
        "next_events",
        next_flags,
        next_,
        (
            "ssdvae next 'arrested police suspect in' --run runs/first",
            "ssdvae next 'met she him' --run runs/first --given frame=Arrest",
        ),
        data_first="EVENT … --run RUN",
    ),
    Command(
        "score",
        "what is unusual: nats and percentiles of every event",
        "score",
        score_flags,
        score,
        (
            "ssdvae score events.jsonl --run runs/first --out scored.parquet",
            "ssdvae score events.jsonl --run runs/first --top 3",
        ),
        data_first="FILE --run RUN",
    ),
    Command(
        "fill",
        "what is missing: events (null) or words (?) anywhere",
        "fill",
        fill_flags,
        fill,
        (
            "echo 'arrested police ? in' | ssdvae fill --run runs/first",
            "printf 'met she him\\n?\\nleft he' | ssdvae fill --run runs/first --json",
        ),
        data_first="FILE --run RUN",
    ),
    Command(
        "embed",
        "vectors of events and documents",
        "embed",
        embed_flags,
        embed,
        (
            "ssdvae embed events.jsonl --run runs/first --out vectors.parquet",
            "echo 'arrested police suspect in' | ssdvae embed --run runs/first",
        ),
        data_first="FILE --run RUN",
    ),
    Command(
        "similar",
        "what is alike: the nearest events of a file",
        "similar",
        similar_flags,
        similar,
        (
            "ssdvae similar 'told he her' --among events.jsonl --run runs/first",
            "ssdvae similar 'told he her' --among events.jsonl --run runs/first --json",
        ),
        data_first="EVENT … --among FILE --run RUN",
    ),
    Command(
        "generate",
        "generate scripts from seed events",
        "generate",
        generate_flags,
        generate,
        (
            "ssdvae generate 'arrested police suspect in' --run runs/first",
            "ssdvae generate 'met she him' --run runs/first --frames _,Arrest",
        ),
        data_first="EVENT … --run RUN",
    ),
)
