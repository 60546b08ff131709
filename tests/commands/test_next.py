"""`ssdvae next`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdvae.commands.next_events import next_events
from tests.commands.conftest import Ask, assert_is_a_message, records, type_in


@pytest.mark.parametrize("model", ["ssdvae-exact", "ssdvae"])
def test_next(model: str, folder: Path, ask: Ask) -> None:
    words = ["next", "arrested police suspect in", "--run", folder / model, "--top", "2"]
    (record,) = records(ask(*words, "--json"))
    assert record["exact"] == (model == "ssdvae-exact")
    assert {len(record[name]) for name in ("frames", "heads", "events")} == {2}
    (given,) = records(ask(*words, "--json", "--given", "frame=Arrest", "subj=police"))
    assert {event["subj"] for event in given["events"]} == {"police"}
    shown = ask(*words)
    assert record["frames"][0]["frame"] in shown
    assert ("exact" if model == "ssdvae-exact" else "estimate") in shown


def test_a_file_of_documents(folder: Path, ask: Ask) -> None:
    run = folder / "ssdvae-exact"
    found = records(ask("next", folder / "events.jsonl", "--run", run, "--json", "--beam", "3"))
    expected = [answer.id for answer in next_events(run, folder / "events.jsonl", beam=3)]
    assert [record["id"] for record in found] == expected


def test_typed_events_are_those_of_the_command_line(
    folder: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = ["arrested police suspect in", "met she him"]
    words = ["--run", folder / "ssdvae-exact", "--beam", "3", "--json"]
    (given,) = records(ask("next", *events, *words))
    type_in(monkeypatch, "\n".join(events) + "\n\nleft he\n")
    typed, other = records(ask("next", *words))
    assert (typed, other["read"]) == ({**given, "id": "1"}, 1)


def test_the_start_of_a_document(folder: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, "")
    assert "at the start" in ask("next", "--run", folder / "ssdvae-exact")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("next runs/nope met --run EXACT", "runs/nope: no such file"),
        ("next nope.jsonl --run EXACT", "nope.jsonl: no such file"),
        ("next met --run runs/nope", "runs/nope: there is no such file or folder"),
        ("next met --run EXACT --given Arrest", "expected NAME=VALUE"),
        ("next met --run EXACT --given object=him", "no slot 'object'; there are: frame, verb"),
        ("next met --run runs/nope", "runs/nope"),
        ("next met --run EXACT --top 0", "--top: found 0, expected a whole number, at least 1"),
        ("next met --run EXACT --tpo 3", "--top"),
    ],
)
def test_a_mistake_is_a_message(
    words: str, expected: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_is_a_message(words, expected, folder, tmp_path, capsys)
