"""The questions as a stranger would ask them: on the command line, and as tables in Python."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import ssdvae
from ssdvae.cli.main import main
from ssdvae.models.typical import TYPICAL
from tests.shared import made_once

TINY: dict[str, Any] = {"hidden": 8, "embedding": 8, "layers": 1, "epochs": 1, "batch": 50}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of the embedded world, and runs of two models on them."""

    def make(folder: Path) -> None:
        ssdvae.world(folder / "events.jsonl", documents=150, seed=5)
        corpus = ssdvae.prepare(
            folder / "events.jsonl", folder / "corpus", preset="tiny", valid_share=0.2, jobs=1
        )
        for model in ("ssdvae-exact", "ssdvae"):
            ssdvae.train(corpus, folder / model, model=model, **TINY)

    return made_once(tmp_path_factory, "questions", make)


def answer(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("model", ["ssdvae-exact", "ssdvae"])
def test_next(model: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["next", "arrested police suspect in", "--run", folder / model, "--top", "2"]
    (record,) = records(answer(capsys, *words, "--json"))
    assert record["exact"] == (model == "ssdvae-exact")
    assert {len(record[name]) for name in ("frames", "heads", "events")} == {2}
    (told,) = records(answer(capsys, *words, "--json", "--given", "frame=Arrest", "subj=police"))
    assert {event["subj"] for event in told["events"]} == {"police"}
    shown = answer(capsys, *words)
    assert record["frames"][0]["frame"] in shown
    assert ("exact" if model == "ssdvae-exact" else "estimate") in shown


def test_score(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Percentiles are there from the first use on, and go where the model goes."""
    words = ["score", folder / "events.jsonl", "--run", folder / "ssdvae-exact"]
    found = records(answer(capsys, *words, "--json"))
    assert (folder / "ssdvae-exact" / TYPICAL).is_file()
    for document in found:
        assert document["nats"] == pytest.approx(sum(e["nats"] for e in document["events"]), abs=1e-4)
        assert all(0 <= event["percentile"] <= 100 for event in document["events"])
    model = ssdvae.load(folder / "ssdvae-exact")
    model.save_pretrained(tmp_path / "elsewhere")
    again = ssdvae.score(tmp_path / "elsewhere", folder / "events.jsonl")
    assert [d.percentile for d in again] == pytest.approx([d["percentile"] for d in found], abs=0.01)
    top = records(answer(capsys, *words, "--top", "2", "--json"))
    most = sorted((e["nats"] for d in found for e in d["events"]), reverse=True)
    assert [event["nats"] for event in top] == pytest.approx(most[:2], abs=1e-4)
    assert all(event["expected"] for event in top)
    assert "expected" in answer(capsys, *words, "--top", "2")
    assert "percentile" in answer(capsys, *words)


def test_evaluate_keeps_what_is_usual(folder: Path, tmp_path: Path) -> None:
    """Where it measures the words of the validation split: a model elsewhere then has percentiles."""
    for name in ("ssdvae-exact", "ssdvae"):
        run = shutil.copytree(folder / name, tmp_path / name)
        (run / TYPICAL).unlink(missing_ok=True)
        ssdvae.evaluate(run, tasks="order", split="valid", progress=False)
        ssdvae.evaluate(run, tasks="perplexity", split="test", bound_samples=2, progress=False)
        ssdvae.evaluate(
            run, tasks="perplexity", split="valid", corpus=folder / "corpus", bound_samples=2, progress=False
        )
        assert not (run / TYPICAL).exists()
        ssdvae.evaluate(run, tasks="perplexity", split="valid", bound_samples=2, progress=False)
        kept = (run / TYPICAL).read_bytes()
        (run / TYPICAL).unlink()
        next(ssdvae.score(run, folder / "events.jsonl", progress=False))
        assert (run / TYPICAL).read_bytes() == kept


def test_fill(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--run", folder / "ssdvae-exact", "--top", "2", "--beam", "5"]
    holed = {
        "id": "a",
        "events": [{"verb": "arrested", "subj": "police"}, None, {"verb": "left", "subj": "?"}],
    }
    (tmp_path / "holed.jsonl").write_text(json.dumps(holed) + "\n")
    (record,) = records(answer(capsys, "fill", tmp_path / "holed.jsonl", *words, "--json"))
    assert [hole["event"] for hole in record["holes"]] == [2, 3]
    (same,) = ssdvae.fill(folder / "ssdvae-exact", holed, top=2, beam=5)
    assert json.loads(json.dumps(same.to_record())) == record
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"arrested police\n?\nleft ?\n")))
    assert "by both sides" in answer(capsys, "fill", *words)
    with pytest.raises(ssdvae.UserError, match="expected an event"):
        list(ssdvae.infer(folder / "ssdvae-exact", tmp_path / "holed.jsonl"))


def test_embed_and_similar(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ["--run", folder / "ssdvae-exact"]
    answer(capsys, "embed", folder / "events.jsonl", *run, "--out", tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet").to_pylist()
    first = next(ssdvae.embed(folder / "ssdvae-exact", folder / "events.jsonl"))
    assert np.allclose(table[0]["vector"], first.vector, atol=1e-6)
    assert np.allclose(table[1]["vector"], first.events[0], atol=1e-6)
    event = str(first.document.events[0])
    near = records(answer(capsys, "similar", event, "--among", folder / "events.jsonl", *run, "--json"))
    assert [one["rank"] for one in near] == [1, 2, 3, 4, 5]
    assert near[0]["similarity"] == pytest.approx(1, abs=1e-5)
    assert [one["similarity"] for one in near] == sorted((one["similarity"] for one in near), reverse=True)
    assert "cosine" in answer(capsys, "similar", event, "--among", folder / "events.jsonl", *run)
    assert "dimensions" in answer(capsys, "embed", folder / "events.jsonl", *run)


@pytest.mark.parametrize("command", ["infer", "score", "next", "fill", "embed"])
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_file_without_documents_is_told(
    command: str, form: list[str], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").touch()
    run = str(folder / "ssdvae-exact")
    assert main([command, str(tmp_path / "empty.jsonl"), "--run", run, *form]) == 0
    said = capsys.readouterr()
    assert (said.out.strip(), said.err.strip()) == ("", "there was no document to read")


def test_answers_as_tables(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A DataFrame, a Parquet file, a CSV file and JSON lines say the same."""
    pandas = pytest.importorskip("pandas")
    scored = list(ssdvae.score(folder / "ssdvae-exact", folder / "events.jsonl"))
    table = ssdvae.to_dataframe(scored)
    assert len(table) == sum(len(document.events) for document in scored)
    assert ssdvae.write_answers(scored, tmp_path / "s.parquet") == len(scored)
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "s.parquet"), table, check_dtype=False)
    ssdvae.write_answers(scored, tmp_path / "s.csv")
    read = pandas.read_csv(tmp_path / "s.csv", keep_default_na=False, na_values=["", "nan"])
    assert list(read.columns) == list(table.columns)
    assert read["nats"].to_list() == pytest.approx(table["nats"].to_list())
    assert read["verb"].to_list() == table["verb"].to_list()
    ssdvae.write_answers(scored, tmp_path / "s.jsonl")
    lines = records((tmp_path / "s.jsonl").read_text())
    assert [d["nats"] for d in lines] == pytest.approx([d.nats for d in scored], abs=1e-5)
    with pytest.raises(ssdvae.UserError, match="vectors do not fit"):
        ssdvae.write_answers(
            ssdvae.embed(folder / "ssdvae-exact", folder / "events.jsonl"), tmp_path / "v.csv"
        )
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(ssdvae.UserError, match="pip install pandas"):
        ssdvae.to_dataframe(scored)


def test_the_next_event_is_measured_beside_what_counting_gets(folder: Path) -> None:
    for model in ("ssdvae-exact", "ssdvae"):
        scores = ssdvae.evaluate(folder / model, tasks="next", bound_samples=2)
        for kind in ("head", "frame"):
            assert scores[f"next_{kind}_1"] <= scores[f"next_{kind}_5"] <= scores[f"next_{kind}_10"] <= 1
            assert scores[f"next_{kind}_1"] <= scores[f"next_{kind}_mrr"]
            assert 0 <= scores[f"next_{kind}_ece"] <= 1
            assert scores[f"next_{kind}_bigram_mrr"] > scores[f"next_{kind}_frequency_mrr"] > 0
