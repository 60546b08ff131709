"""A log without any label, from prepare to the page; and one of which labels cover a part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import adjusted_mutual_info_score

import ssdvae
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document
from ssdvae.data.options import PrepareOptions
from ssdvae.data.readers import write_jsonl
from ssdvae.data.source import split_of
from ssdvae.io.errors import UserError
from ssdvae.storyworld.tickets import ticket_documents

SIZES: dict[str, Any] = {"hidden": 24, "embedding": 24, "layers": 1, "batch": 30, "progress": False}
TICKETS = 400
SPLITS = PrepareOptions(valid_share=0.2, test_share=0.1)


def corpus_of(folder: Path, documents: list[Document], **settings: Any) -> Corpus:
    write_jsonl(folder / "log.jsonl", documents)
    settings |= {"valid_share": SPLITS.valid_share, "test_share": SPLITS.test_share}
    path = folder / "log.jsonl"
    return ssdvae.prepare(path, folder / "corpus", jobs=1, progress=False, **settings)


@pytest.fixture(scope="module")
def unlabelled(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus_of(tmp_path_factory.mktemp("unlabelled"), list(ticket_documents(TICKETS, known=0)))


def agreement(run: Path) -> float:
    """With the stages that the model was never told, on documents that it has not read."""
    told = [d for d in ticket_documents(TICKETS, known=1) if split_of(d.id, SPLITS) == "valid"]
    events = [e for d in ssdvae.infer(run, told, progress=False) for e in d.events]
    return float(adjusted_mutual_info_score([str(e.gold) for e in events], [e.frame for e in events]))


def test_a_corpus_without_labels_keeps_all_events(unlabelled: Corpus) -> None:
    assert len(unlabelled.frames) == 0
    train = unlabelled.manifest["splits"]["train"]
    assert train["dropped_events"] == 0
    assert train["events"] == train["frameless_events"] > 0


def test_frames_are_found_without_a_label(unlabelled: Corpus, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ssdvae.train(unlabelled, run, unnamed_frames=14, epochs=6, learning_rate=5e-3, **SIZES)
    loaded = ssdvae.load(run)
    assert len(loaded.frames) == 14
    assert all(name.startswith("~") for name in loaded.frames.names)
    assert any("/" in name for name in loaded.frames.names)
    assert agreement(run) > 0.5
    ssdvae.evaluate(run, progress=False, cloze_seeds=2)
    page = ssdvae.write_report(run, tmp_path / "page.html", progress=False).read_text()
    assert "~" in page
    record = json.loads(json.dumps(next(ssdvae.infer(run, [["opened customer"]])).to_record()))
    assert record["events"][0]["frame"] in loaded.frames.names
    planned = loaded.frames.names[0]
    assert ssdvae.generate(run, ["opened customer"], [planned], events=1, scripts=1)


@pytest.mark.parametrize("model", ["rnnlm", "rnnlm-role", "haqae"])
def test_models_without_frames_need_no_labels(model: str, unlabelled: Corpus, tmp_path: Path) -> None:
    ssdvae.train(unlabelled, tmp_path / "run", model=model, epochs=1, **SIZES)
    assert ssdvae.evaluate(tmp_path / "run", progress=False, cloze_seeds=2)["ppl"] > 1


def test_the_default_model_needs_no_labels(unlabelled: Corpus, tmp_path: Path) -> None:
    """It has a single component, answers what needs no frames, and says of the rest that it has none."""
    run, log = tmp_path / "run", unlabelled.folder.parent / "log.jsonl"
    ssdvae.train(unlabelled, run, epochs=2, **SIZES)
    assert len(ssdvae.load(run).frames) == 0
    scores = ssdvae.evaluate(run, progress=False, cloze_seeds=2)
    assert 1 < scores["ppl"] < len(unlabelled.vocabulary)
    assert "ppl_conditions_on_targets" not in scores or not scores["ppl_conditions_on_targets"]
    assert not [name for name in scores if name.startswith("frame_") and scores[name] is not None]
    page = ssdvae.write_report(run, tmp_path / "page.html", progress=False).read_text()
    assert "there are no frames to look at" in page
    (answer,) = ssdvae.next_events(run, [["opened customer"]])
    assert answer.exact
    assert answer.events
    assert not answer.frames
    assert {document.kind for document in ssdvae.score(run, log, progress=False)} == {"exact"}
    assert next(ssdvae.fill(run, [["opened customer", "?"]])).holes
    assert next(ssdvae.embed(run, log)).vector.any()
    assert ssdvae.generate(run, ["opened customer"], events=2, scripts=1)
    for ask in (
        lambda: list(ssdvae.infer(run, log, progress=False)),
        lambda: ssdvae.explain(run, progress=False),
    ):
        with pytest.raises(UserError, match="there are no frames to look at"):
            ask()


def test_a_run_without_labels_goes_on_and_is_fine_tuned(unlabelled: Corpus, tmp_path: Path) -> None:
    first = ssdvae.train(unlabelled, tmp_path / "first", epochs=1, **SIZES)
    tuned = ssdvae.train(unlabelled, tmp_path / "tuned", epochs=1, init=first.folder, **SIZES)
    assert tuned.metrics()[-1]["ppl"] < first.metrics()[-1]["ppl"]
    assert ssdvae.resume(tuned.folder, progress=False).state().finished


@pytest.mark.parametrize("model", ["ssdvae", "rnnlm-classifier", "rnnlm-role-classifier"])
def test_a_model_that_must_observe_frames_refuses_a_corpus_without_any(
    model: str, unlabelled: Corpus, tmp_path: Path
) -> None:
    expected = (
        rf"no event of .* has a frame, and {model} needs some\n.*ssdvae-exact, rnnlm, rnnlm-role, haqae"
    )
    with pytest.raises(UserError, match=expected):
        ssdvae.train(unlabelled, tmp_path / "run", model=model, epochs=1, **SIZES)


def test_unnamed_frames_are_for_what_labels_do_not_cover(tmp_path: Path) -> None:
    """Half of the stages are never labelled: their events have unnamed frames, others mostly named ones."""
    stages = sorted({str(e.frame) for d in ticket_documents(50, known=1) for e in d.events})
    covered = set(stages[::2])
    documents = [
        Document(d.id, tuple(e if e.frame in covered else e.changed(frame=None) for e in d.events))
        for d in ticket_documents(TICKETS, known=1)
    ]
    corpus = corpus_of(tmp_path, documents)
    run = tmp_path / "run"
    ssdvae.train(
        corpus, run, unnamed_frames=len(stages) - len(covered), epochs=6, learning_rate=5e-3, **SIZES
    )
    assert ssdvae.load(run).frames.names[: len(covered)] == corpus.frames.names
    told = [d for d in ticket_documents(TICKETS, known=1) if split_of(d.id, SPLITS) == "valid"]
    events = [e for d in ssdvae.infer(run, told, progress=False) for e in d.events]
    named = [e.frame in covered for e in events]
    right = [n == (e.gold in covered) for n, e in zip(named, events, strict=True)]
    assert sum(right) / len(right) > 0.8
    scores = ssdvae.evaluate(run, progress=False, tasks="frames")
    assert 0 < scores["frame_ami"] <= 1
