"""Get data: the commands that end with a file of events or a corpus folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import Namespace

from ssdvae import api
from ssdvae.cli.command import Command
from ssdvae.cli.console import say, show
from ssdvae.cli.flags import (
    add_further_settings,
    add_settings,
    add_sized_settings,
    given_settings,
    input_format,
)
from ssdvae.cli.parser import Parser
from ssdvae.config import (
    SPLITS,
    AnnotateSettings,
    ColumnSettings,
    EngineSettings,
    ExtractSettings,
    PrepareSettings,
    Split,
)
from ssdvae.errors import UserError

JSON_LINES = "file to write (.jsonl or .jsonl.gz)"
OUT = "file to write (.jsonl or .jsonl.gz), or a folder for shards (a name without an ending)"


def world_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("out", type=Path, help=JSON_LINES)
    parser.add_argument("--documents", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same documents")


def world(args: Namespace) -> None:
    count = api.world(args.out, documents=args.documents, seed=args.seed)
    say(f"wrote {count:,} documents to {args.out}")


def tickets_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument(
        "out", type=Path, help="file to write: a table (.csv), a log (.xes) or documents (.jsonl); .gz too"
    )
    parser.add_argument("--documents", type=int, default=3_000, help="how many tickets")
    parser.add_argument("--known", type=float, default=0.3, help="share of the stages that is written down")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same tickets")


def tickets(args: Namespace) -> None:
    count = api.tickets(args.out, documents=args.documents, known=args.known, seed=args.seed)
    say(f"wrote {count:,} tickets to {args.out}")


def import_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("sources", nargs="+", type=Path, help="files of events in any known format")
    files.add_argument("--out", type=Path, required=True, help=JSON_LINES)
    slots = PrepareSettings.table()["slots"]
    files.add_argument("--slots", default=slots.default, help=slots.help)
    add_settings(parser, ColumnSettings)
    input_format(files)


def import_documents(args: Namespace) -> None:
    done = api.import_documents(
        args.sources,
        args.out,
        format=args.format,
        slots=args.slots,
        skip_bad=args.skip_bad,
        **given_settings(ColumnSettings, args),
    )
    say(f"wrote {done.documents:,} documents to {args.out}")
    if done.one_event:
        say(f"{done.one_event:,} of them have one event")
    if done.skipped is not None:
        say(str(done.skipped))


def extract_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("sources", nargs="+", type=Path, help="files or folders of text, parsed or not")
    files.add_argument("--out", type=Path, required=True, help=OUT)
    files.add_argument(
        "--format",
        default=None,
        help="text, csv, jsonl, parquet, wikiextractor, megawika, conllu or concrete; by default as named",
    )
    add_settings(parser, ExtractSettings)


def extract(args: Namespace) -> None:
    done = api.extract(args.sources, args.out, format=args.format, **given_settings(ExtractSettings, args))
    _say_resumed(done.resumed)
    say(f"wrote {done.documents:,} documents with {done.events:,} events to {args.out}")
    if done.skipped.count:
        say(str(done.skipped))


def _say_resumed(documents: int) -> None:
    if documents:
        say(f"resumed after {documents:,} documents")


def annotate_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("source", type=Path, help="file of events in any known format, or a folder of shards")
    files.add_argument(
        "--frames",
        required=True,
        help="framenet17, framenet15 or a folder of FrameNet; events with frames (.jsonl) to learn from; "
        "a lexicon (.csv, .json); a folder that --save made; or frame-semantic-transformer",
    )
    files.add_argument("--out", type=Path, required=True, help=OUT)
    files.add_argument("--save", type=Path, default=None, help="folder for the classifier that was learned")
    files.add_argument(
        "--candidates", type=Path, default=None, help="lexicon of further frames, when learning from events"
    )
    files.add_argument(
        "--running-text",
        type=Path,
        default=None,
        help="events of whole texts with frames, when learning from events that were picked as examples",
    )
    input_format(files)
    add_settings(parser, AnnotateSettings)


def annotate(args: Namespace) -> None:
    done = api.annotate(
        args.source,
        args.out,
        frames=args.frames,
        save=args.save,
        candidates=args.candidates,
        running_text=args.running_text,
        format=args.format,
        skip_bad=args.skip_bad,
        **given_settings(AnnotateSettings, args),
    )
    _say_resumed(done.resumed)
    say(f"wrote {done.documents:,} documents with {done.events:,} events to {args.out}")
    say(
        f"{done.framed:,} events got a frame and {done.kept:,} had one; latent are {done.uncertain:,} "
        f"below the threshold and {done.unknown:,} of verbs without a known frame"
    )
    if done.skipped is not None:
        say(str(done.skipped))


def prepare_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = parser.add_argument_group("files")
    files.add_argument(
        "source",
        nargs="?",
        type=Path,
        default=None,
        help="one file, or a folder of shards, to be split by document id",
    )
    for split in SPLITS:
        files.add_argument(f"--{split}", type=Path, default=None, help=f"or: the file of the {split} split")
    files.add_argument("--out", type=Path, required=True, help="corpus folder to write")
    input_format(files)
    add_sized_settings(parser, PrepareSettings, argv)
    # No settings of the corpus, which is the same whoever does the work.
    add_further_settings(parser, EngineSettings, EngineSettings.names())


def prepare(args: Namespace) -> None:
    given: dict[Split, Path] = {split: args[split] for split in SPLITS if args[split] is not None}
    if (args.source is None) == (not given):
        raise UserError("name one file to be split, or --train and --test (and perhaps --valid)")
    corpus = api.prepare(
        args.source or given,
        args.out,
        format=args.format,
        skip_bad=args.skip_bad,
        preset=args.preset,
        **given_settings(PrepareSettings, args),
        **given_settings(EngineSettings, args),
    )
    manifest, wanted = corpus.manifest, PrepareSettings.of(corpus.manifest["settings"])
    for split, counts in manifest["splits"].items():
        say(
            f"{split}: {counts['documents']:,} documents, {counts['events']:,} events, "
            f"{counts['unknown_words']:,} unknown words, {counts['too_short']:,} documents too short"
        )
        if counts["one_event"] and not wanted.single_events:
            say(f"  {counts['one_event']:,} of them have one event, with nothing before or after it")
        if counts["dropped_events"]:
            dropped = f"{counts['dropped_events']:,} events without a known frame"
            say(f"  {dropped} dropped")
        if counts["cut_events"]:
            share = counts["cut_events"] / (counts["events"] + counts["cut_events"])
            beyond = f"{counts['cut_events']:,} events ({share:.0%}) after the first {corpus.events}"
            say(f"  {beyond} of their documents left out (without --events they are kept)")
        if not counts["documents"]:
            say(f"  nothing to {'train' if split == 'train' else 'measure'} on: give a file for --{split}")
    for split, count in manifest["cloze"].items() if wanted.cloze_items else ():
        few = f"not {wanted.cloze_options} different documents have {wanted.cloze_events} usable events"
        say(f"{split}: {count:,} cloze items" if count else f"{split}: no cloze items, since {few}")
        further = {kind: manifest[kind][split] for kind in ("masked", "order") if manifest[kind][split]}
        if further:
            say(f"{split}: " + ", ".join(f"{number:,} {kind} items" for kind, number in further.items()))
    for path, count in manifest["skipped"].items():
        if count:
            say(f"skipped {count:,} malformed lines of {path}")
    say(f"wrote {args.out}: {manifest['words']:,} words, {manifest['frames']:,} frames")


def data_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("action", choices=["get", "list"], help="fetch sets, or say which there are")
    parser.add_argument("names", nargs="*", help="the sets to fetch")
    parser.add_argument("--out", type=Path, default=Path("sets"), help="folder for them")


def data(args: Namespace) -> None:
    if args.action == "list":
        head = ["name", "what", "read by", "from"]
        rows = [[found.name, found.what, found.use, found.source] for found in api.public_sets()]
        show([("Public sets", head, rows)])
        return
    for got in api.get_data(args.names, args.out):
        say(f"{'fetched' if got.fetched else 'already there:'} {got.path}")


COMMANDS = (
    Command(
        "world",
        "write documents of the embedded corpus, whose distribution is known",
        "world",
        world_flags,
        world,
        ("ssdvae world events.jsonl", "ssdvae world events.jsonl.gz --documents 2000 --seed 2"),
    ),
    Command(
        "tickets",
        "write a made log of support tickets, stages partly known",
        "tickets",
        tickets_flags,
        tickets,
        ("ssdvae tickets tickets.jsonl --documents 600", "ssdvae tickets tickets.csv --known 1 --seed 2"),
    ),
    Command(
        "import",
        "convert files of events to JSON lines",
        "import_documents",
        import_flags,
        import_documents,
        (
            "ssdvae import mine.csv --out mine.jsonl",
            "ssdvae import news_TUP.txt more_TUP.txt --out news.jsonl.gz --skip-bad",
        ),
    ),
    Command(
        "extract",
        "extract events from text, parsed or not",
        "extract",
        extract_flags,
        extract,
        (
            "ssdvae extract stories --out stories.jsonl --keep-text",
            "ssdvae extract stories/ferry.conllu --out ferry.jsonl --negation mark",
        ),
    ),
    Command(
        "annotate",
        "give events their frames, each with its probability",
        "annotate",
        annotate_flags,
        annotate,
        (
            "ssdvae annotate stories.jsonl --frames verbs.csv --out framed.jsonl",
            "ssdvae annotate stories.jsonl --frames events.jsonl --out learned.jsonl",
        ),
    ),
    Command(
        "prepare",
        "make a corpus folder from documents",
        "prepare",
        prepare_flags,
        prepare,
        (
            "ssdvae prepare events.jsonl --out corpus --preset tiny",
            "ssdvae prepare tickets.csv --case ticket --head action --label stage --out log",
        ),
    ),
    Command(
        "data",
        "fetch public sets of the field: similarity, narrative cloze",
        "get_data",
        data_flags,
        data,
        ("ssdvae data list", "ssdvae data get similarity-hard nyt-cloze-valid --out sets"),
    ),
)
