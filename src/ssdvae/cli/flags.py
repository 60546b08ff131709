"""Settings as flags of the command line; what several commands ask for alike."""

from __future__ import annotations

import re
from argparse import SUPPRESS, Action
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, get_args

import yaml
from jsonargparse import Namespace

from ssdvae.cli.parser import Parser
from ssdvae.config import MODEL_SETTINGS, PRESETS, Setting, Settings, TrainSettings
from ssdvae.config.formats import unversioned
from ssdvae.config.presets import Preset
from ssdvae.config.settings import unknown_setting
from ssdvae.config.training import definitions, models_with
from ssdvae.errors import UserError
from ssdvae.records import read_yaml


def add_settings(parser: Parser, kind: type[Settings], choices: Mapping[str, str] = {}) -> None:
    """--config, and a flag for each setting, under its topic. What is not given is not in the result.

    ``choices`` are the values of some settings, in words, where a table says which there are.
    """
    parser.add_argument("--config", action=_ConfigFile, help="YAML file with any of these settings")
    _add_flags(parser, kind, kind.table(), choices)


def add_sized_settings(parser: Parser, kind: type[Settings], argv: Sequence[str]) -> None:
    """--preset, and the settings with the defaults that it gives, as a model may do too."""
    if "preset" not in kind.names():
        parser.add_argument(
            "--preset",
            choices=list(PRESETS),
            default=None,
            help="named size, which changes the defaults below",
        )
    parser.add_argument("--config", action=_ConfigFile, help="YAML file with any of these settings")
    known = {"preset": get_args(Preset), "model": MODEL_SETTINGS}
    asked = {name: _value_of(f"--{name}", argv) for name in known}
    # One that does not exist is told when it is parsed.
    given = {name: value for name, value in asked.items() if value in known[name]}
    _add_flags(parser, kind, definitions(kind, given))


def add_further_settings(
    parser: Parser, kind: type[Settings], names: Sequence[str], given: Mapping[str, Any] = {}
) -> None:
    """Some settings of another command, whose defaults depend on what else is asked for or ``given``."""
    table = definitions(kind, given)
    _add_flags(parser, kind, {name: table[name] for name in names}, defaults_known=False)


def given_settings(kind: type[Settings], args: Namespace) -> dict[str, Any]:
    """The settings that the command line or its --config file gives."""
    return {name: value for name, value in vars(args).items() if name in kind.names()}


def _add_flags(
    parser: Parser,
    kind: type[Settings],
    table: Mapping[str, Setting],
    choices: Mapping[str, str] = {},
    defaults_known: bool = True,
) -> None:
    """A flag for each setting: first those of all models, then those of some, then the others."""
    groups: dict[str, Any] = {}
    for name, definition in table.items():
        title = _title(kind, definition)
        if title not in groups:
            groups[title] = parser.add_argument_group(title)
        ends = [f"default: {_shown(definition.default)}"]
        if definition.default is None or not defaults_known:
            ends = []
        if definition.bounds.two_sided:
            ends.insert(0, str(definition.bounds))
        listed = choices.get(name) or (", ".join(definition.choices) if _too_wide(definition) else "")
        words = definition.help + (f": {listed}" if listed else "")
        help = words.replace("%", "%%") + (f" ({'; '.join(ends)})" if ends else "")
        flags = [definition.flag]
        if definition.kind is bool:
            flags.append(definition.flag.replace("--", "--no-", 1))
        groups[title].add_argument(
            *flags, action=_SettingFlag, dest=name, definition=definition, default=SUPPRESS, help=help
        )


def _title(kind: type[Settings], definition: Setting) -> str:
    """The topic of a setting, and the models that have it where others do not."""
    models = models_with(definition.name) if issubclass(kind, TrainSettings) else ()
    some = models and len(models) < len(MODEL_SETTINGS)
    return f"{definition.topic} (--model {', '.join(models)})" if some else definition.topic


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


METAVARS = {int: "N", float: "X", str: "TEXT", Path: "PATH"}

WIDEST = 60
"""Choices are listed in the place of a flag's value if they take no more columns than this."""


def _in_braces(definition: Setting) -> str:
    return "{" + ",".join(definition.choices) + "}"


def _too_wide(definition: Setting) -> bool:
    """Whether the choices do not fit a line: a help text can be broken into lines, these cannot."""
    return len(_in_braces(definition)) > WIDEST


class _SettingFlag(Action):
    """The value of a flag, in the type and within the bounds of its setting."""

    def __init__(self, option_strings: Sequence[str], dest: str, definition: Setting, **options: Any) -> None:
        self.definition = definition
        self.given = False
        if definition.kind is bool:
            options["nargs"] = 0
        else:
            choices = "NAME" if _too_wide(definition) else _in_braces(definition)
            options["metavar"] = choices if definition.choices else METAVARS[definition.kind]
        super().__init__(option_strings, dest, **options)

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        value: Any
        if self.definition.kind is bool:
            value = not str(option_string).startswith("--no-")
        else:
            value = self.definition.parse(values)
        if self.definition.repeatable and self.given:
            value = f"{getattr(namespace, self.dest)},{value}"
        self.given = True
        setattr(namespace, self.dest, value)


class _ConfigFile(Action):
    """Settings from a YAML file; flags win over it, wherever they stand."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, **{**options, "default": SUPPRESS, "metavar": "FILE"})

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        flags = [action for action in parser._actions if isinstance(action, _SettingFlag)]
        for name, value in read_config(Path(values), {flag.dest: flag.definition for flag in flags}).items():
            setattr(namespace, name, value)


class _YamlLoader(yaml.SafeLoader):
    """As safe as its parent, and 1e-3 is a number, which YAML 1.1 takes for text."""


_YamlLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def read_config(path: Path, known: Mapping[str, Setting]) -> dict[str, Any]:
    """The settings of a YAML file, such as the config.yaml of a run, whose corpus is not looked at."""
    values = read_yaml(path, "settings by name, as `hidden: 256`", _YamlLoader)
    try:
        if "corpus" in values:
            values = unversioned(values)
            del values["corpus"]
        return {name: _known(name, known).check(value) for name, value in values.items()}
    except UserError as error:
        raise UserError(f"{path}: {error}") from error


def _known(name: str, known: Mapping[str, Setting]) -> Setting:
    if name not in known:
        raise unknown_setting(name, tuple(known))
    return known[name]


def _value_of(flag: str, argv: Sequence[str]) -> str | None:
    """The value of a flag, before parsing: a preset gives the defaults of the flags around it."""
    for place, word in enumerate(argv):
        if word == flag and place + 1 < len(argv):
            return argv[place + 1]
        if word.startswith(flag + "="):
            return word.removeprefix(flag + "=")
    return None


class TakesArguments(Protocol):
    """A parser, or a group of its arguments."""

    def add_argument(self, *names: Any, **options: Any) -> Any: ...


def input_format(parser: TakesArguments) -> None:
    parser.add_argument(
        "--format", default=None, help="jsonl, csv, parquet, official or xes; by default as named"
    )
    parser.add_argument(
        "--skip-bad", action="store_true", help="count and report malformed input instead of stopping"
    )
