"""Two small runs, whose words and frames try to be markup, and the page about them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ssdvae import api
from ssdvae.data.events import Document, Event
from ssdvae.data.readers import write_jsonl
from ssdvae.data.storyworld import World

WORD = "<script>alert(1)</script>"
FRAME = '"><img/src="https://example.org/x.png"/onerror=alert(2)>'
NAME = "</title><b>&amp;"
TINY: dict[str, Any] = {"preset": "tiny", "hidden": 8, "embedding": 8, "epochs": 3, "batch": 50}


def hostile(document: Document) -> Document:
    """The same document, its first event in words that would do harm if they were not escaped."""
    first = Event(WORD, document.events[0].subj, WORD, None, FRAME)
    return dataclasses.replace(document, id=NAME + document.id, events=(first, *document.events[1:]))


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """SSDVAE, measured on two splits, and RNNLM, not measured."""
    folder = tmp_path_factory.mktemp("report")
    documents = World.embedded().documents(300, seed=3)
    write_jsonl(folder / "events.jsonl", map(hostile, documents))
    corpus = api.prepare(
        folder / "events.jsonl", folder / "corpus", preset="tiny", valid_share=0.2, test_share=0.1
    )
    for name, model in (("ssdvae", "ssdvae"), ("rnnlm", "rnnlm")):
        api.train(corpus, folder / name, model=model, **TINY)
    for split in ("valid", "test"):
        api.evaluate(folder / "ssdvae", split=split, bound_samples=1, cloze_seeds=2)
    return [folder / "ssdvae", folder / "rnnlm"]


@pytest.fixture(scope="session")
def page(runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return api.write_report(runs, tmp_path_factory.mktemp("page") / "report.html", documents=3)
