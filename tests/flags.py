"""Command lines: the values that flags give, and what --help shows."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from ssdvae import cli


def parse_flags(words: Sequence[str]) -> dict[str, Any]:
    """Return what a command would be called with: ``parse_flags(["train", "corpus", "--epochs", "3"])``."""
    name, *rest = words
    command = cli.find_command(name)
    found: dict[str, Any] = {}

    @functools.wraps(command.run)
    def collect(**kwargs: Any) -> None:
        found.update(kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cli, "find_command", lambda name: replace(command, run=collect, show=None))
        cli.run(name, rest)
    return found


def shown_help(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what --help shows, in one line and without boxes."""
    capsys.readouterr()
    assert cli.main([*words, "--help"]) == 0
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", capsys.readouterr().out).split())
