"""`ssdvae import`: files of any format become JSON lines, and bad lines are told or counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ssdvae.cli import main
from ssdvae.commands.import_documents import import_documents
from tests.system.mistakes import assert_is_a_message


def test_import_reads_the_files_of_the_authors(tmp_path: Path) -> None:
    (tmp_path / "a_TUP.txt").write_text("Met she HIM _NULL_ <TUP> left he none at\n")
    (tmp_path / "a_frame.txt").write_text("Meet_with __NOFRAME__\n")
    assert main(["import", str(tmp_path / "a_TUP.txt"), "--out", str(tmp_path / "a.jsonl")]) == 0
    first, second = json.loads((tmp_path / "a.jsonl").read_text())["events"]
    assert first == {"verb": "met", "subj": "she", "obj": "him", "mod": None, "frame": "Meet_with"}
    assert second == {"verb": "left", "subj": "he", "obj": None, "mod": "at", "frame": None}


def test_a_log_is_grouped_by_case_and_sorted_by_time(tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("ticket,when,action\nb,2024-01-02,close\na,2024-01-01,open\nb,2024-01-01,open\n")
    named = ["--case", "ticket", "--time", "when", "--head", "action"]
    assert main(["import", str(log), "--out", str(tmp_path / "c.jsonl"), *named]) == 0
    found = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert [(d["id"], [e["action"] for e in d["events"]]) for d in found] == [
        ("b", ["open", "close"]),
        ("a", ["open"]),
    ]
    done = import_documents(
        [log, log], tmp_path / "d.jsonl", case="ticket", time="when", head="action", progress=False
    )
    assert (done.documents, done.one_event, done.skipped) == (4, 2, None)
    assert (tmp_path / "d.jsonl").read_text() == 2 * (tmp_path / "c.jsonl").read_text()


def test_bad_lines_are_counted_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "events": [{"verb": "met"}]}\nnot json\n')
    words = ["import", str(tmp_path / "bad.jsonl"), "--out", str(tmp_path / "good.jsonl"), "--skip-bad"]
    assert main(words) == 0
    assert "line 2" in capsys.readouterr().err
    assert len((tmp_path / "good.jsonl").read_text().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("import bad.jsonl --out out.jsonl", "bad.jsonl, line 2"),
        ("import bad.jsonl --out out.jsonl --format xml", "jsonl, csv"),
        ("import bad.jsonl --out out.csv", ".jsonl"),
        ("import --out out.jsonl", "SOURCES"),
        ("import log.csv --out out.jsonl --case ticket", "--head"),
        ("import log.csv --out out.jsonl --case tickt --head action", "did you mean 'ticket'?"),
    ],
)
def test_a_mistake_is_a_message(
    words: str,
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.jsonl").write_text('{"id": "a", "events": []}\n{"id": "b"\n')
    (tmp_path / "log.csv").write_text("ticket,action\na,open\n")
    assert_is_a_message(words.split(), expected, tmp_path, capsys)
