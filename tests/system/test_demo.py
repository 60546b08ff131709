"""The demo, in small: what it shows and what it leaves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssdvae.cli.demo import show_tour
from ssdvae.tour import TRAIN, take_tour
from tests.system.test_commands import KEYS


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = TRAIN.changed(epochs=3, hidden=16)
    tour = take_tour(tmp_path / "demo", documents=600, settings=settings)
    scores = tour.scores
    assert capsys.readouterr().out == ""
    show_tour(tour)
    assert json.loads((tmp_path / "demo" / "scores.json").read_text()) == scores
    exact, best = scores["ssdvae-exact"], scores["best"]
    assert exact.keys() >= KEYS
    assert exact["words"] == best["words"]
    # No model beats the truth, nor the best possible predictor.
    assert exact["ppl"] > best["ppl"]
    assert exact["frame_accuracy"] < best["frame_accuracy"]
    shown = capsys.readouterr().out
    for expected in (
        "ssdvae-exact",
        "best possible",
        "inferred frame",
        "A script after the first event",
        "read by wiki-en",
    ):
        assert expected in shown
    page = tmp_path / "demo" / "report.html"
    assert page.as_uri() in shown.splitlines()[-1]
    assert f"{exact['ppl_bound']:.2f}" in page.read_text(encoding="utf-8")
    # A second run finds everything done, and shows the same.
    again = take_tour(tmp_path / "demo", documents=600, settings=settings)
    assert again.scores == scores
    show_tour(again)
    assert capsys.readouterr().out == shown
