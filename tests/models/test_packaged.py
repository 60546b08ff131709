"""A model that comes with the package is found by its name, and is what answers where none is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ssdvae
from ssdvae.models import packaged
from tests.report.conftest import runs as runs


def test_by_its_name_and_by_none(runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packaged, "FOLDER", tmp_path)
    with pytest.raises(ssdvae.UserError, match="comes without wiki-en"):
        ssdvae.load()
    shutil.copytree(runs[0], tmp_path / "wiki-en")
    frames = ssdvae.load(runs[0]).frames.names
    assert ssdvae.load().frames.names == frames
    assert ssdvae.load("wiki-en").frames.names == frames
    assert packaged.packaged("../wiki-en") is None
    assert packaged.packaged("other") is None
