"""Settings as flags of the command line; what several commands ask for alike."""

from __future__ import annotations

import dataclasses
import re
from argparse import SUPPRESS
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, get_type_hints

from jsonargparse import ActionYesNo, ArgumentParser

from ssdvae.config import PRESETS, Settings, preset
from ssdvae.errors import UserError


class Parser(ArgumentParser):
    """One that says what is wrong in a line or two, in the words of the command line."""

    WORDING = (
        (r'Parser key "(?:\w+\.)?(\w+)":\s*', r"--\1: "),
        (r"(?<=arguments are required: )\w+\.(\w+)", r"--\1"),
        (r"<class '(\w+)'>", r"\1"),
        (r"(?:typing\.)?Literal\[(.*?)\]", r"value among \1"),
    )

    def __init__(self, **options: Any) -> None:
        # No abbreviations: --seed must not be taken for --seeds.
        super().__init__(**options, allow_abbrev=False)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        for pattern, wording in self.WORDING:
            message = re.sub(pattern, wording, message)
        raise UserError(f"{message}\nadd --help to read about the settings and their values")


def add_settings(parser: Parser, kind: type[Settings], defaults: dict[str, Any]) -> None:
    """--config, and a flag for each field: its name, type, default and help are the field's."""
    parser.add_argument("--config", action="config", help="a YAML file with any of these settings")
    _add_fields(parser, kind, kind.names(), defaults)


def add_further_settings(parser: Parser, kind: type[Settings], names: Sequence[str]) -> None:
    """Some settings of another command: one that is not given is not in the result at all."""
    _add_fields(parser, kind, names, dict.fromkeys(names, SUPPRESS))


def _add_fields(parser: Parser, kind: type[Settings], names: Sequence[str], defaults: dict[str, Any]) -> None:
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name not in names:
            continue
        flag = "--" + field.name.replace("_", "-")
        default = defaults.get(field.name, field.default)
        how: dict[str, Any] = {"type": hints[field.name]}
        if hints[field.name] is bool:
            how = {"action": ActionYesNo(no_prefix="no-")}
        parser.add_argument(flag, default=default, help=field.metadata["help"], **how)


def add_sized_settings(parser: Parser, kind: type[Settings], argv: Sequence[str]) -> None:
    """--preset, and the settings with the defaults that it gives."""
    name = _value_of("--preset", argv)
    parser.add_argument(
        "--preset", choices=list(PRESETS), default=None, help="a named size for all that follows"
    )
    add_settings(parser, kind, preset(name) if name in PRESETS else {})


def _value_of(flag: str, argv: Sequence[str]) -> str | None:
    """The value of a flag, before parsing: a preset gives the defaults of the flags around it."""
    for place, word in enumerate(argv):
        if word == flag and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(flag + "="):
            return word.removeprefix(flag + "=")
    return None


def input_format(parser: Parser) -> None:
    parser.add_argument("--format", default=None, help="jsonl, csv, parquet or official; by default as named")
    parser.add_argument(
        "--skip-bad", action="store_true", help="count and report malformed input instead of stopping"
    )


def json_lines(path: Path) -> Path:
    """A file that will be read again by its name."""
    if not path.name.endswith((".jsonl", ".jsonl.gz")):
        raise UserError(f"found {path} as the file to write, expected a name in .jsonl or .jsonl.gz")
    return path
