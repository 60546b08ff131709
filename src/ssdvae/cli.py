"""The command line: finds and runs a command, shows errors."""

from __future__ import annotations

import codecs
import json
import os
import sys
import threading
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from textwrap import wrap

from ssdvae import __version__
from ssdvae.commands import GROUPS, Command
from ssdvae.commands.console import messages, say
from ssdvae.io.errors import UserError
from ssdvae.io.progress import ABANDONED, console
from ssdvae.io.records import to_json
from ssdvae.options import read_config

MODULES = {name: module for commands in GROUPS.values() for name, module in commands.items()}


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Return the characters that an encoding does not have as JSON writes them."""
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error("escape", _escape)


def find_command(name: str) -> Command:
    """Return a command by its name."""
    if name not in MODULES:
        near = get_close_matches(name, MODULES, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(MODULES)}"
        raise UserError(f"no command {name!r}; {hint}\nsee ssdvae --help")
    command: Command = import_module(f"ssdvae.commands.{MODULES[name]}").COMMAND
    return command


def usage() -> str:
    """Return what `ssdvae --help` prints."""
    lines = ["usage: ssdvae COMMAND ...", "", "Learn what usually happens next from sequences of events."]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:"]
        for name in commands:
            lines += wrap(
                find_command(name).summary, 80, initial_indent=f"  {name:<11}", subsequent_indent=" " * 13
            )
    lines += ["", "options:", "  -h, --help  show this and exit; COMMAND --help shows the flags of a command"]
    lines += ["  --version   show the version and exit", "", "examples:", "  ssdvae demo"]
    return "\n".join([*lines, '  ssdvae next "arrested police suspect in"', "  ssdvae train --help"])


def run(name: str, words: Sequence[str]) -> None:
    """Find a command and run it."""
    execute(f"ssdvae {name}", find_command(name), words)


def execute(program: str, command: Command, words: Sequence[str]) -> None:
    """Parse the words of a command, run its function and print the result; help names it ``program``."""
    from cyclopts import CycloptsError

    from ssdvae.commands.flags import build_parser

    app = build_parser(program, command, words)
    try:
        target, bound, _ = app.parse_args(
            list(words), exit_on_error=False, print_error=False, help_on_error=False
        )
    except CycloptsError as error:
        if isinstance(error.__cause__, UserError):
            raise error.__cause__ from error
        raise UserError(f"{error}\nsee {program} --help") from error
    if getattr(target, "__name__", "") != "collect":
        target(*bound.args, **bound.kwargs)  # --help
        return
    values = dict(bound.arguments)
    if (config := values.pop("config", None)) is not None:
        values = {**read_config(config, command.options), **values}
    for kind in command.options:
        for repeated in getattr(kind, "repeatable", frozenset()) & values.keys():
            if isinstance(values[repeated], list):
                values[repeated] = ",".join(values[repeated])
        kind.of(values)  # refuse wrong values before anything is read
    json = command.record is not None and values.pop("json", False)
    result = command.run(**values)
    if json and command.record is not None:
        print(to_json(command.record(result)))
    elif command.show is not None:
        command.show(result)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; one of several processes ends here."""
    code = run_safely(argv)
    torch = sys.modules.get("torch")
    shared = torch is not None and torch.distributed.is_available() and torch.distributed.is_initialized()
    if shared or any(thread.name == ABANDONED for thread in threading.enumerate()):
        # Gloo's destructors now and then abort a process that has done its work, and torchrun takes that for
        # a failure; so do torch's while another thread computes. All files are written by now, so the process
        # ends without them.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def run_safely(argv: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake is a message and the exit code 2, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="escape")  # not every terminal has all characters
    name, *words = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help", "--version"):
        print(f"ssdvae {__version__}" if name == "--version" else usage())
        return 0
    try:
        with messages():
            run(name, words)
    except UserError as error:
        console().print("[bold red]error:[/] ", end="")
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
