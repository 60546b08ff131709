"""Messages on standard error, results on standard output."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from ssdvae.cli.layout import TableText, fitted
from ssdvae.progress import console

WIDE = 160
"""Columns of what is piped into a file, which has no width of its own."""


def say(message: str) -> None:
    """One line (or more) for the person at the terminal."""
    console().print(message, markup=False, soft_wrap=True)


class _Lines(logging.Handler):
    """Shows what the library logs, as it is."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


@contextmanager
def messages() -> Iterator[None]:
    """Show what the library has to say while a command runs."""
    log, lines = logging.getLogger("ssdvae"), _Lines()
    level = log.level
    log.addHandler(lines)
    log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(level)


def output(wide: int = WIDE) -> Console:
    """Standard output, as wide as the terminal or as COLUMNS says."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(highlight=False, width=None if known else wide)


def show(tables: Iterable[TableText], on: Console | None = None, plain: bool = False) -> None:
    """Print tables, each laid out so that it fits."""
    out = on or output()
    for title, head, rows in tables:
        out.print(Text(title, style="italic"))
        for table in fitted(head, rows, out.width, plain):
            out.print(table)
