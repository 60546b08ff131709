"""Answers as files, shards and tables: the same however many processes compute them."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssdvae.cli import main
from ssdvae.commands.embed import embed
from ssdvae.commands.fill import fill
from ssdvae.commands.infer import infer
from ssdvae.commands.next_events import next_events
from ssdvae.commands.questions import write_answers
from ssdvae.commands.score import score
from ssdvae.data.events import Document, Event
from ssdvae.data.options import StreamOptions
from ssdvae.data.readers import read_documents, write_jsonl
from ssdvae.inference import output
from ssdvae.inference.output import to_dataframe
from ssdvae.inference.posterior import infer_documents
from ssdvae.inference.surprisal import split_quantiles
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model, as_language_model
from tests.alike import assert_alike
from tests.clusters import three_machines
from tests.extraction.stopping import Stopped, stop_after
from tests.toys import toy_documents, toy_ssdvae


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files of a folder, hidden ones too."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    model = toy_ssdvae()
    (tmp_path / "run").mkdir()
    model.save(tmp_path / "run", {})
    documents = [
        Document(f"d{n}", tuple(Event(f"word{1 + (n + m) % 8}", f"word{1 + m}") for m in range(1 + n % 7)))
        for n in range(36)
    ]
    model.quantiles = split_quantiles(model, toy_documents([3, 2, 4]), "valid")
    model.quantiles.write(tmp_path / "run")
    write_jsonl(tmp_path / "events.jsonl", documents, model.slots)
    for number in range(4):
        (tmp_path / "shards").mkdir(exist_ok=True)
        part = tmp_path / "shards" / f"part-0000{number}.jsonl"
        write_jsonl(part, documents[9 * number : 9 * number + 9], model.slots)
    return tmp_path / "run"


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "DOCUMENTS", 4)


ASK: dict[str, Callable[..., Any]] = {
    "infer": infer,
    "next": next_events,
    "score": score,
    "fill": fill,
    "embed": embed,
}
FEW = {"next": {"beam": 4}, "fill": {"beam": 4}}


def write(run: Path | Model, source: Path, out: Path, question: str = "infer", **settings: Any) -> int:
    """Ask about a file; what is not said of the question is said of how it is answered."""
    shared = {name: settings.pop(name) for name in StreamOptions.names() if name in settings}
    answers = ASK[question](run, source, **{"progress": False, **FEW.get(question, {}), **settings})
    return write_answers(answers, out, **shared)


def test_a_file_has_what_the_model_says(run: Path) -> None:
    source, out = run.parent / "events.jsonl", run.parent / "out.jsonl"
    assert write(run, source, out, jobs=1) == 36
    records = [json.loads(line) for line in out.read_text().splitlines()]
    model = Model.read(run)
    for record, expected in zip(
        records, infer_documents(model, read_documents(source, slots=model.slots)), strict=True
    ):
        assert record["id"] == expected.id
        assert [event["frame"] for event in record["events"]] == [event.frame for event in expected.events]
        for found, event in zip(record["events"], expected.events, strict=True):
            assert found["probability"] == pytest.approx(event.probability, abs=2e-6)


def test_any_number_of_processes_and_a_model_in_hand_say_the_same(run: Path) -> None:
    source = run.parent / "events.jsonl"
    for name, model, jobs in (("one", run, 1), ("two", run, 2), ("hand", Model.read(run), 1)):
        write(model, source, run.parent / f"{name}.jsonl", jobs=jobs)
    one, two, hand = ((run.parent / f"{name}.jsonl").read_bytes() for name in ("one", "two", "hand"))
    assert one == two == hand


def test_shards_are_answered_by_shards(run: Path) -> None:
    out, slots = run.parent / "answers", Model.read(run).slots
    assert write(run, run.parent / "shards", out, jobs=1) == 36
    assert [path.name for path in sorted(out.iterdir())] == [f"part-0000{n}.jsonl.gz" for n in range(4)]
    for number in range(4):
        lines = gzip.decompress((out / f"part-0000{number}.jsonl.gz").read_bytes()).decode().splitlines()
        assert [json.loads(line)["id"] for line in lines] == [
            document.id
            for document in read_documents(run.parent / "shards" / f"part-0000{number}.jsonl", slots=slots)
        ]
    # What was inferred can be read again, by its shards.
    assert len(list(read_documents(out, slots=slots))) == 36


def test_it_goes_on_where_it_stopped(run: Path) -> None:
    shards, whole, out = run.parent / "shards", run.parent / "whole", run.parent / "out"
    write(run, shards, whole, jobs=1)
    with pytest.raises(Stopped):
        write(run, shards, out, jobs=1, progress=stop_after(2))
    with pytest.raises(UserError, match="was begun with other input or settings"):
        write(run, shards, out, jobs=1, observe_frames=True)
    write(run, shards, out, jobs=1)
    assert contents(out) == contents(whole)


def holed(source: Path, slot: str) -> None:
    """Every third event is missing, and the head of those before them."""
    for path in sorted(source.iterdir()):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        for record in records:
            record["events"] = [
                None if m % 3 == 1 else {**event, slot: "?"} if m % 3 == 0 else event
                for m, event in enumerate(record["events"])
            ]
        path.write_text("".join(json.dumps(record) + "\n" for record in records))


@pytest.mark.parametrize("question", ASK)
def test_every_question_is_answered_so(question: str, run: Path) -> None:
    """By one process as by two, and as it is document by document; what comes of shards are shards."""
    shards, one, two = (run.parent / name for name in ("shards", "one", "two"))
    if question == "fill":
        holed(shards, Model.read(run).slots[0])
    assert write(run, shards, one, question, jobs=1, shard_format="jsonl") == 36
    if question in ("next", "fill"):  # other tests ask the others of two processes
        assert write(run, shards, two, question, jobs=2, shard_format="jsonl") == 36
        assert contents(one) == contents(two)
    records = [json.loads(line) for path in sorted(one.iterdir()) for line in path.read_text().splitlines()]
    alone = ASK[question](run, shards, progress=False, **FEW.get(question, {}))
    for record, expected in zip(records, alone, strict=True):
        assert_alike(record, json.loads(json.dumps(expected.to_record())), rel=5e-4, abs=2e-5)
    if question == "score":
        assert all(event["percentile"] is not None for record in records for event in record["events"])


def test_the_command_line_writes_the_same(run: Path) -> None:
    for question in ("score", "embed"):
        words = [question, str(run.parent / "shards"), "--run", str(run), "--jobs", "2"]
        assert main([*words, "--out", str(run.parent / question)]) == 0
        write(run, run.parent / "shards", run.parent / "python", question, jobs=1)
        assert contents(run.parent / question) == contents(run.parent / "python")
        shutil.rmtree(run.parent / "python")


def test_other_percentiles_are_another_question(run: Path) -> None:
    """A stopped stream is not resumed with other surprisal quantiles."""
    shards, out = run.parent / "shards", run.parent / "out"
    with pytest.raises(Stopped):
        write(run, shards, out, "score", jobs=1, progress=stop_after(2))
    split_quantiles(as_language_model(Model.read(run)), toy_documents([1, 5]), "valid").write(run)
    with pytest.raises(UserError, match="was begun with other input or settings"):
        write(run, shards, out, "score", jobs=1)


def test_what_is_for_files_is_refused_without_one(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(run.parent / "events.jsonl"), "--run", str(run), "--jobs", "2"]
    assert main(["infer", *words]) == 2
    assert "--jobs goes with --out" in capsys.readouterr().err
    assert main(["score", *words, "--out", str(run.parent / "table.parquet")]) == 2
    assert "--jobs is for documents of a file" in capsys.readouterr().err
    with pytest.raises(UserError, match="--jobs is for documents of a file"):
        write_answers(embed(run, [["word1 word2"]]), run.parent / "out.jsonl", jobs=2)


@pytest.mark.journey
def test_answers_on_a_cluster_that_loses_a_machine(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    asked = [("infer", "events.jsonl", "file.jsonl"), *((name, "shards", name) for name in ASK)]
    with three_machines(monkeypatch.setenv) as machines:
        for question, source, name in asked:
            write(run, run.parent / source, run.parent / f"one-{name}", question, jobs=1)
            write(
                run,
                run.parent / source,
                run.parent / f"many-{name}",
                question,
                engine="ray",
                address=machines.whole().address,
                progress=machines.lose_after(1),
            )
    assert (run.parent / "one-file.jsonl").read_bytes() == (run.parent / "many-file.jsonl").read_bytes()
    for name in ASK:
        assert contents(run.parent / f"one-{name}") == contents(run.parent / f"many-{name}")


@pytest.mark.parametrize("command", ["infer", "score", "next", "fill", "embed"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_file_without_documents_is_told(
    command: str, form: list[str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").touch()
    run = str(folder / "ssdvae-exact")
    capsys.readouterr()
    assert main([command, str(tmp_path / "empty.jsonl"), "--run", run, *form]) == 0
    printed = capsys.readouterr()
    assert (printed.out.strip(), printed.err.strip()) == ("", "there was no document to read")


def test_answers_as_tables(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A DataFrame, a Parquet file, a CSV file and JSON lines say the same."""
    pandas = pytest.importorskip("pandas")
    scored = list(score(folder / "ssdvae-exact", folder / "events.jsonl"))
    table = to_dataframe(scored)
    assert len(table) == sum(len(document.events) for document in scored)
    assert write_answers(scored, tmp_path / "s.parquet") == len(scored)
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "s.parquet"), table, check_dtype=False)
    write_answers(scored, tmp_path / "s.csv")
    read = pandas.read_csv(tmp_path / "s.csv", keep_default_na=False, na_values=["", "nan"])
    assert list(read.columns) == list(table.columns)
    assert read["nats"].to_list() == pytest.approx(table["nats"].to_list())
    assert read["verb"].to_list() == table["verb"].to_list()
    write_answers(scored, tmp_path / "s.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "s.jsonl").read_text().splitlines()]
    assert [d["nats"] for d in lines] == pytest.approx([d.nats for d in scored], abs=1e-5)
    with pytest.raises(UserError, match="vectors do not fit"):
        write_answers(embed(folder / "ssdvae-exact", folder / "events.jsonl"), tmp_path / "v.csv")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(UserError, match="pip install pandas"):
        to_dataframe(scored)
