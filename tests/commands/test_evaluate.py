"""`ssdvae evaluate` prints scores, and keeps them with the run."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ssdvae
from ssdvae.cli import main
from ssdvae.data.options import SPLITS
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.evaluation.measure import RenumberedCorpus, in_numbers_of
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.task import TASKS, find_tasks

KEYS = {"ppl", "ppl_with_separators", "ppl_bound", "frame_accuracy", "words", "documents"}
RUN = "ssdvae-exact"


def test_evaluate_prints_one_json_object_and_nothing_else(folder: Path) -> None:
    words = ["evaluate", str(folder / RUN), "--split", "valid", "--json"]
    # In a process of its own, so that standard output and standard error are told apart.
    done = subprocess.run([sys.executable, "-m", "ssdvae", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert scores.keys() >= KEYS
    corpus = json.loads((folder / "corpus" / "manifest.json").read_text())
    assert scores["documents"] == corpus["splits"]["valid"]["documents"]
    assert scores["words"] == 4 * corpus["splits"]["valid"]["events"]
    assert 1 < scores["ppl"] < 2 * corpus["words"]
    assert 0 <= scores["frame_accuracy"] <= 1


def test_perplexity_in_bf16_is_near_that_of_fp32_and_not_kept(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = shutil.copytree(folder / RUN, tmp_path / "run")
    full = ssdvae.evaluate(run, tasks="perplexity", bound_samples=1)
    kept = (run / "scores.json").read_bytes()
    with caplog.at_level("INFO"):
        half = ssdvae.evaluate(run, tasks="perplexity", bound_samples=1, precision="bf16")
    assert half["ppl"] != full["ppl"]
    assert half["ppl"] == pytest.approx(full["ppl"], rel=1e-3)
    assert "bf16" in caplog.text
    assert (run / "scores.json").read_bytes() == kept
    with pytest.raises(ssdvae.UserError, match="--precision: found 'bf16'"):
        ssdvae.evaluate(run, precision="bf16")


def test_evaluate_keeps_its_figures_with_what_is_needed_to_trust_them(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """scores.json: one entry for each task and data, the newest; nothing of another task is lost."""
    run_folder, cloze = str(shutil.copytree(folder / RUN, tmp_path / "run")), folder / "corpus" / "cloze"
    (tmp_path / "run" / "scores.json").unlink(missing_ok=True)
    shutil.copy(cloze / "valid.txt", tmp_path / "mine.txt")
    common = ["evaluate", run_folder, "--json", "--bound-samples=3", "--cloze-seeds=3"]
    assert main([*common, "--details", str(tmp_path / "details.jsonl")]) == 0
    first = json.loads(capsys.readouterr().out)
    assert main([*common, "--tasks=cloze", "--cloze", str(tmp_path / "mine.txt")]) == 0
    assert main([*common, "--tasks=perplexity", "--split=test"]) == 0
    assert main([*common, "--tasks=cloze", "--cloze-frames=read"]) == 0
    kept = json.loads((tmp_path / "run" / "scores.json").read_text())
    assert [(m["task"], m["data"]) for m in kept] == [
        ("perplexity", "valid"),
        ("frames", "valid"),
        ("cloze", "valid"),
        ("cloze", str(tmp_path / "mine.txt")),
        ("perplexity", "test"),
        ("cloze", "valid, frames read"),
    ]
    manifest = json.loads((folder / "corpus" / "manifest.json").read_text())
    by_name = {(m["task"], m["data"]): m for m in kept}
    assert by_name["perplexity", "valid"]["sha256"] == manifest["sha256"]["valid.arrow"]
    assert by_name["cloze", "valid"]["sha256"] == manifest["sha256"]["cloze/valid.txt"]
    assert by_name["cloze", "valid"]["scores"] == by_name["cloze", str(tmp_path / "mine.txt")]["scores"]
    assert by_name["cloze", "valid"]["items"] == manifest["cloze"]["valid"]
    for m in kept:
        assert m["version"] == ssdvae.__version__
        assert m["settings"]["bound_samples"] == 3
        assert len(m["model_sha256"]) == 64
    assert {k: v for m in kept[:3] for k, v in m["scores"].items()} == first
    lines = [json.loads(line) for line in (tmp_path / "details.jsonl").read_text().splitlines()]
    assert len(lines) == first["cloze_items"]
    assert sum(line["credit"]["pmi"] for line in lines) / len(lines) == pytest.approx(first["cloze_pmi"])


def test_evaluate_repeats_itself(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert main(["evaluate", str(folder / RUN), "--json", "--bound-samples", "2"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second


def test_evaluate_takes_its_options_from_yaml(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text("split: test\nbound_samples: 1\n")
    assert main(["evaluate", str(folder / RUN), "--json", "--config", str(tmp_path / "c.yaml")]) == 0
    corpus = json.loads((folder / "corpus" / "manifest.json").read_text())
    assert json.loads(capsys.readouterr().out)["documents"] == corpus["splits"]["test"]["documents"]


def test_help_names_all_tasks() -> None:
    listed = str(EvaluateOptions.fields()["tasks"].description).partition(": ")[2]
    default, _, others = listed.partition(" (these by default), ")
    assert {*default.split(", ")} == {task.name for task in find_tasks(None)}
    assert {*others.split(", ")} == {*TASKS} - {task.name for task in find_tasks(None)}


# Models without a corpus of their own.


def test_a_packaged_model_is_measured_on_any_corpus_of_its_slots(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", "wiki-en"]) == 2
    assert "--corpus" in capsys.readouterr().err
    words = ["evaluate", "wiki-en", "--corpus", str(folder / "corpus"), "--tasks=perplexity,frames", "--json"]
    assert main(words) == 0
    said = capsys.readouterr()
    scores = json.loads(said.out)
    assert 1 < scores["ppl"] < 10_000
    assert scores["documents"] == len(ssdvae.Corpus(folder / "corpus").split("valid"))
    assert "of its words (valid) are out of the vocabulary" in said.err
    assert not list(tmp_path.iterdir())


def test_a_corpus_with_other_numbers_has_the_same_words(folder: Path) -> None:
    corpus = ssdvae.Corpus(folder / "corpus")
    (missing, unknown, *words), frames = corpus.vocabulary.names, corpus.frames.names
    model: Any = SimpleNamespace(
        vocabulary=Vocabulary([missing, unknown, *reversed(words)], [1] * len(corpus.vocabulary)),
        frames=Inventory(frames[:0:-1], [1] * (len(frames) - 1)),  # without the first
        slots=corpus.slots,
    )
    renumbered = in_numbers_of(model, corpus)
    assert isinstance(renumbered, RenumberedCorpus)
    for split in SPLITS:
        expected = corpus.split(split).decode(corpus.vocabulary, corpus.frames)
        found = renumbered.split(split).decode(renumbered.vocabulary, renumbered.frames)
        for one, other in zip(expected, found, strict=True):
            assert one.id == other.id
            for event, same in zip(one.events, other.events, strict=True):
                assert event.words == same.words
                assert same.frame == (None if event.frame == frames[0] else event.frame)


def test_a_local_path_is_never_looked_up_on_the_hub(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    for name in ("runs/nope", "./nope", "nope", str(folder / "nope")):
        assert main(["evaluate", name, "--corpus", str(folder / "corpus")]) == 2
        assert "no such file or folder" in capsys.readouterr().err


# Files.


def test_figures_that_cannot_be_kept_are_shown(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(folder / RUN, tmp_path / "run")
    (run / "scores.json").unlink(missing_ok=True)
    (run / "scores.json").mkdir()
    assert main(["evaluate", str(run), "--tasks=frames", "--json"]) == 0
    said = capsys.readouterr()
    assert "frame_accuracy" in json.loads(said.out)
    assert "scores.json" in said.err
    # What can be known beforehand is said before the work is done.
    assert main(["evaluate", str(run), "--details", str(tmp_path / "nowhere" / "d.jsonl")]) == 2
    assert "cannot write" in capsys.readouterr().err
    # And an older file is there until the new one is.
    (tmp_path / "d.jsonl").write_text("older")
    assert main(["evaluate", str(run), "--tasks=frames", "--details", str(tmp_path / "d.jsonl")]) == 2
    (tmp_path / "bad.txt").write_text("no items\n")
    bad = ["--tasks=cloze", "--cloze", str(tmp_path / "bad.txt"), "--details", str(tmp_path / "d.jsonl")]
    assert main(["evaluate", str(run), *bad]) == 2
    assert (tmp_path / "d.jsonl").read_text() == "older"


def test_the_quantiles_of_the_validation_split_are_stored(folder: Path, tmp_path: Path) -> None:
    """If perplexity is measured on it: a copy of the model then has percentiles."""
    from ssdvae.models.quantiles import TYPICAL

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


def test_the_next_event_is_measured_beside_counts(folder: Path, tmp_path: Path) -> None:
    for model in ("ssdvae-exact", "ssdvae"):
        run = shutil.copytree(folder / model, tmp_path / model)
        scores = ssdvae.evaluate(run, tasks="next", bound_samples=2, progress=False)
        for kind in ("head", "frame"):
            assert scores[f"next_{kind}_1"] <= scores[f"next_{kind}_5"] <= scores[f"next_{kind}_10"] <= 1
            assert scores[f"next_{kind}_1"] <= scores[f"next_{kind}_mrr"]
            assert 0 <= scores[f"next_{kind}_ece"] <= 1
            assert scores[f"next_{kind}_ngram_mrr"] > scores[f"next_{kind}_frequency_mrr"] > 0
