"""The commands of the tutorials, as they stand there, one after another in an empty folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ssdvae.cli import main
from tests.extraction.conftest import spacy_model as spacy_model  # a fixture
from tests.extraction.test_documented_road import write_stories
from tests.flags import parse_flags

TUTORIALS = sorted((Path(__file__).parents[2] / "docs" / "tutorials").glob("*.md"))


def blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[list[str]]:
    lines = "".join(blocks(page, "sh")).replace("\\\n", " ").splitlines()
    words = [shlex.split(line) for line in lines]
    assert all(program == "ssdvae" for program, *_ in words)
    return [rest for _, *rest in words]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_commands_are_there(page: Path) -> None:
    found = commands(page)
    assert len(found) >= 3
    for name, *words in found:
        parse_flags([name, *words])


@pytest.mark.journey
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs(
    page: Path, spacy_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_stories(tmp_path / "stories", 40)
    for lexicon in blocks(page, "csv"):
        (tmp_path / "verbs.csv").write_text(lexicon)
    for words in commands(page):
        given = [str(spacy_model) if word == "en_core_web_sm" else word for word in words]
        assert main(given) == 0, words
