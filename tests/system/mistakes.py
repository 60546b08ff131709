"""Mistakes, as every command must handle them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ssdvae.cli import main


def assert_is_a_message(
    words: Sequence[str], expected: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command says what is wrong, where errors are said and without a traceback, and writes nothing."""
    before = sorted(folder.iterdir())
    assert main(list(words)) == 2
    said = capsys.readouterr()
    assert expected in said.err
    assert "Traceback" not in said.err
    assert not said.out
    assert sorted(folder.iterdir()) == before
