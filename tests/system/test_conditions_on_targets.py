"""A perplexity whose model has read the words that it predicts is marked (†) wherever it is shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ssdvae.cli import main
from ssdvae.io.run import Run
from tests.system.mistakes import assert_is_a_message

TINY = ["--hidden=8", "--embedding=8", "--layers=1", "--epochs=1", "--batch=50"]
MODELS = {
    "latent": ["--model=ssdvae", "--observe=0.5"],
    "vector": ["--model=rnnlm", "--document-vector=4"],
    "code": ["--model=ssdvae", "--variant=code", "--observe=0.5"],
    "plain": ["--model=rnnlm"],
    "exact": ["--model=ssdvae-exact"],
}
VECTORS = {"vector", "code"}
MARKED = {"latent", *VECTORS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ahead")
    assert main(["world", str(folder / "events.jsonl"), "--documents", "150", "--seed", "5"]) == 0
    words = ["prepare", str(folder / "events.jsonl"), "--out", str(folder / "corpus"), "--preset", "tiny"]
    assert main([*words, "--valid-share=0.2", "--test-share=0.1", "--cloze-items=6"]) == 0
    for name, settings in MODELS.items():
        assert main(["train", str(folder / "corpus"), "--out", str(folder / name), *TINY, *settings]) == 0
    return folder


@pytest.fixture(params=MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_in_training(
    folder: Path,
    tmp_path: Path,
    name: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level("INFO")
    said(capsys, "train", folder / "corpus", "--out", tmp_path / "run", *TINY, *MODELS[name])
    found = re.search(r"valid ppl [\d.]+( †)?", caplog.text + capsys.readouterr().err)
    assert found is not None
    assert (found[1] is not None) == (name in MARKED)


def test_on_the_card(folder: Path, name: str) -> None:
    card = (folder / name / "README.md").read_text(encoding="utf-8")
    assert re.search(r"\| ppl \| [\d.]+ † \|" if name in MARKED else r"\| ppl \| [\d.]+ \|", card)
    assert ("† It conditions on latent variables" in card) == (name == "latent")
    assert ("† Its document vector has read" in card) == (name in VECTORS)
    assert ("†" in card) == (name in MARKED)


def test_when_evaluated(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    shown = said(capsys, "evaluate", folder / name, "--tasks=perplexity", "--bound-samples=2")
    assert bool(re.search(r"^ppl +[\d.]+ †", shown, re.MULTILINE)) == (name in MARKED)
    assert ("compare models by ppl_bound" in shown) == (name == "latent")
    assert ("do not compare it with other models" in shown) == (name in VECTORS)


def test_on_the_page(folder: Path, tmp_path: Path, name: str) -> None:
    assert main(["report", str(folder / name), "--out", str(tmp_path / "page.html")]) == 0
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    (best,) = (r["ppl"] for r in Run(folder / name).curve())
    places = re.findall(rf"{best:.2f}(?!\d)( †)?", page)
    assert len(places) >= 3  # among the runs, in the table of the curve, and in its picture
    assert {bool(mark) for mark in places} == {name in MARKED}


@pytest.mark.parametrize(("name", "part"), [("vector", "document-vector"), ("code", "document-vector")])
def test_when_parts_are_swapped(
    folder: Path, name: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = said(capsys, "explain", folder / name, "--swap", part)
    assert len(re.findall(r"[\d.]+ †", shown)) == 3  # as it is, the mean, another's


def test_a_vector_may_not_read_the_options_and_that_is_said_before_any_work(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in VECTORS:
        evaluate = ["evaluate", str(folder / name), "--cloze-frames=read"]
        assert_is_a_message(evaluate, "--cloze-frames read", folder / name, capsys)
    words = [
        "reproduce",
        "cloze",
        "--as=code",
        "--scale=tiny",
        "--seeds=1",
        "--observe=0",
        "--cloze-frames=read",
    ]
    out = tmp_path / "out"
    assert main([*words, "--data", str(folder / "corpus"), "--out", str(out)]) == 2
    assert "--cloze-frames read" in capsys.readouterr().err
    assert not (out / "runs").exists()
