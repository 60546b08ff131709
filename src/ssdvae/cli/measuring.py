"""Measure: scores of a trained model, of several side by side, how fast a model is, and what is damaged."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jsonargparse import Namespace

from ssdvae import api
from ssdvae.api.choices import figure_note, mark_of, task_choices
from ssdvae.cli.command import Command
from ssdvae.cli.console import show
from ssdvae.cli.flags import add_settings, add_sized_settings, given_settings
from ssdvae.cli.parser import Parser
from ssdvae.config import BenchmarkSettings, EvaluateSettings
from ssdvae.errors import UserError
from ssdvae.records import to_json

ONE_OBJECT = "print one JSON object and nothing else"


def evaluate_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = parser.add_argument_group("files and output")
    files.add_argument("run", type=Path, help="run folder")
    files.add_argument("--corpus", type=Path, default=None, help="corpus folder; by default that of the run")
    files.add_argument("--json", action="store_true", help=ONE_OBJECT)
    files.add_argument(
        "--details", type=Path, default=None, help="file for the scores of each item, in JSON lines"
    )
    add_settings(parser, EvaluateSettings, choices={"tasks": task_choices()})


def evaluate(args: Namespace) -> None:
    found = api.evaluate(
        args.run, corpus=args.corpus, details=args.details, **given_settings(EvaluateSettings, args)
    )
    if args.json:
        print(to_json(found))
        return
    shown_names = [name for name, value in found.items() if not isinstance(value, dict | list)]
    wide = max(20, *(len(name) + 1 for name in shown_names)) if shown_names else 0
    for name, value in found.items():
        if not isinstance(value, dict | list):
            shown = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
            shown += mark_of(name, found)
            note = figure_note(name) if value is not None else None
            print(f"{name:{wide}}{shown:10}{note}" if note else f"{name:{wide}}{shown}")
    if any(mark_of(name, found) for name in found):
        bounded = found.get("ppl_bound") is not None
        instead = "compare models by ppl_bound" if bounded else "this compares with no other model"
        print(f"† the model has read the words that it predicts: {instead}")


def scores_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("runs", nargs="+", type=Path, help="run folders that were evaluated")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")


def scores(args: Namespace) -> None:
    found = api.scores(args.runs)
    if args.markdown:
        print(found.markdown())
    else:
        show(found.tables())


def benchmark_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("--json", action="store_true", help=ONE_OBJECT)
    add_sized_settings(parser, BenchmarkSettings, argv)


def benchmark(args: Namespace) -> None:
    result = api.benchmark(**given_settings(BenchmarkSettings, args))
    if args.json:
        print(to_json(result))
        return
    if "events" in result:
        _show_lengths(result)
        return
    head = ["", "seconds", "documents/s", "GFLOP", "GFLOP/s", "efficiency", "peak memory"]
    rows = [
        [
            name,
            f"{timed['seconds']:.3f}",
            f"{timed['documents_per_second']:.0f}",
            f"{timed['gflop']:.1f}",
            f"{timed['gflop'] / timed['seconds']:.1f}",
            f"{timed['efficiency']:.0%}",
            f"{timed['peak_memory_mb']:,.0f} MB",
        ]
        for name, timed in result.items()
        if isinstance(timed, dict) and name != "answers"
    ]
    rate = f"matrices alone {result['gemm_gflops']:.1f} GFLOP/s, {result['threads']} threads"
    show([(f"{result['model']}: {rate}", head, rows)])
    if answers := result["answers"]:
        asked = [f"{speed:.0f}" for speed in answers.values()]
        show([("Documents a second, asked", list(answers), [asked])])


def _show_lengths(result: dict[str, Any]) -> None:
    """Training steps on documents of several lengths, beside the first."""
    head = [
        "events",
        "seconds",
        "events/s",
        "GFLOP/s of matrices",
        "relative speed",
        "peak memory",
        "relative",
    ]
    rows = []
    for events, one in result["events"].items():
        timed = one["train"]
        rows.append(
            [
                events,
                f"{timed['seconds']:.3f}",
                f"{timed['events_per_second']:,.0f}",
                f"{timed['gemm_gflops']:.1f}",
                f"{timed['relative_speed']:.0%}",
                f"{timed['peak_memory_mb']:,.0f} MB",
                f"{timed['relative_memory']:.2f}",
            ]
        )
    show([(f"{result['model']}: training steps, with as many events in each batch", head, rows)])


def check_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("folder", type=Path, help="corpus folder, run folder, or folder of a model")


def check(args: Namespace) -> None:
    found = api.check(args.folder)
    for part in found:
        print(f"{part.name:20}{part.found if part.problem is None else 'DAMAGED'}")
    if problems := [str(part.problem) for part in found if part.problem is not None]:
        raise UserError("\n".join(problems))


COMMANDS = (
    Command(
        "evaluate",
        "measure a trained model",
        "evaluate",
        evaluate_flags,
        evaluate,
        (
            "ssdvae evaluate runs/first",
            "ssdvae evaluate runs/first --split test --tasks perplexity --json",
        ),
    ),
    Command(
        "scores",
        "put the scores of runs side by side, averaged over seeds",
        "scores",
        scores_flags,
        scores,
        ("ssdvae scores runs/first", "ssdvae scores runs/first --markdown"),
    ),
    Command(
        "benchmark",
        "time a model against what the machine can do",
        "benchmark",
        benchmark_flags,
        benchmark,
        (
            "ssdvae benchmark --preset tiny --model rnnlm",
            "ssdvae benchmark --preset tiny --events 5,20 --json",
        ),
    ),
    Command(
        "check",
        "read every file of a corpus or a run, and say what is damaged",
        "check",
        check_flags,
        check,
        ("ssdvae check corpus", "ssdvae check runs/first"),
    ),
)
