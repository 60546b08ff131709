"""The commands that pages show: their flags exist, and those of the researcher's page run."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdvae.cli import main
from tests.flags import parse_flags
from tests.pages import DOCS, commands

PAGES = [page.stem for page in sorted(DOCS.glob("*.md")) if commands(page.stem)]


def test_pages_show_commands() -> None:
    assert {"text", "logs", "research", "next", "score"} <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_the_flags_exist(page: str) -> None:
    for words in commands(page):
        parse_flags(words)


@pytest.mark.journey
@pytest.mark.parametrize("page", ["research", "reproduce"])
def test_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        assert main(words) == 0, words
