"""Rooms are entered in one direction: a room imports from those before it, and never from those after."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import ssdvae

SOURCE = Path(ssdvae.__file__).parent

STOREYS = [
    # What all may enter.
    {"config", "errors", "files", "limits", "locks", "shapes", "records", "weights", "runs", "measurements"}
    | {"progress", "calibration", "markdown", "pool", "cluster", "memory"},
    {"data"},
    {"storyworld", "extraction", "models"},
    {"answers"},
    {"evaluation"},
    {"training"},
    {"analysis"},
    {"report"},
    {"paper"},
    {"tour", "checking", "packing", "app"},
    {"api"},
    {"cli", "spacy_pipe"},
    {"__init__", "__main__"},
]
"""From the ground up. Rooms of one storey may use each other, as long as they do not go round in a circle."""

EXCEPTIONS: dict[tuple[str, str], str] = {}
"""Ways that point upwards, and why they are still there. One that is no longer taken has to go."""


def rooms() -> list[str]:
    """The folders and files of the package itself."""
    return sorted(
        path.stem if path.is_file() else path.name
        for path in SOURCE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    )


def imported(module: str, text: str) -> Iterator[str]:
    """The modules that a module imports, wherever in it; not those that only a type checker reads."""
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
            # `from ssdvae import api` names a module, `from ssdvae.api import train` does not.
            yield from (f"{base}.{name.name}" for name in node.names)


def ways() -> dict[tuple[str, str], list[str]]:
    """From which room one goes to which other, and where that is written."""
    known = set(rooms())
    found: dict[tuple[str, str], list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        for name in imported(".".join(("ssdvae", *parts)), path.read_text(encoding="utf-8")):
            package, *rest = name.split(".")
            if package == "ssdvae" and rest != ["__version__"]:  # the number on the door is for all to read
                room = rest[0] if rest and rest[0] in known else "__init__"
                if room != parts[0]:
                    found.setdefault((parts[0], room), []).append(f"{path.relative_to(SOURCE)}: {name}")
    return found


def storey(room: str) -> int:
    return next(number for number, names in enumerate(STOREYS) if room in names)


def test_every_room_has_its_place() -> None:
    assert [room for room in rooms() if not any(room in names for names in STOREYS)] == []


def test_no_way_leads_upwards() -> None:
    upwards = {way: where for way, where in ways().items() if storey(way[1]) > storey(way[0])}
    assert {way: where for way, where in upwards.items() if way not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() - upwards.keys() == set(), "no longer an exception: take it off the list"


def test_no_way_leads_round_in_a_circle() -> None:
    before: dict[str, set[str]] = {}
    for room, other in ways().keys() - EXCEPTIONS.keys():
        before.setdefault(room, set()).add(other)
    TopologicalSorter(before).prepare()  # CycleError, and the circle


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import ssdvae.api", ["ssdvae.api"]),
        ("from ssdvae import api, errors", ["ssdvae.api", "ssdvae.errors"]),
        ("from ssdvae.api import train", ["ssdvae.api.train"]),
        ("from . import tables", ["ssdvae.report.tables"]),
        ("from ..api import train", ["ssdvae.api.train"]),
        ("def f():\n    from ssdvae.cli.main import main", ["ssdvae.cli.main.main"]),
        ("if TYPE_CHECKING:\n    from ssdvae.api import train\nelse:\n    import os", ["os"]),
    ],
)
def test_imports_are_found_wherever_they_are(text: str, expected: list[str]) -> None:
    assert list(imported("ssdvae.report.page", text)) == expected
