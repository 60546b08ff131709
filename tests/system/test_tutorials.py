"""The commands that pages show: their flags exist, and those of the researcher's page run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdvae.cli import main
from tests.flags import parse_flags
from tests.pages import DOCS, blocks, commands, section

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


@pytest.mark.journey
def test_ten_labelled_stories_label_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of the page runs as it stands, and labels more events than a verb alone can tell."""
    monkeypatch.chdir(tmp_path)
    page = section("tutorial-scripts")
    Path("bath.txt").write_text(blocks(page, "")[0])
    names: dict[str, Any] = {}
    exec("".join(blocks(page, "python")), names)
    assert names["accuracy"] > 0.8
    assert all(Path(f"script-{name}.svg").is_file() for name in ("none", "ten"))
