"""From a log with slots of its own to a page: no command knows how many there are, or their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ssdvae
from ssdvae.data.events import Document, Event
from ssdvae.data.readers import write_jsonl
from ssdvae.models.base import as_frame_model

SIZES: dict[str, Any] = {"hidden": 8, "embedding": 8, "layers": 1, "epochs": 1, "progress": False}
STEPS = {"opened": "Start", "asked": "Work", "fixed": "Work", "closed": "End"}


def a_log(folder: Path, slots: tuple[str, ...]) -> Path:
    documents = []
    for number in range(240):
        kept = [(head, frame) for place, (head, frame) in enumerate(STEPS.items()) if (number >> place) % 3]
        words = [f"{slot}{number % (2 + place)}" for place, slot in enumerate(slots[1:])]
        documents.append(Document(f"t{number}", tuple(Event(h, *words, frame=f) for h, f in kept)))
    write_jsonl(folder / "log.jsonl", [d for d in documents if d.events], slots)
    return folder / "log.jsonl"


@pytest.mark.parametrize(
    ("slots", "model"),
    [
        (("action",), "ssdvae"),
        (("action", "agent"), "ssdvae-exact"),
        (("action", "by", "what", "how", "where", "size", "gap"), "haqae"),
    ],
)
def test_every_command_takes_the_slots_of_the_corpus(
    slots: tuple[str, ...], model: str, tmp_path: Path
) -> None:
    log, run = a_log(tmp_path, slots), tmp_path / "run"
    corpus = ssdvae.prepare(
        log,
        tmp_path / "corpus",
        slots=",".join(slots),
        valid_share=0.3,
        test_share=0.3,
        cloze_events=2,
        jobs=1,
    )
    assert corpus.slots == slots
    ssdvae.train(corpus, run, model=model, **SIZES)
    loaded = ssdvae.load(run)
    assert loaded.slots == slots
    assert all(slot in (run / "README.md").read_text() for slot in slots)
    scores = ssdvae.evaluate(run, progress=False, cloze_seeds=2)
    assert scores["words"] == len(slots) * corpus.manifest["splits"]["valid"]["events"], scores
    (script, *_) = ssdvae.generate(run, ["opened"], events=2, scripts=1)
    assert list(script.to_record()["events"][0]["event"])[: len(slots)] == list(slots)
    assert all(len(event.event.words) <= len(slots) for event in script.events)
    if as_frame_model(loaded) is not None:
        ssdvae.write_answers(ssdvae.infer(run, log, progress=False), tmp_path / "out.jsonl")
        first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])["events"][0]
        assert list(first)[: len(slots)] == list(slots)
        ssdvae.explain(run, progress=False)
    page = ssdvae.write_report(run, tmp_path / "page.html", progress=False).read_text()
    assert as_frame_model(loaded) is None or ", ".join(slots) in page
