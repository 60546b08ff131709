"""`ssdvae data`: a set is downloaded once, and what there is to download is listed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ssdvae.cli import main
from ssdvae.commands.data import get_data
from ssdvae.data.benchmarks import SETS, PublicSet
from tests.data.test_download import CONTENT, DIGEST, Server, server  # noqa: F401  # a fixture


def test_the_command_and_the_function(
    server: Server,  # noqa: F811  # the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    toy = PublicSet("toy", "a toy", server.url, DIGEST, len(CONTENT), "Nobody", "--mcnc")
    monkeypatch.setitem(SETS, "toy", toy)
    assert main(["data", "get", "toy", "--out", str(tmp_path)]) == 0
    assert "downloaded" in capsys.readouterr().err
    (again,) = get_data("toy", tmp_path)
    assert (again.path, again.fetched) == (tmp_path / "toy.txt", False)
    monkeypatch.setitem(SETS, "toy-2", replace(toy, name="toy-2"))
    monkeypatch.setitem(SETS, "toys", replace(toy, name="toys"))
    assert [got.name for got in get_data("toy", tmp_path)] == ["toy", "toy-2"]
    assert main(["data", "list"]) == 0
    assert "a toy" in capsys.readouterr().out
    assert main(["data", "get", "to", "--out", str(tmp_path)]) == 2
    assert "no set 'to'; there are: similarity-hard" in capsys.readouterr().err
    assert main(["data", "get"]) == 2
    assert main(["data", "fetch"]) == 2
