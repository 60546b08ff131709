"""`ssdvae report`, of runs and of models that are no runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdvae.commands.report import write_report
from ssdvae.models.hub import SCRIPTS
from tests.commands.conftest import Ask, assert_is_a_message


def test_runs(folder: Path, tmp_path: Path, ask: Ask) -> None:
    runs = [folder / "ssdvae-exact", folder / "rnnlm"]
    ask("report", *runs, "--out", tmp_path / "page.html", "--documents", "1", "--sample", "20")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert all(run.name in page for run in runs)


def test_a_model_without_a_run_is_shown_on_its_scripts(packed: Path, tmp_path: Path) -> None:
    page = write_report(packed, tmp_path / "page.html", documents=1).read_text()
    assert "packed has no corpus of its own" in page
    assert 'id="run-0-read"' in page
    assert "Not measured yet: packed" in page
    (packed / SCRIPTS).unlink()
    page = write_report(packed, tmp_path / "page.html", documents=1).read_text()
    assert "name one by --corpus" in page


def test_a_model_without_a_run_is_shown_on_a_corpus(
    packed: Path, folder: Path, tmp_path: Path, ask: Ask
) -> None:
    out = tmp_path / "page.html"
    ask("report", packed, "--corpus", folder / "corpus", "--out", out, "--documents", "1", "--sample", "20")
    page = out.read_text()
    assert "shown on corpus" in page
    assert 'id="run-0-read"' in page


def test_no_such_run(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_is_a_message(f"report {tmp_path}/none --out {tmp_path}/p.html", "none", folder, tmp_path, capsys)
    assert_is_a_message(f"report {tmp_path} --out {tmp_path}/p.html", "config.yaml", folder, tmp_path, capsys)
