"""The demo, in small: what it shows and what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssdvae.demo import TRAIN, run_demo
from tests.system.test_commands import KEYS


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = TRAIN.changed(epochs=3, hidden=16)
    scores = run_demo(tmp_path / "demo", documents=600, settings=settings)
    assert json.loads((tmp_path / "demo" / "scores.json").read_text()) == scores
    assert scores["ssdvae"].keys() >= KEYS
    assert scores["ssdvae"]["words"] == scores["best"]["words"]
    # A bound cannot beat the truth, nor a model the best possible predictor.
    assert scores["ssdvae"]["ppl_bound"] > scores["best"]["ppl"]
    assert scores["ssdvae"]["frame_accuracy"] < scores["best"]["frame_accuracy"]
    shown = capsys.readouterr().out
    assert "best possible" in shown
    assert "inferred frame" in shown
    page = tmp_path / "demo" / "report.html"
    assert page.as_uri() in shown.splitlines()[-1]
    assert f"{scores['ssdvae']['ppl_bound']:.2f}" in page.read_text(encoding="utf-8")
    # A second run finds everything done, and shows the same.
    again = run_demo(tmp_path / "demo", documents=600, settings=settings)
    assert again == scores
    assert capsys.readouterr().out == shown
