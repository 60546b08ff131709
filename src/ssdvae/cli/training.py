"""Train: a model on a corpus folder, and pack it to give away."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import Namespace

from ssdvae import api
from ssdvae.api.choices import task_choices
from ssdvae.cli.command import Command
from ssdvae.cli.console import say
from ssdvae.cli.flags import add_settings, add_sized_settings, given_settings
from ssdvae.cli.parser import Parser
from ssdvae.config import EvaluateSettings, TrainSettings
from ssdvae.errors import UserError


def train_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("corpus", nargs="?", type=Path, default=None, help="corpus folder")
    files.add_argument("--out", type=Path, default=None, help="run folder to write")
    files.add_argument("--resume", type=Path, default=None, help="resume this run; takes no other flag")
    files.add_argument(
        "--continue",
        dest="go_on",
        action="store_true",
        help="go on with the run in --out if it is there already, and begin it otherwise",
    )
    add_sized_settings(parser, TrainSettings, argv)


def train(args: Namespace) -> None:
    if args.resume is not None:
        if given_settings(TrainSettings, args) or args.corpus or args.out or args.go_on:
            raise UserError("--resume uses the settings of the run and takes nothing else")
        api.resume(args.resume)
    elif args.corpus is None or args.out is None:
        raise UserError("name a corpus folder and --out RUN, or --resume RUN")
    else:
        api.train(args.corpus, args.out, go_on=args.go_on, **given_settings(TrainSettings, args))


def pack_flags(parser: Parser, argv: Sequence[str]) -> None:
    files = parser.add_argument_group("files")
    files.add_argument("run", type=Path, help="run folder")
    files.add_argument("--out", type=Path, required=True, help="folder to write")
    files.add_argument("--corpus", type=Path, default=None, help="corpus folder; by default that of the run")
    files.add_argument(
        "--about", type=Path, default=None, help="Markdown for the card: the data, their licences, the limits"
    )
    files.add_argument(
        "--license", type=Path, default=None, help="licence of the weights, to be put beside them"
    )
    add_settings(parser, EvaluateSettings, choices={"tasks": task_choices()})


def pack(args: Namespace) -> None:
    given = {name: args[name] for name in ("corpus", "about", "license")}
    packed = api.pack(args.run, args.out, **given, **given_settings(EvaluateSettings, args))
    cost = "" if packed.loss is None else f"; half precision changes the perplexity by {packed.loss:+.3%}"
    say(f"wrote {packed.folder}: {packed.bytes / 1e6:.1f} MB{cost}")


COMMANDS = (
    Command(
        "train",
        "train a model on a corpus folder, or resume a run",
        "train",
        train_flags,
        train,
        (
            "ssdvae train corpus --out runs/first --observe 0.9",
            "ssdvae train --resume runs/first",
        ),
    ),
    Command(
        "pack",
        "make a folder of a run to give away: half the bytes, and a card",
        "pack",
        pack_flags,
        pack,
        (
            "ssdvae pack runs/first --out my-model",
            "ssdvae pack runs/first --out my-model --about about.md --license LICENSE",
        ),
    ),
)
