"""Whoever asks a model about words that it does not know is told so, once, however it is asked."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ssdvae
from ssdvae.cli import main
from ssdvae.data.events import Document, Event
from ssdvae.data.readers import write_jsonl
from ssdvae.inference.inputs import ENOUGH, OovStats, warn_if_oov
from tests.report.conftest import runs as runs
from tests.toys import toy_model

KNOWN, STRANGE = "word1 word2", "xyzzy plugh word1"
VARIANTS: dict[str, Callable[[Any, Any], Any]] = {
    "infer": lambda run, events: list(ssdvae.infer(run, [events])),
    "next": lambda run, events: list(ssdvae.next_events(run, [events], beam=2)),
    "score": lambda run, events: list(ssdvae.score(run, [events])),
    "fill": lambda run, events: list(ssdvae.fill(run, [[*events, "?"]], beam=2)),
    "embed": lambda run, events: list(ssdvae.embed(run, [events])),
    "similar": lambda run, events: ssdvae.similar(run, events, among=[["word1"]]),
    "generate": lambda run, events: ssdvae.generate(run, events, scripts=1, events=1),
}


@pytest.mark.parametrize("ask", VARIANTS.values(), ids=VARIANTS)
def test_every_question_warns_of_strange_words(
    ask: Callable[[Any, Any], Any], caplog: pytest.LogCaptureFixture
) -> None:
    model = toy_model().float()
    ask(model, [KNOWN])
    assert not caplog.records
    ask(model, [STRANGE, STRANGE])
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "4 of 6 words are unknown" in record.message
    assert "ssdvae train" in record.message


def test_half_is_not_more_than_half_and_empty_slots_are_no_words() -> None:
    model = toy_model()
    half = Document("a", (Event("word1", "xyzzy"), Event("xyzzy", None, "word2"), Event("?")))
    assert OovStats.of(model, [half]) == OovStats(4, 2)
    warning = OovStats.of(model, [half]).warning
    assert warning is not None
    assert "xyzzy" in warning
    assert "say little" not in warning
    assert OovStats(4, 2).warning is None
    assert OovStats(4, 3).warning is not None
    assert OovStats().warning is None


def test_a_long_stream_is_told_before_its_end_and_once(caplog: pytest.LogCaptureFixture) -> None:
    documents = warn_if_oov(toy_model(), (Document("a", (Event("xyzzy"),)) for _ in range(3 * ENOUGH)))
    for _, _ in zip(range(ENOUGH + 1), documents, strict=False):
        pass
    assert len(caplog.records) == 1
    assert len(list(documents)) == 2 * ENOUGH - 1
    assert len(caplog.records) == 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_file_and_the_command(
    runs: list[Path], jobs: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_jsonl(tmp_path / "new.jsonl", [Document(str(n), (Event("xyzzy", "plugh"),)) for n in range(9)])
    words = ["infer", str(tmp_path / "new.jsonl"), "--run", str(runs[0])]
    assert main([*words, "--out", str(tmp_path / "out.jsonl"), "--jobs", str(jobs)]) == 0
    assert "18 of 18 words are unknown" in capsys.readouterr().err
