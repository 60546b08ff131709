"""`ssdvae infer`: files, typed events, and documents as people write them."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from ssdvae.cli import main
from ssdvae.commands.coerce import load
from ssdvae.commands.infer import infer
from ssdvae.data.events import Document, Event
from ssdvae.io.errors import UserError
from tests.commands.conftest import Ask, assert_is_a_message, records, type_in

EVENT = Event("arrested", "police", "suspect", "in")
RECORD = {"verb": "arrested", "subj": "police", "obj": "suspect", "mod": "in"}


def test_a_file(folder: Path, tmp_path: Path, ask: Ask) -> None:
    words = ["infer", folder / "events.jsonl", "--run", folder / "ssdvae"]
    found = records(ask(*words, "--json"))
    given = records((folder / "events.jsonl").read_text())
    assert [record["id"] for record in found] == [record["id"] for record in given]
    for mine, other in zip(found, given, strict=True):
        assert [event["gold"] for event in mine["events"]] == [event["frame"] for event in other["events"]]
        assert {event["observed"] for event in mine["events"]} == {None}
        assert not any("attention" in event or "alternatives" in event for event in mine["events"])
    more = records(ask(*words, "--json", "--attention", "--top", "3"))[0]
    assert {len(event["attention"]) for event in more["events"]} == {4 * len(more["events"])}
    assert {len(event["alternatives"]) for event in more["events"]} == {2}
    observed = records(ask(*words, "--json", "--observe-frames"))
    assert any(event["observed"] for record in observed for event in record["events"])
    assert ask(*words, "--out", tmp_path / "f.jsonl.gz") == ""
    assert records(gzip.decompress((tmp_path / "f.jsonl.gz").read_bytes()).decode()) == found
    assert given[0]["id"] in ask(*words)
    # The output can be read again, as documents with the inferred frames.
    (tmp_path / "f.jsonl").write_text("".join(json.dumps(record) + "\n" for record in found))
    again = records(ask("infer", tmp_path / "f.jsonl", "--run", folder / "ssdvae", "--json"))
    assert [e["gold"] for r in again for e in r["events"]] == [e["frame"] for r in found for e in r["events"]]


def test_typed_events_that_are_not_utf8_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_in(monkeypatch, b"met she\nm\xe9t she\n")
    assert main(["infer", "--run", str(folder / "ssdvae")]) == 2
    assert "standard input, line 2: found the byte 0xe9" in capsys.readouterr().err


def test_typed_events(
    folder: Path, ask: Ask, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = "arrested police suspect in\nXyzzy - - None\n\nmet she\n"
    type_in(monkeypatch, typed)
    first, second = records(ask("infer", "--run", folder / "ssdvae", "--json"))
    assert [event["verb"] for event in first["events"]] == ["arrested", "Xyzzy"]
    assert first["events"][1]["obj"] is None
    assert first["unknown_words"]["xyzzy"] is None
    assert [event["head_known"] for event in first["events"]] == [True, False]
    assert len(second["events"]) == 1
    type_in(monkeypatch, typed)
    assert main(["infer", "--run", str(folder / "ssdvae")]) == 0
    printed = capsys.readouterr()
    assert "arrested police suspect in" in printed.out
    assert "xyzzy" in printed.err


def test_documents_as_people_write_them(folder: Path) -> None:
    """As a Document, a mapping or a list of events; an event as an Event, a mapping or a text."""
    model = load(folder / "ssdvae")
    forms: list[Any] = [EVENT, RECORD, str(EVENT)]
    documents: list[Any] = [Document("a", (EVENT,)), {"id": "a", "events": [RECORD]}]
    documents += [{"events": [event]} for event in forms] + [[event] for event in forms]
    found = list(infer(model, documents, batch=1))  # the last digit depends on the batch
    assert [document.id for document in found] == ["a", "a", "3", "4", "5", "6", "7", "8"]
    assert all(document.events == found[0].events for document in found)
    # One document alone is one document.
    assert [list(infer(model, document)) for document in documents[:2]] == [found[:1]] * 2
    assert next(infer(model, io.StringIO(f"{EVENT}\n"))).events == found[0].events
    assert [d.id for d in infer(folder / "ssdvae", documents)] == [d.id for d in found]


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ([3], "document 1: found 3, expected a Document"),
        (3, "found 3 as documents"),
        ([["met she"], ["a b c d e"]], "document 2: found 'a b c d e'"),
        (["met she"], "document 1: found 'met she', expected a Document"),
        ([[{"subj": "she"}]], "document 1: found no verb"),
        ([[{"verb": 3}]], "found 3 under 'verb'"),
        ([[None]], "document 1: found None, expected an Event"),
        ([{"id": "a"}], "expected a document such as"),
        ([{"id": "a", "events": "met she"}], "found 'met she', expected a Document"),
        ([Document("a", ({"verb": ""},))], "no verb"),  # type: ignore[arg-type]  # the mistake
        ([[Event("met", 3)]], "found 3 as subj"),  # type: ignore[arg-type]  # the mistake
    ],
)
def test_a_wrong_document_is_a_clear_error(documents: Any, expected: str, folder: Path) -> None:
    with pytest.raises(UserError) as raised:
        list(infer(folder / "ssdvae", documents))
    assert expected in str(raised.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("infer EVENTS --run PLAIN --json", "no frames to look at"),
        ("infer nowhere.jsonl --run SSDVAE", "nowhere.jsonl"),
        ("infer EVENTS --run SSDVAE --out f.xml", ".jsonl"),
        ("infer EVENTS --run SSDVAE --jobs 2", "--jobs goes with --out"),
        ("infer EVENTS --run EVENTS", "is a file"),
        ("infer EVENTS EVENTS --run SSDVAE", "EVENTS"),
    ],
)
def test_a_mistake_is_a_message(
    words: str,
    expected: str,
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_is_a_message(words, expected.replace("EVENTS", "events.jsonl"), folder, tmp_path, capsys)
