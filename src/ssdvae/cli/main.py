"""The command line: which command is meant, and what to say when something is wrong."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ssdvae import __version__
from ssdvae.cli import asking, data, demo, looking, measuring, paper, training
from ssdvae.cli.command import Command
from ssdvae.cli.console import messages, say
from ssdvae.cli.parser import did_you_mean
from ssdvae.errors import UserError
from ssdvae.progress import console

GROUPS: dict[str, tuple[Command, ...]] = {
    "start here": demo.COMMANDS,
    "get data": data.COMMANDS,
    "train": training.COMMANDS,
    "measure": measuring.COMMANDS,
    "ask": asking.COMMANDS,
    "look": looking.COMMANDS,
    "paper": paper.COMMANDS,
}

COMMANDS = {command.name: command for commands in GROUPS.values() for command in commands}


def usage() -> str:
    """What `ssdvae --help` says."""
    lines = [
        "usage: ssdvae COMMAND ...",
        "",
        "Learn what usually happens next, from event sequences with partly known frames.",
    ]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:", *(f"  {command.name:<11}{command.help}" for command in commands)]
    lines += [
        "",
        "options:",
        "  -h, --help  show this and exit; see COMMAND --help for the flags of a command",
        "  --version   show the version and exit",
        "",
        "examples:",
        "  ssdvae demo",
        '  ssdvae next "arrested police suspect in"',
        "  ssdvae train --help",
    ]
    return "\n".join(lines)


def _config_first(words: Sequence[str]) -> list[str]:
    """The words with --config moved to the front, so that flags win over the file wherever they stand."""
    for place, word in enumerate(words):
        if word == "--config" or word.startswith("--config="):
            config = words[place : place + (2 if word == "--config" else 1)]
            return [*config, *words[:place], *words[place + len(config) :]]
    return list(words)


def _command(name: str) -> Command:
    if name in COMMANDS:
        return COMMANDS[name]
    hint = did_you_mean(name, COMMANDS) or f"there are: {', '.join(COMMANDS)}"
    raise UserError(f"no command {name!r}; {hint}\nsee ssdvae --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake is a message and the exit code 2, never a traceback."""
    name, *words = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help", "--version"):
        print(f"ssdvae {__version__}" if name == "--version" else usage())
        return 0
    try:
        with messages():
            command, words = _command(name), _config_first(words)
            command.check_form(words)
            command.run(command.parser(words).parse_args(words))
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
