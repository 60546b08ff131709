"""`ssdvae annotate`: its messages, and mistakes that are found before anything is trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdvae.cli import main
from ssdvae.data.readers import read_documents
from tests.extraction.stopping import leftovers
from tests.extraction.test_annotate import corpus


def test_a_bad_document_is_reported_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus(Path("a.jsonl"), 6, bad=(2, 4))
    Path("verbs.csv").write_text("verb,frame\nhit,Impact\n")
    words = ["annotate", "a.jsonl", "--frames", "verbs.csv", "--out", "out.jsonl"]
    complaint = "a.jsonl, line 5: found 3 under 'verb', expected a word in quotes, or null"
    assert main(words) == 2
    assert f"error: {complaint}" in capsys.readouterr().err
    assert not Path("out.jsonl").exists()
    assert leftovers(tmp_path) == []
    assert main([*words, "--skip-bad"]) == 0
    said = capsys.readouterr().err
    assert "wrote 4 documents" in said
    assert f"skipped 2 bad lines, the first: {complaint}" in said
    assert [d.id for d in read_documents("out.jsonl")] == ["d0", "d1", "d3", "d5"]


def test_the_counts_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus(Path("a.jsonl"), 6)  # hit, left, won, slept and hit again; one has a frame
    Path("verbs.csv").write_text("verb,frame,weight\nhit,Impact,1\nleft,Departing,1\nleft,Abandonment,1\n")
    words = ["annotate", "a.jsonl", "--frames", "verbs.csv", "--out", "shards"]
    assert main(words) == 0
    said = capsys.readouterr().err
    events = [event for document in read_documents("a.jsonl") for event in document.events]
    assert f"wrote 6 documents with {len(events)} events to shards" in said
    hits = sum(event.head == "hit" and event.frame is None for event in events)
    left = sum(event.head == "left" and event.frame is None for event in events)
    assert f"{hits} events got a frame" in said
    assert f"{left} below the threshold" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("annotate a.jsonl --out out.jsonl", "--frames"),
        ("annotate a.jsonl --frames verbs.csv", "--out"),
        ("annotate a.jsonl --out out.jsonl --frames verbs.csv", "cannot read verbs.csv"),
        ("annotate a.jsonl --out out.jsonl --frames odd.yaml", "a lexicon ends in .csv"),
        ("annotate a.jsonl --out out.csv --frames verbs.csv", "expected a name in .jsonl"),
        ("annotate a.jsonl --out out.jsonl --frames verbs.csv --threshold 2", "--threshold: found 2"),
        ("annotate nowhere.jsonl --out out.jsonl --frames verbs.csv", "cannot read nowhere.jsonl"),
    ],
)
def test_mistakes_are_said(
    words: str,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    corpus(Path("a.jsonl"), 2)
    Path("odd.yaml").touch()
    assert main(words.split()) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "Traceback" not in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "odd.yaml"]
