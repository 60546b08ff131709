"""The command line: parse, call, print. No logic, and no heavy import before a command is chosen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from jsonargparse import Namespace

from ssdvae import __version__
from ssdvae.cli.console import bar, console, counted, say, table
from ssdvae.cli.flags import (
    Parser,
    add_further_settings,
    add_settings,
    add_sized_settings,
    given_settings,
    input_format,
    json_lines,
    read_settings,
)
from ssdvae.cli.looking import explain, explain_flags, generate, generate_flags, infer, infer_flags
from ssdvae.config import (
    MEASURED_ALIKE,
    SPLITS,
    TRAINED_ALIKE,
    AnnotateSettings,
    BenchmarkSettings,
    EvaluateSettings,
    ExtractSettings,
    PrepareSettings,
    ReportSettings,
    ReproduceSettings,
    Split,
    StreamSettings,
    TrainSettings,
)
from ssdvae.errors import UserError
from ssdvae.paper.grid import TARGETS
from ssdvae.records import to_json

# One pair of functions for each command: its flags, and what it calls.


def demo_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for everything the demo makes")


def demo(args: Namespace) -> None:
    from ssdvae.demo import run_demo

    run_demo(args.out)


def world_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("out", type=Path, help="file to write (.jsonl or .jsonl.gz)")
    parser.add_argument("--documents", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same documents")


def world(args: Namespace) -> None:
    from ssdvae.data.readers import write_jsonl
    from ssdvae.storyworld.world import World

    if args.documents < 1:
        raise UserError(f"--documents: found {args.documents}, expected at least 1")
    documents = World.embedded().documents(args.documents, args.seed)
    say(f"wrote {write_jsonl(json_lines(args.out), counted(documents, 'writing')):,} documents to {args.out}")


def import_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("sources", nargs="+", type=Path, help="files of events in any known format")
    parser.add_argument("--out", type=Path, required=True, help="file to write (.jsonl or .jsonl.gz)")
    input_format(parser)


def import_(args: Namespace) -> None:
    from ssdvae.data.readers import Skipped, read_documents, write_jsonl

    skipped = Skipped() if args.skip_bad else None
    documents = (
        d for path in args.sources for d in read_documents(path, format=args.format, skip_bad=skipped)
    )
    say(f"wrote {write_jsonl(json_lines(args.out), counted(documents, 'reading')):,} documents to {args.out}")
    if skipped is not None:
        say(str(skipped))


def extract_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("sources", nargs="+", type=Path, help="files or folders of text, parsed or not")
    parser.add_argument("--out", type=Path, required=True, help="file to write (.jsonl or .jsonl.gz)")
    parser.add_argument(
        "--format",
        default=None,
        help="text, csv, jsonl, parquet, wikiextractor, megawika, conllu or concrete; by default as named",
    )
    add_settings(parser, ExtractSettings)


def extract(args: Namespace) -> None:
    from ssdvae.extraction.extract import extract as write_events

    done = write_events(
        args.sources,
        json_lines(args.out),
        read_settings(ExtractSettings, args),
        format=args.format,
        progress=lambda chunks: counted(chunks, "extracting", size=lambda chunk: chunk.read),
    )
    if done.resumed:
        say(f"went on after {done.resumed:,} documents that were done before")
    say(f"wrote {done.documents:,} documents with {done.events:,} events to {args.out}")
    if done.skipped.count:
        say(str(done.skipped))


def annotate_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("source", type=Path, help="file of events in any known format")
    parser.add_argument(
        "--frames",
        required=True,
        help="framenet17, framenet15 or a folder of FrameNet; events with frames (.jsonl) to learn from; "
        "a lexicon (.csv, .json); a folder that --save made; or frame-semantic-transformer",
    )
    parser.add_argument("--out", type=Path, required=True, help="file to write (.jsonl or .jsonl.gz)")
    parser.add_argument("--save", type=Path, default=None, help="folder for the classifier that was learned")
    parser.add_argument(
        "--candidates", type=Path, default=None, help="lexicon of further frames, when learning from events"
    )
    parser.add_argument(
        "--relations", type=Path, default=None, help="JSON list of relations between frames, to be kept"
    )
    input_format(parser)
    add_settings(parser, AnnotateSettings)


def annotate(args: Namespace) -> None:
    from ssdvae.data.readers import Skipped
    from ssdvae.extraction.annotate import annotate as write_frames
    from ssdvae.extraction.annotate import load_annotator
    from ssdvae.files import check_exists

    out, skipped = json_lines(args.out), Skipped() if args.skip_bad else None
    # Looked at before anything is learned, which takes a while.
    settings = read_settings(AnnotateSettings, args)
    check_exists(args.source)
    annotator = load_annotator(
        args.frames, save=args.save, candidates=args.candidates, relations=args.relations
    )
    done = write_frames(
        args.source,
        out,
        annotator,
        settings,
        format=args.format,
        skip_bad=skipped,
        progress=lambda chunks: counted(chunks, "annotating", size=lambda chunk: chunk.read),
    )
    if done.resumed:
        say(f"went on after {done.resumed:,} documents that were done before")
    say(f"wrote {done.documents:,} documents with {done.events:,} events to {out}")
    say(
        f"{done.framed:,} events got a frame and {done.kept:,} had one; latent are {done.uncertain:,} "
        f"below the threshold and {done.unknown:,} of verbs without a known frame"
    )
    if skipped is not None:
        say(str(skipped))


def prepare_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument(
        "source", nargs="?", type=Path, default=None, help="one file, to be split by document id"
    )
    for split in SPLITS:
        parser.add_argument(f"--{split}", type=Path, default=None, help=f"or: the file of the {split} split")
    parser.add_argument("--out", type=Path, required=True, help="corpus folder to write")
    input_format(parser)
    # Not one of the settings, which a corpus keeps: the corpus is the same whatever their number.
    jobs = StreamSettings.table()["jobs"]
    parser.add_argument("--jobs", type=int, default=jobs.default, help=jobs.help)
    add_sized_settings(parser, PrepareSettings, argv)


def prepare(args: Namespace) -> None:
    from ssdvae.data.prepare import prepare as write_corpus

    given: dict[Split, Path] = {split: args[split] for split in SPLITS if args[split] is not None}
    if (args.source is None) == (not given):
        raise UserError("name one file to be split, or --train and --test (and perhaps --valid)")
    corpus = write_corpus(
        args.source or given,
        args.out,
        read_settings(PrepareSettings, args),
        format=args.format,
        skip_bad=args.skip_bad,
        jobs=StreamSettings(jobs=args.jobs).jobs,
        progress=lambda parts, label, total: counted(parts, label, lambda part: part.read, total),
    )
    manifest = corpus.manifest
    for split, counts in manifest["splits"].items():
        say(
            f"{split}: {counts['documents']:,} documents, {counts['events']:,} events, "
            f"{counts['unknown_words']:,} unknown words, {counts['too_short']:,} documents too short"
        )
        if counts["dropped_events"]:
            dropped = f"{counts['dropped_events']:,} events without a known frame"
            say(f"  {dropped} left out (--keep-frameless keeps them)")
        if not counts["documents"]:
            say(f"  nothing to {'train' if split == 'train' else 'measure'} on: give a file for --{split}")
    wanted = PrepareSettings.of(manifest["settings"])
    for split, count in manifest["cloze"].items() if wanted.cloze_items else ():
        few = f"not {wanted.cloze_options} different documents have {wanted.cloze_events} usable events"
        say(f"{split}: {count:,} cloze items" if count else f"{split}: no cloze items, since {few}")
    for path, count in manifest["skipped"].items():
        if count:
            say(f"skipped {count:,} malformed pieces of {path}")
    say(f"wrote {args.out}: {manifest['words']:,} words, {manifest['frames']:,} frames")


def train_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("corpus", nargs="?", type=Path, default=None, help="corpus folder")
    parser.add_argument("--out", type=Path, default=None, help="run folder to write")
    parser.add_argument(
        "--resume", type=Path, default=None, help="go on with this run folder; takes nothing else"
    )
    add_sized_settings(parser, TrainSettings, argv)


def train(args: Namespace) -> None:
    from ssdvae.data.corpus import Corpus
    from ssdvae.training.train import resume
    from ssdvae.training.train import train as train_run

    if args.resume is not None:
        if given_settings(TrainSettings, args) or args.corpus or args.out:
            raise UserError("--resume goes on with the settings of the run and takes nothing else")
        resume(args.resume)
    elif args.corpus is None or args.out is None:
        raise UserError("name a corpus folder and --out RUN, or --resume RUN")
    else:
        settings = read_settings(TrainSettings, args)
        train_run(Corpus(args.corpus), args.out, settings)


def benchmark_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    add_sized_settings(parser, BenchmarkSettings, argv)


def benchmark(args: Namespace) -> None:
    from rich.console import Console

    from ssdvae.benchmark import benchmark as measure

    settings = read_settings(BenchmarkSettings, args)
    result = measure(settings)
    if args.json:
        print(to_json(result))
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
        if isinstance(timed, dict)
    ]
    title = (
        f"{settings.model}: matrices alone {result['gemm_gflops']:.1f} GFLOP/s, {result['threads']} threads"
    )
    Console(highlight=False).print(table(title, head, rows))


def evaluate_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("run", type=Path, help="run folder")
    parser.add_argument("--corpus", type=Path, default=None, help="corpus folder; by default that of the run")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument(
        "--details", type=Path, default=None, help="file for the scores of each cloze item, in JSON lines"
    )
    add_settings(parser, EvaluateSettings)


def evaluate(args: Namespace) -> None:
    from ssdvae import api
    from ssdvae.data.corpus import Corpus
    from ssdvae.runs import Run

    settings = read_settings(EvaluateSettings, args)
    corpus = Corpus(args.corpus or Run(args.run).config()[0])
    with bar("evaluating", corpus.manifest["splits"][settings.split]["documents"]) as tick:
        scores = api.evaluate(args.run, corpus=corpus, details=args.details, tick=tick, **settings.to_dict())
    if args.json:
        print(to_json(scores))
        return
    for name, value in scores.items():
        if not isinstance(value, dict | list):
            shown = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
            print(f"{name:20}{shown}")


def scores_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("runs", nargs="+", type=Path, help="run folders that were evaluated")
    parser.add_argument("--markdown", action="store_true", help="print the tables in Markdown")


def scores(args: Namespace) -> None:
    from rich.console import Console

    from ssdvae.evaluation.summary import score_tables, summarize

    for title, head, rows in score_tables(summarize(args.runs)):
        if args.markdown:
            lines = [head, ["---"] * len(head), *rows]
            print(f"**{title}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n")
        else:
            Console(highlight=False).print(table(title, head, rows))


def report_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("runs", nargs="+", type=Path, help="run folders")
    parser.add_argument("--out", type=Path, default=Path("report.html"), help="the page to write")
    add_settings(parser, ReportSettings)


def report(args: Namespace) -> None:
    from ssdvae import api

    settings = read_settings(ReportSettings, args)
    with bar("looking at runs", len(args.runs)) as tick:
        api.write_report(args.runs, args.out, tick=tick, **settings.to_dict())
    say(f"wrote {args.out}; open it in a browser")


def reproduce_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("what", choices=list(TARGETS), help="which tables of the paper")
    parser.add_argument("--data", type=Path, required=True, help="corpus folder")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for the runs, the tables and the page"
    )
    add_settings(parser, ReproduceSettings)
    # Those that are not given are those of --scale, and the defaults.
    add_further_settings(parser, TrainSettings, TRAINED_ALIKE)
    add_further_settings(parser, EvaluateSettings, MEASURED_ALIKE)


def reproduce(args: Namespace) -> None:
    from ssdvae import api

    names = (*ReproduceSettings.names(), *TRAINED_ALIKE, *MEASURED_ALIKE)
    settings = {name: value for name, value in vars(args).items() if name in names}
    done = api.reproduce_paper(args.what, args.data, args.out, **settings)
    for verdict in done.verdicts:
        print(verdict)
    say(f"the tables are in {args.out / 'tables'}; open {args.out / 'report.html'} to read them in a browser")


def check_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("folder", type=Path, help="corpus folder, run folder, or folder of a model")


def check(args: Namespace) -> None:
    from ssdvae.check import check as look

    checked = look(args.folder)
    for one in checked:
        print(f"{one.name:20}{one.found if one.problem is None else 'DAMAGED'}")
    if bad := [one.problem for one in checked if one.problem is not None]:
        raise UserError("\n".join(map(str, bad)))


COMMANDS: dict[str, tuple[str, Callable[[Parser, Sequence[str]], None], Callable[[Namespace], None]]] = {
    "demo": ("train, evaluate and look at a model of the embedded corpus", demo_flags, demo),
    "world": (
        "write documents of the embedded corpus, whose exact distribution is known",
        world_flags,
        world,
    ),
    "import": ("turn files of events into JSON lines", import_flags, import_),
    "extract": ("find the events of texts, parsed or not", extract_flags, extract),
    "annotate": ("give events their frames, each with its probability", annotate_flags, annotate),
    "prepare": ("make a corpus folder from documents", prepare_flags, prepare),
    "train": ("train a model on a corpus folder", train_flags, train),
    "evaluate": ("measure a trained model", evaluate_flags, evaluate),
    "benchmark": ("time a model against what the machine can do", benchmark_flags, benchmark),
    "scores": ("put the scores of runs side by side, averaged over seeds", scores_flags, scores),
    "explain": (
        "show the clusters, the attention and the chains of frames of a model",
        explain_flags,
        explain,
    ),
    "infer": ("infer the frames of new documents", infer_flags, infer),
    "generate": ("continue seed events to scripts", generate_flags, generate),
    "report": (
        "write one page about runs: curves, scores, and what the models learned",
        report_flags,
        report,
    ),
    "check": ("read every file of a corpus or a run, and say what is damaged", check_flags, check),
    "reproduce": (
        "run the paper's tables anew, and say what becomes of its claims",
        reproduce_flags,
        reproduce,
    ),
}


def _config_first(argv: Sequence[str]) -> list[str]:
    """The words with --config moved to the front, so that flags win over the file wherever they stand."""
    words = list(argv)
    for place, word in enumerate(words[1:], start=1):
        if word == "--config" or word.startswith("--config="):
            config = words[place : place + (2 if word == "--config" else 1)]
            return [words[0], *config, *words[1:place], *words[place + len(config) :]]
    return words


def build_parser(argv: Sequence[str]) -> Parser:
    parser = Parser(
        prog="ssdvae",
        description="Learn what usually happens next from sequences of events and partly known frames.",
        version=__version__,
    )
    commands = parser.add_subcommands(
        dest="command", metavar="COMMAND", help="what to do; --help of each says more"
    )
    for name, (help, flags, _) in COMMANDS.items():
        command = Parser(description=help[0].upper() + help[1:] + ".")
        flags(command, argv)
        commands.add_subcommand(name, command, help=help)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake is a message and the exit code 2, never a traceback."""
    argv = _config_first(sys.argv[1:] if argv is None else argv) or ["--help"]
    try:
        args = build_parser(argv).parse_args(argv)
        COMMANDS[args.command][2](args[args.command])
    except UserError as error:
        console.print("[bold red]error:[/] ", end="")
        say(str(error))
        return getattr(error, "exit_code", 2)
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (as in `| head`): nothing is left to say to it.
        sys.stderr.close()
        return 141
    return 0


if __name__ == "__main__":
    sys.exit(main())
