"""The examples of every --help, run one after another as a stranger would run them."""

from __future__ import annotations

import io
import shlex
import shutil
from pathlib import Path

import pytest

import ssdvae
from ssdvae.cli import MODULES, find_command, main
from tests.extraction.conftest import spacy_model as spacy_model  # a fixture

EXAMPLE = Path(ssdvae.__file__).parent / "extraction" / "example"
ORDER = [
    *("world", "tickets", "extract", "annotate", "import", "prepare", "train", "evaluate", "scores"),
    *(
        "explain",
        "infer",
        "next",
        "score",
        "fill",
        "embed",
        "similar",
        "generate",
        "report",
        "check",
        "pack",
    ),
]
# Hours, or minutes: their flags are looked at, and tests of their own run them in small.
TOO_LONG = {"demo", "explore", "reproduce"}
# From the web: tests/data/test_download.py has a server of its own.
FAR_AWAY = {"data"}


def words_of(example: str) -> tuple[list[str], str]:
    """Return the words after ``ssdvae``, and what is piped into it."""
    typed, _, command = example.rpartition(" | ")
    program, *words = shlex.split(command)
    assert program == "ssdvae"
    return words, "\n".join(shlex.split(typed)[1:]).replace("\\n", "\n")


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spacy_model: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stories").mkdir()
    shutil.copy(EXAMPLE / "ferry.conllu", tmp_path / "stories")
    shutil.copy(EXAMPLE / "verbs.csv", tmp_path)
    (tmp_path / "about.md").write_text("## Data\n\nMade up.\n")
    (tmp_path / "LICENSE").write_text("Free.\n")
    (tmp_path / "mine.csv").write_text("document,verb,subj,obj,mod,frame\na,met,she,him,at,Meet_with\n")
    for name in ("news", "more"):
        (tmp_path / f"{name}_TUP.txt").write_text("met she him _NULL_ <TUP> left he none at\n")
        (tmp_path / f"{name}_frame.txt").write_text("Meet_with __NOFRAME__\n")
    assert {*ORDER, *TOO_LONG, *FAR_AWAY} == MODULES.keys()
    for name in ORDER:
        for example in find_command(name).examples:
            words, typed = words_of(example)
            # Ten thousand documents, and all epochs, take too long here.
            more = ["--documents", "600"] if name == "world" and "--documents" not in words else []
            more += ["--epochs", "1"] if name == "train" and "--resume" not in words else []
            more += ["--spacy-model", str(spacy_model)] if name == "extract" else []
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(typed.encode())))
            assert main([*words, *more]) == 0, example
