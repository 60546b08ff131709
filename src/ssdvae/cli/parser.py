"""Parsing of one command: errors in the words of the command line, examples at the end of its --help."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from ssdvae.errors import UserError


class _HelpFormatter(DefaultHelpFormatter):
    """One that leaves the lines of the examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" not in text:
            return super()._fill_text(text, width, indent)
        return "\n".join(indent + line for line in text.splitlines())


class Parser(ArgumentParser):
    """One that says what is wrong in a line or two."""

    WORDING = (
        (r'Parser key "(?:\w+\.)?(\w+)":\s*', r"--\1: "),
        (r"(?<=arguments are required: )\w+\.(\w+)", r"--\1"),
        (r"<class '(\w+)'>", r"\1"),
        (r"(?:typing\.)?Literal\[(.*?)\]", r"value among \1"),
    )

    def __init__(self, *, examples: Sequence[str] = (), **options: Any) -> None:
        epilog = "\n".join(["examples:", *(f"  {example}" for example in examples)]) if examples else None
        # No abbreviations: --seed must not be taken for --seeds.
        super().__init__(**options, epilog=epilog, formatter_class=_HelpFormatter, allow_abbrev=False)

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        for pattern, wording in self.WORDING:
            message = re.sub(pattern, wording, message)
        hint = self._meant(message) or f"see {self.prog} --help"
        raise UserError(f"{message}\n{hint}")

    def _meant(self, message: str) -> str | None:
        """What a flag, or a key of a --config file, that does not exist may stand for."""
        flags = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        if wrong := re.search(r"[Uu]nrecognized arguments: .*?(--[\w-]+)", message):
            return did_you_mean(wrong[1], flags)
        if wrong := re.search(r"""(?:[Kk]ey|[Oo]ption|[Gg]roup)\s+['"](\w+)['"]""", message):
            return did_you_mean(wrong[1], [flag[2:].replace("-", "_") for flag in flags])
        return None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """A question, if one of the known words is like this one."""
    near = get_close_matches(word, list(known), n=1)
    return f"did you mean {near[0]}?" if near else None
