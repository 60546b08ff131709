"""Two small runs, some of whose words and frames try to be markup, and the page about them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ssdvae.analysis.options import ReportOptions
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document, Event
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.evaluation.measure import evaluate_run
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.models.base import Model
from ssdvae.report.page import write_report
from ssdvae.report.render import TEMPLATES
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import train
from tests.shared import made_once

WORD = "<script>alert(1)</script>"
FRAME = '"><img/src="https://example.org/x.png"/onerror=alert(2)>'
NAME = "</title><b>&amp;"
SCRIPTS = (
    [
        (WORD, FRAME),
        ("chased", "Cotheme"),
        ("caught", "Taking_captive"),
        ("tried", "Trial"),
        ("jailed", "Prison"),
    ],
    [
        ("met", "Meeting"),
        ("dated", "Romance"),
        ("married", "Wedding"),
        ("argued", "Quarrel"),
        ("left", "Departing"),
    ],
)
TINY: dict[str, Any] = {
    "preset": "tiny",
    "hidden": 16,
    "embedding": 16,
    "epochs": 8,
    "batch": 16,
    "learning_rate": 0.02,
}


def documents(count: int) -> Iterator[Document]:
    """One of two scripts each, so plain that a few steps of training are enough to tell them apart."""
    chance = random.Random(1)
    for number in range(count):
        events = [
            Event(
                verb, chance.choice(["ann", "bob", "eve"]), chance.choice(["dog", "cat", None]), frame=frame
            )
            for verb, frame in SCRIPTS[number % 2]
        ]
        yield Document(f"{NAME}{number}", tuple(events))


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """SSDVAE, measured on two splits, and RNNLM, not measured."""
    folder = made_once(tmp_path_factory, "reported-runs", _make_runs)
    return [folder / "ssdvae", folder / "rnnlm"]


def _make_runs(folder: Path) -> None:
    write_jsonl(folder / "events.jsonl", documents(160))
    options = PrepareOptions.sized(
        "tiny", valid_share=0.3, test_share=0.1, cloze_items=8, cloze_events=5, cloze_options=3
    )
    corpus = prepare(folder / "events.jsonl", folder / "corpus", options)
    for model in ("ssdvae", "rnnlm"):
        train_small(corpus, folder / model, model=model)
    for split in ("valid", "test"):
        evaluate_small(folder / "ssdvae", corpus, split=split, cloze_seeds=2)


def train_small(corpus: Corpus, out: Path, **options: Any) -> None:
    train(corpus, out, TrainOptions.chosen({**TINY, **options}, corpus.counts))


def evaluate_small(run: Path, corpus: Corpus, **options: Any) -> None:
    evaluate_run(run, Model.read(run), corpus, EvaluateOptions(bound_samples=1, **options))


@pytest.fixture(scope="session")
def page(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(runs, tmp_path_factory.mktemp("page") / "report.html", ReportOptions(documents=3))


def render_block(block: Any) -> str:
    """Return the markup of one block."""
    template = TEMPLATES.from_string('{% import "blocks.html.j2" as blocks %}{{ blocks.show(block) }}')
    return template.render(block=block)
