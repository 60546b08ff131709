"""Answers for files and shards: what one process says, whoever is asked and however it is cut."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

import ssdvae
from ssdvae.answers import files
from ssdvae.answers.infer import infer_documents
from ssdvae.cli.main import main
from ssdvae.data.events import Document, Event
from ssdvae.data.readers import read_documents, write_jsonl
from ssdvae.errors import UserError
from ssdvae.models.base import EventModel
from tests.clusters import three_machines
from tests.data.test_shards import contents
from tests.extraction.stopping import Stopped, stop_after
from tests.toys import toy_ssdvae


@pytest.fixture
def run(tmp_path: Path) -> Path:
    model = toy_ssdvae()
    (tmp_path / "run").mkdir()
    model.save(tmp_path / "run", {})
    documents = [
        Document(f"d{n}", tuple(Event(f"word{1 + (n + m) % 8}", f"word{1 + m}") for m in range(1 + n % 7)))
        for n in range(60)
    ]
    write_jsonl(tmp_path / "events.jsonl", documents, model.slots)
    for number in range(4):
        (tmp_path / "shards").mkdir(exist_ok=True)
        part = tmp_path / "shards" / f"part-0000{number}.jsonl"
        write_jsonl(part, documents[15 * number : 15 * number + 15], model.slots)
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "CHUNK", 7)


def test_a_file_has_what_the_model_says(run: Path) -> None:
    source, out = run.parent / "events.jsonl", run.parent / "out.jsonl"
    assert ssdvae.infer_file(run, source, out, jobs=1, progress=False) == 60
    records = [json.loads(line) for line in out.read_text().splitlines()]
    model = EventModel.read(run)
    for record, expected in zip(
        records, infer_documents(model, read_documents(source, slots=model.slots)), strict=True
    ):
        assert record["id"] == expected.id
        assert [event["frame"] for event in record["events"]] == [event.frame for event in expected.events]
        for found, event in zip(record["events"], expected.events, strict=True):
            assert found["probability"] == pytest.approx(event.probability, abs=2e-6)


def test_any_number_of_processes_and_a_model_in_hand_say_the_same(run: Path) -> None:
    source = run.parent / "events.jsonl"
    for name, model, jobs in (("one", run, 1), ("two", run, 2), ("hand", EventModel.read(run), 1)):
        ssdvae.infer_file(model, source, run.parent / f"{name}.jsonl", jobs=jobs, progress=False)
    one, two, hand = ((run.parent / f"{name}.jsonl").read_bytes() for name in ("one", "two", "hand"))
    assert one == two == hand


def test_shards_are_answered_by_shards(run: Path) -> None:
    out, slots = run.parent / "answers", EventModel.read(run).slots
    assert ssdvae.infer_file(run, run.parent / "shards", out, jobs=1, progress=False) == 60
    assert [path.name for path in sorted(out.iterdir())] == [f"part-0000{n}.jsonl.gz" for n in range(4)]
    for number in range(4):
        lines = gzip.decompress((out / f"part-0000{number}.jsonl.gz").read_bytes()).decode().splitlines()
        assert [json.loads(line)["id"] for line in lines] == [
            document.id
            for document in read_documents(run.parent / "shards" / f"part-0000{number}.jsonl", slots=slots)
        ]
    # What was inferred can be read again, by its shards.
    assert len(list(read_documents(out, slots=slots))) == 60


def test_it_goes_on_where_it_stopped(run: Path) -> None:
    shards, whole, out = run.parent / "shards", run.parent / "whole", run.parent / "out"
    ssdvae.infer_file(run, shards, whole, jobs=1, progress=False)
    with pytest.raises(Stopped):
        ssdvae.infer_file(run, shards, out, jobs=1, progress=stop_after(2))
    with pytest.raises(UserError, match="was begun with other input or settings"):
        ssdvae.infer_file(run, shards, out, jobs=1, observe_frames=True, progress=False)
    ssdvae.infer_file(run, shards, out, jobs=1, progress=False)
    assert contents(out) == contents(whole)


def test_what_is_for_files_is_refused_without_one(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", str(run.parent / "events.jsonl"), "--run", str(run), "--jobs", "2"]) == 2
    assert "--jobs goes with --out" in capsys.readouterr().err


@pytest.mark.journey
def test_infer_loses_a_machine(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    with three_machines(monkeypatch.setenv) as machines:
        for source, name in (("events.jsonl", "file.jsonl"), ("shards", "folder")):
            ssdvae.infer_file(run, run.parent / source, run.parent / f"one-{name}", jobs=1, progress=False)
            ssdvae.infer_file(
                run,
                run.parent / source,
                run.parent / f"many-{name}",
                engine="ray",
                address=machines.whole().address,
                progress=machines.lose_after(1),
            )
    assert (run.parent / "one-file.jsonl").read_bytes() == (run.parent / "many-file.jsonl").read_bytes()
    assert contents(run.parent / "one-folder") == contents(run.parent / "many-folder")
