"""README.md and the pages show what the commands print today."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def outputs() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "outputs.py"))


def test_the_readme_shows_what_is_printed(outputs: dict[str, Any], tmp_path: Path) -> None:
    page = ROOT / "README.md"
    shown, made = page.read_text(encoding="utf-8"), outputs["made"](page, tmp_path)
    assert outputs["same"](shown, made), f"run python docs/outputs.py\n{made}"


@pytest.mark.slow
def test_all_pages_show_what_is_printed(outputs: dict[str, Any], tmp_path: Path) -> None:
    stale = {
        str(page.relative_to(ROOT)): made
        for page, made in outputs["outputs"](tmp_path)
        if not outputs["same"](page.read_text(encoding="utf-8"), made)
    }
    assert stale == {}, "run python docs/outputs.py"


@pytest.mark.parametrize(
    ("shown", "made", "same"),
    [
        ("│ Arrest │ 6.8% │", "│ Arrest │ 6.9% │", True),
        ("│ Arrest │ 6.8% │", "│ Arrest │ 7.8% │", False),
        ("│ Arrest │ 6.8% │", "│ Killing │ 6.8% │", False),
        ("┏━━┓", "┏━━━━━┓", True),
        ("ppl 4.85  27 s", "ppl 4.85  3 s", True),
        ("wrote 1,000 documents", "wrote 500 documents", False),
        ("one line\n", "one line\nand another\n", False),
    ],
)
def test_only_numbers_may_differ_and_only_a_little(
    outputs: dict[str, Any], shown: str, made: str, same: bool
) -> None:
    assert outputs["same"](shown, made) == same


def test_the_readme_is_short() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 110
    assert max(map(len, lines)) <= 100


def test_pages_are_short() -> None:
    pages = {page.stem: len(page.read_text(encoding="utf-8").splitlines()) for page in ROOT.glob("docs/*.md")}
    others = {"results", "performance", "reliability"}
    assert {page: lines for page, lines in pages.items() if lines > 200 and page not in others} == {}
