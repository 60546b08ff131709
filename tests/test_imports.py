"""Imports point one way: a package imports from those before it, never from those after it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ssdvae

SOURCE = Path(ssdvae.__file__).parent

GROUND = {"io", "options", "data.events"}

LAYERS = [
    GROUND,
    {"engine"},
    {"data"},
    {"storyworld", "extraction", "models"},
    {"inference"},
    {"evaluation"},
    {"training"},
    {"analysis"},
    {"report"},
    {"reproduction"},
    {"commands", "app"},
    {"cli", "spacy_pipe"},
    {"__main__"},
    {"__init__"},
]
"""From the ground up. Packages of one layer may import each other, as long as there is no cycle.

The ``options.py`` of every package counts as ``options``: they import only what is on the ground.
"""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""Imports that point upwards, and why. One that is gone has to go from this list."""


def packages() -> list[str]:
    """Return the packages and modules directly in ssdvae."""
    return sorted(
        path.stem if path.is_file() else path.name
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    )


def package_of(*parts: str) -> str:
    """Return the package that a module belongs to, by the parts of its name."""
    if len(parts) > 1 and parts[1] == "options":
        return "options"
    if parts[:2] == ("data", "events"):
        return "data.events"
    return parts[0] if parts and parts[0] in packages() else "__init__"


def imported(module: str, text: str) -> Iterator[str]:
    """Yield the modules that a module imports, at its top or in functions, but not for types alone."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join([*module.split(".")[: -node.level], *filter(None, [base])])
            yield from (f"{base}.{name.name}" for name in node.names)


def all_imports() -> dict[tuple[str, str], list[str]]:
    """Return which package imports which other, and where."""
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        importer = package_of(*parts)
        for name in imported(".".join(("ssdvae", *parts)), path.read_text(encoding="utf-8")):
            top, *rest = name.split(".")
            if top == "ssdvae" and rest != ["__version__"]:  # which all may read
                package = package_of(*rest)
                if package != importer:
                    found.setdefault((importer, package), []).append(f"{path.relative_to(SOURCE)}: {name}")
    return found


def layer(package: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if package in names)


def test_every_package_has_its_layer() -> None:
    assert [package for package in packages() if not any(package in names for names in LAYERS)] == []


def test_no_import_points_upwards() -> None:
    upwards = {pair: where for pair, where in all_imports().items() if layer(pair[1]) > layer(pair[0])}
    assert {pair: where for pair, where in upwards.items() if pair not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() - upwards.keys() == set(), "no longer an exception: take it off the list"


def test_packages_import_each_other_without_a_cycle() -> None:
    before: dict[str, set[str]] = {}
    for package, other in all_imports().keys() - EXCEPTIONS.keys():
        if other not in GROUND:
            before.setdefault(package, set()).add(other)
    TopologicalSorter(before).prepare()  # raises CycleError


def test_modules_on_the_ground_import_each_other_without_a_cycle() -> None:
    modules = {
        ".".join(("ssdvae", *path.relative_to(SOURCE).with_suffix("").parts)): path
        for path in SOURCE.rglob("*.py")
        if package_of(*path.relative_to(SOURCE).with_suffix("").parts) in GROUND
    }
    assert len(modules) > 15
    before = {
        module: {
            other
            for name in imported(module, path.read_text(encoding="utf-8"))
            for other in (name, name.rpartition(".")[0])
            if other in modules
        }
        for module, path in modules.items()
    }
    TopologicalSorter(before).prepare()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import ssdvae.data", ["ssdvae.data"]),
        ("from ssdvae import data, io", ["ssdvae.data", "ssdvae.io"]),
        ("from ssdvae.data.corpus import Corpus", ["ssdvae.data.corpus.Corpus"]),
        ("from . import charts", ["ssdvae.report.charts"]),
        ("from ..commands import train", ["ssdvae.commands.train"]),
        ("def f():\n    from ssdvae.cli import main", ["ssdvae.cli.main"]),
        ("if TYPE_CHECKING:\n    from ssdvae.cli import main\nelse:\n    import os", ["os"]),
    ],
)
def test_imports_are_found_wherever_they_are(text: str, expected: list[str]) -> None:
    assert list(imported("ssdvae.report.page", text)) == expected
