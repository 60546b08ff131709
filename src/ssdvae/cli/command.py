"""What a command of the command line is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from jsonargparse import Namespace

from ssdvae.cli.parser import Parser


@dataclass(frozen=True)
class Command:
    """Flags, a call of the API, and what is printed of the result."""

    name: str
    help: str
    function: str  # of the API, that does the work
    flags: Callable[[Parser, Sequence[str]], None]  # told the words: a preset among them gives defaults
    run: Callable[[Namespace], None]
    examples: tuple[str, str]

    def parser(self, argv: Sequence[str]) -> Parser:
        description = self.help[0].upper() + self.help[1:] + "."
        parser = Parser(prog=f"ssdvae {self.name}", description=description, examples=self.examples)
        self.flags(parser, argv)
        parser.finish()
        return parser
