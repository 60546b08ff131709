"""What a command of the command line is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import Namespace

from ssdvae.cli.parser import Parser
from ssdvae.errors import UserError


@dataclass(frozen=True)
class Command:
    """Flags, a call of the API, and what is printed of the result."""

    name: str
    help: str
    function: str  # of the API, that does the work
    flags: Callable[[Parser, Sequence[str]], None]  # told the words: a preset among them gives defaults
    run: Callable[[Namespace], None]
    examples: tuple[str, str]
    data_first: str | None = None  # what follows its name, where the data come first and the model by --run

    def check_form(self, words: Sequence[str]) -> None:
        """The model came first once: say where it is now."""
        asks_help = any(word in ("-h", "--help") for word in words)
        if self.data_first is None or asks_help or any(w.split("=")[0] == "--run" for w in words):
            return
        folders = [word for word in words if (Path(word) / "config.json").is_file()]
        if not folders:  # the model that comes with the package answers
            return
        form = self.data_first.replace("RUN", folders[0])
        raise UserError(f"the data come first, and the model is named by --run\nssdvae {self.name} {form}")

    def parser(self, argv: Sequence[str]) -> Parser:
        description = self.help[0].upper() + self.help[1:] + "."
        parser = Parser(prog=f"ssdvae {self.name}", description=description, examples=self.examples)
        self.flags(parser, argv)
        parser.finish()
        return parser
