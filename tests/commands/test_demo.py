"""A small demo: what it prints and writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssdvae.commands.demo import MODELS, print_demo, run_demo
from ssdvae.io.progress import SILENT


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, options = tmp_path / "demo", {"hidden": 16, "embedding": 16, "validate_steps": 10}
    demo = run_demo(folder, 600, options, SILENT)
    scores = demo.scores
    assert capsys.readouterr().out == ""
    print_demo(demo)
    assert json.loads((folder / "scores.json").read_text()) == scores
    assert scores.keys() == {*MODELS, "best"}
    best = scores["best"]
    for name in MODELS:
        measured = scores[name]
        # The same words for all, and no model beats the truth.
        assert measured["words"] == best["words"]
        assert measured["ppl_bound"] > best["ppl"]
        assert measured["cloze_nll"] <= best["cloze_nll"]
        assert 0 <= measured["scripts_possible"] <= 1
    for name in ("ssdvae", "ssdvae-exact"):
        assert scores[name]["frame_accuracy"] < best["frame_accuracy"]
    shown = capsys.readouterr().out
    # The paper's model has a bound, and the table says so; the others are exact.
    assert f"≤ {scores['ssdvae']['ppl_bound']:.2f}" in shown
    assert shown.count("≤") == 2
    for name in ("rnnlm", "ssdvae-exact", "best"):
        assert f" {scores[name]['ppl']:.2f} " in shown
    for expected in ("best possible", "inferred frame", "A script after the first event", "read by wiki-en"):
        assert expected in shown
    page = folder / "report.html"
    assert page.as_uri() in shown.splitlines()[-1]
    assert f"{scores['ssdvae']['ppl_bound']:.2f}" in page.read_text(encoding="utf-8")
    # A second run trains nothing, and shows the same, also in one process.
    monkeypatch.setattr("ssdvae.data.options.cores", lambda: 1)
    trained = {name: (folder / name / "model.safetensors").stat().st_mtime_ns for name in MODELS}
    again = run_demo(folder, 600, options, SILENT)
    assert again.scores == scores
    assert trained == {name: (folder / name / "model.safetensors").stat().st_mtime_ns for name in MODELS}
    print_demo(again)
    assert capsys.readouterr().out == shown
