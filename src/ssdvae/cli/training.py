"""Train: a model on a corpus folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jsonargparse import Namespace

from ssdvae import api
from ssdvae.cli.command import Command
from ssdvae.cli.flags import add_sized_settings, given_settings
from ssdvae.cli.parser import Parser
from ssdvae.config import TRAIN_DEFAULTS, TrainSettings
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
    add_sized_settings(parser, TrainSettings, argv, TRAIN_DEFAULTS)


def train(args: Namespace) -> None:
    if args.resume is not None:
        if given_settings(TrainSettings, args) or args.corpus or args.out or args.go_on:
            raise UserError("--resume uses the settings of the run and takes nothing else")
        api.resume(args.resume)
    elif args.corpus is None or args.out is None:
        raise UserError("name a corpus folder and --out RUN, or --resume RUN")
    else:
        api.train(args.corpus, args.out, go_on=args.go_on, **given_settings(TrainSettings, args))


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
)
