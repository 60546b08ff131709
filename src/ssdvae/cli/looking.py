"""Look: what a model has learned, and a page about runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from jsonargparse import Namespace

from ssdvae import api
from ssdvae.cli.command import Command
from ssdvae.cli.console import say, show
from ssdvae.cli.flags import TakesArguments, add_settings, given_settings
from ssdvae.cli.parser import Parser
from ssdvae.cli.tables import explain_tables, swap_table
from ssdvae.config import ExplainSettings, ExploreSettings, ReportSettings
from ssdvae.records import to_json


def _run_flags(parser: Parser, json_help: str) -> TakesArguments:
    files = parser.add_argument_group("model, input and output")
    files.add_argument("run", type=Path, help="run folder, or the name of a model on the Hugging Face Hub")
    files.add_argument("--json", action="store_true", help=json_help)
    return files


def explain_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = _run_flags(parser, "print one JSON object and nothing else")
    files.add_argument("--corpus", type=Path, default=None, help="corpus folder; by default that of the run")
    add_settings(parser, ExplainSettings)
    parser.add_argument(
        "--swap",
        default=None,
        help="show only what parts of the model are worth: perplexity and cloze when each is the mean, or "
        "that of another document; some of document-vector, frames, state, comma-separated",
    )
    files.add_argument(
        "--transitions",
        type=Path,
        default=None,
        help="file to write, .csv, .parquet or .jsonl: which frame follows which, how often and with what "
        "probability; all that are expected at least --min-count times",
    )


def explain(args: Namespace) -> None:
    settings = given_settings(ExplainSettings, args)
    if args.swap is not None:
        swapped = api.swap(args.run, args.swap, corpus=args.corpus, split=settings.get("split", "valid"))
        if args.json:
            print(to_json([asdict(row) for row in swapped]))
        else:
            show([swap_table(swapped)])
        return
    found = (api.explain(run, corpus=args.corpus, **settings) for run in [args.run])
    if args.transitions is not None:
        # A file of a wrong name is refused before anything is read.
        api.write_answers((explanation.transitions for explanation in found), args.transitions)
        say(f"wrote {args.transitions}")
        return
    record = next(found).to_record(ExplainSettings(**settings))
    if args.json:
        print(to_json(record))
    else:
        show(explain_tables(record))


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
