"""Releases: one version everywhere, and every package it was tested with is named."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ssdvae

ROOT = Path(__file__).parents[1]
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
# What comes with every Python, or is the package itself.
AT_HOME = {"pip", "setuptools", "ssdvae"}


def test_the_version_is_the_same_everywhere() -> None:
    assert VERSION.fullmatch(ssdvae.__version__)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert str(cited["version"]) == ssdvae.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *released = re.findall(r"^## \[(.+?)\]", changes, re.MULTILINE)
    assert first == "Unreleased"
    assert released[:1] in ([], [ssdvae.__version__]), "the newest release, if there was one"


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def needed(requirements: list[str], extras: set[str]) -> Iterator[tuple[str, set[str]]]:
    """The packages of some requirements that hold on this machine, each with its own extras."""
    for text in requirements:
        found = Requirement(text)
        if found.marker is None or any(found.marker.evaluate({"extra": extra}) for extra in ["", *extras]):
            yield canonicalize_name(found.name), set(found.extras)


def test_every_package_that_is_brought_along_has_its_tested_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    own = [line for lines in extras.values() for line in lines]
    waiting = list(needed([*project["dependencies"], *own], set()))
    seen: set[tuple[str, frozenset[str]]] = set()
    missing, pinned = set(), pins()
    while waiting:
        name, more = waiting.pop()
        if name in AT_HOME or (name, frozenset(more)) in seen:
            continue
        seen.add((name, frozenset(more)))
        if name not in pinned:
            missing.add(name)
        try:
            waiting += needed(metadata.requires(name) or [], more)
        except metadata.PackageNotFoundError:
            continue
    assert len(seen) > 100
    assert missing == set()
