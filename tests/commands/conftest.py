"""Documents of the embedded world, and runs of three models on them, for the commands that ask and show."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ssdvae.cli import main
from ssdvae.commands.coerce import load
from ssdvae.commands.train import train
from ssdvae.data.events import Document
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.inference.generation import generate
from ssdvae.inference.options import GenerateOptions
from ssdvae.models.hub import SCRIPTS
from ssdvae.storyworld.world import World
from tests.shared import made_once

TINY: dict[str, Any] = {"hidden": 8, "embedding": 8, "layers": 1, "epochs": 1, "batch": 50}
MODELS = ("ssdvae-exact", "ssdvae", "rnnlm")


def _make(folder: Path) -> None:
    write_jsonl(folder / "events.jsonl", World.embedded().documents(200, 5))
    options = PrepareOptions.sized("tiny", valid_share=0.2, test_share=0.1)
    corpus = prepare(folder / "events.jsonl", folder / "corpus", options)
    for model in MODELS:
        train(corpus, folder / model, model=model, progress=False, **TINY)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with events.jsonl, corpus, and runs that are called as their models."""
    return made_once(tmp_path_factory, "asked-models", _make)


@pytest.fixture
def packed(folder: Path, tmp_path: Path) -> Path:
    """A folder with a model and its scripts, but no run."""
    model = load(folder / "ssdvae-exact")
    model.save_pretrained(tmp_path / "packed")
    written = generate(model, GenerateOptions(scripts=20))
    documents = [Document(str(n), tuple(e.event for e in script.events)) for n, script in enumerate(written)]
    write_jsonl(tmp_path / "packed" / SCRIPTS, documents)
    return tmp_path / "packed"


Ask = Callable[..., str]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Run a command and return what it prints on standard output."""

    def run(*words: object) -> str:
        capsys.readouterr()
        assert main([str(word) for word in words]) == 0
        return capsys.readouterr().out

    return run


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def type_in(monkeypatch: pytest.MonkeyPatch, text: str | bytes) -> None:
    content = text.encode() if isinstance(text, str) else text
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


def assert_is_a_message(
    words: str, expected: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run a command that must fail: a message on standard error, no traceback, nothing written.

    EXACT, SSDVAE and PLAIN are runs; EVENTS is a file.
    """
    places = {
        "EXACT": folder / "ssdvae-exact",
        "SSDVAE": folder / "ssdvae",
        "PLAIN": folder / "rnnlm",
        "EVENTS": folder / "events.jsonl",
    }
    before = sorted(tmp_path.iterdir())
    capsys.readouterr()
    assert main([str(places.get(word, word)) for word in words.split()]) == 2
    printed = capsys.readouterr()
    assert expected in printed.err
    assert "Traceback" not in printed.err
    assert not printed.out
    assert sorted(tmp_path.iterdir()) == before
