"""Parsing of one command: errors in the words of the command line, examples at the end of its --help."""

from __future__ import annotations

import re
from argparse import Action
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from ssdvae.errors import UserError

FORMER = {"--tensorboard": "it has become --track tensorboard"}
"""Flags of earlier versions."""


class _HelpFormatter(DefaultHelpFormatter):
    """One that leaves the lines of the examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" not in text:
            return super()._fill_text(text, width, indent)
        return "\n".join(indent + line for line in text.splitlines())

    def _expand_help(self, action: Action) -> str:
        """Types in plain words, and no default where there is none."""
        text = super()._expand_help(action)
        for pattern, wording in (
            (r"type: <class '(\w+)'>", lambda found: f"type: {found[1].lower()}"),
            (r"type: Literal\[.*?\],? ?", ""),
            (r"(, )?default: null", ""),
            (r" \(\)", ""),
        ):
            text = re.sub(pattern, wording, text)
        return text


class Parser(ArgumentParser):
    """One that says what is wrong in a line or two."""

    WORDING = (
        (r'Parser key "(?:\w+\.)?(\w+)":\s*', r"--\1: "),
        (r"<class '(\w+)'>", r"\1"),
        (r"(?:typing\.)?Literal\[(.*?)\]", r"value among \1"),
    )

    def __init__(self, *, examples: Sequence[str] = (), **options: Any) -> None:
        epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)]) if examples else None
        # No abbreviations: --seed must not be taken for --seeds.
        super().__init__(**options, epilog=epilog, formatter_class=_HelpFormatter, allow_abbrev=False)

    def finish(self) -> None:
        """A usage of one line (the flags are listed anyway), and what all commands have at the end."""
        actions = [action for action in self._actions if action.dest != "help"]
        several = {"+": "{0} [{0} ...]", "*": "[{0} ...]", "?": "[{0}]"}
        words = [several.get(str(a.nargs), "{0}").format(a.dest) for a in actions if not a.option_strings]
        words += [
            f"{a.option_strings[0]} {a.dest.upper()}" for a in actions if a.option_strings and a.required
        ]
        self.usage = " ".join(["%(prog)s", *words, "[flags]"])
        self._action_groups = sorted(self._action_groups, key=lambda group: group.title == "options")

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        for pattern, wording in self.WORDING:
            message = re.sub(pattern, wording, message)
        message = re.sub(r"(?<=arguments are required: ).*", self._as_flags, message)
        hint = self._meant(message) or f"see {self.prog} --help"
        raise UserError(f"{message}\n{hint}")

    def _as_flags(self, names: re.Match[str]) -> str:
        """The names of settings as they are written on the command line."""
        flags = {action.dest: action.option_strings for action in self._actions}
        return ", ".join((flags.get(name) or [name])[0] for name in names[0].split(", "))

    def _meant(self, message: str) -> str | None:
        """What a flag, or a key of a --config file, that does not exist may stand for."""
        flags = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        if wrong := re.search(r"[Uu]nrecognized arguments: .*?(--[\w-]+)", message):
            return FORMER.get(wrong[1]) or did_you_mean(wrong[1], flags)
        if wrong := re.search(r"""(?:[Kk]ey|[Oo]ption|[Gg]roup)\s+['"](\w+)['"]""", message):
            return did_you_mean(wrong[1], [flag[2:].replace("-", "_") for flag in flags])
        return None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A question, if one of the known words is like this one."""
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None
