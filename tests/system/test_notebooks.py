"""The notebooks: kept as they ran or as they are; what they call is there; they run, and show pictures."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import ssdvae

nbformat = pytest.importorskip("nbformat")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))
LARGEST = 300_000
"""Bytes of a notebook with its output."""


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def cells(notebook: Any) -> Iterator[Any]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def check_output(notebook: Any) -> None:
    """All cells ran, in their order and without an error, and some of them show a picture."""
    ran = list(cells(notebook))
    assert [cell.execution_count for cell in ran] == [*range(1, len(ran) + 1)]
    outputs = [output for cell in ran for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    pictures = [output for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert pictures


def test_they_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["logs", "quickstart", "research"]


def test_a_notebook_is_kept_with_all_that_it_showed_or_with_nothing(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    if any(cell.execution_count is not None for cell in cells(notebook)):
        check_output(notebook)
    assert path.stat().st_size < LARGEST
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(home|tmp|root|work|Users)/", text), "nothing of the machine that it ran on"


def test_what_a_notebook_calls_is_there(path: Path) -> None:
    """The names that it imports, the functions of the package, and their arguments."""
    called = set()
    for cell in cells(nbformat.read(path, as_version=4)):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("ssdvae"):
                assert all(hasattr(import_module(str(node.module)), name.name) for name in node.names)
            if isinstance(node, ast.Call) and re.fullmatch(r"ssdvae\.\w+", ast.unparse(node.func)):
                name = ast.unparse(node.func).removeprefix("ssdvae.")
                takes = inspect.signature(getattr(ssdvae, name)).parameters
                assert {word.arg for word in node.keywords} <= takes.keys(), name
                called.add(name)
    assert {"prepare", "train", "evaluate", "draw"} <= called


@pytest.mark.journey
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=900, resources=resources).execute()
    check_output(notebook)
