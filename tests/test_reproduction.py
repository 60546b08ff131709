"""docs/reproduction.md shows what the figures in docs/cells say."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from ssdvae.report.pictures import Picture

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "reproduction.py"))


def test_its_pictures_are_those_of_the_cells(made: dict[str, Any]) -> None:
    for name, (title, figure) in made["PICTURES"].items():
        drawn = Picture(made["picture"](title, figure)).svg()
        assert (DOCS / name).read_text(encoding="utf-8") == drawn, f"{name}: run python docs/reproduction.py"


def test_its_tables_are_those_of_the_cells(made: dict[str, Any]) -> None:
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    for table in made["TABLES"]:
        assert table() in page, f"{table.__name__}: run python docs/reproduction.py"
