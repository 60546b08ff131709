"""The commands, one module each: the function, the options that it takes, how its result is printed.

A module has a ``COMMAND``. Modules import what is heavy inside functions, so that ``ssdvae --help`` is fast.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae.io.errors import UserError
from ssdvae.options import Options

AnyPath = str | Path

GROUPS: dict[str, dict[str, str]] = {
    "start here": {"demo": "demo"},
    "get data": {
        "world": "world",
        "tickets": "tickets",
        "data": "data",
        "import": "import_documents",
        "extract": "extract",
        "annotate": "annotate",
        "prepare": "prepare",
    },
    "train": {"train": "train", "pack": "pack"},
    "measure": {"evaluate": "evaluate", "scores": "scores", "check": "check"},
    "ask": {
        "infer": "infer",
        "next": "next_events",
        "score": "score",
        "fill": "fill",
        "embed": "embed",
        "similar": "similar",
        "generate": "generate",
    },
    "look": {"explain": "explain", "report": "report", "explore": "explore"},
    "paper": {"reproduce": "reproduce"},
}
"""The commands by topic, and the module of each."""


@dataclass(frozen=True)
class Command:
    """A command: ``run`` is called with the flags that were given, ``show`` prints what it returns.

    The flags are the parameters that the docstring of ``run`` describes under ``Args:``; the first one and
    lists behind it are given without a name. If there is a ``record``, ``--json`` prints it instead.
    """

    run: Callable[..., Any]
    show: Callable[[Any], None] | None = None
    examples: tuple[str, ...] = ()
    record: Callable[[Any], Any] | None = None

    @property
    def options(self) -> tuple[type[Options], ...]:
        """The options classes that ``with_options`` gave to the function."""
        return getattr(self.run, "options", ())

    @property
    def summary(self) -> str:
        """The first line of the docstring, as help shows it."""
        text = inspect.cleandoc(self.run.__doc__ or "").split("\n")[0].rstrip(".")
        return text[0].lower() + text[1:]


def jsonl_path(out: AnyPath) -> Path:
    """Return the path of a file of JSON lines to write; its name tells its format when it is read."""
    if not str(out).endswith((".jsonl", ".jsonl.gz")):
        raise UserError(f"found {out} as the file to write, expected a name in .jsonl or .jsonl.gz")
    return Path(out)


def jsonl_path_or_shards(out: AnyPath) -> Path:
    """Return the path of a file of JSON lines, or of a folder for shards: any name without an ending."""
    return jsonl_path(out) if Path(out).suffix else Path(out)


def paths(given: AnyPath | Iterable[AnyPath]) -> list[Path]:
    """Return one path or several as a list."""
    return [Path(given)] if isinstance(given, str | Path) else [Path(path) for path in given]
