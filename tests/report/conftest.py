"""Two small runs, some of whose words and frames try to be markup, and the page about them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ssdvae import api
from ssdvae.data.events import Document, Event
from ssdvae.data.readers import write_jsonl
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
    shares: dict[str, Any] = {"valid_share": 0.3, "test_share": 0.1}
    sizes: dict[str, Any] = {"cloze_items": 8, "cloze_events": 5, "cloze_options": 3}
    corpus = api.prepare(folder / "events.jsonl", folder / "corpus", preset="tiny", **shares, **sizes)
    for model in ("ssdvae", "rnnlm"):
        api.train(corpus, folder / model, model=model, **TINY)
    for split in ("valid", "test"):
        api.evaluate(folder / "ssdvae", split=split, bound_samples=1, cloze_seeds=2)


@pytest.fixture(scope="session")
def page(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return api.write_report(runs, tmp_path_factory.mktemp("page") / "report.html", documents=3)
