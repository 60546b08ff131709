"""Generated scripts: who judges them, and what cannot be had by repeating oneself."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ssdvae
from ssdvae.data.batches import Batch
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document, Event
from ssdvae.evaluation import scripts
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.scripts import head_entropy, is_of_world, measure_scripts
from ssdvae.inference.generation import sample_continuations
from ssdvae.inference.options import GenerateOptions
from ssdvae.models.base import Model
from ssdvae.storyworld.world import World


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("scripts")
    ssdvae.world(folder / "events.jsonl", documents=400, progress=False)
    return ssdvae.prepare(folder / "events.jsonl", folder / "corpus", valid_share=0.2, progress=False)


@pytest.fixture(scope="module")
def run(corpus: Corpus) -> Path:
    small: dict[str, Any] = {"hidden": 16, "embedding": 16, "epochs": 1, "progress": False}
    return ssdvae.train(corpus, corpus.folder.parent / "run", **small).folder


def documents(*events: tuple[str, str]) -> list[Document]:
    """Each with a first event, which does not count, and one with a head and a frame."""
    return [Document(str(n), (Event("first"), Event(head, frame=f))) for n, (head, f) in enumerate(events)]


def test_the_entropy_of_heads_is_that_within_a_frame() -> None:
    even = documents(("a", "F"), ("b", "F"), ("c", "G"), ("c", "G"))
    assert head_entropy(even) == pytest.approx(math.log(2) / 2)
    assert head_entropy(documents(("a", "F"), ("c", "G"))) == 0
    assert head_entropy(documents(*[(str(n), "F") for n in range(8)])) == pytest.approx(math.log(8))


def test_true_documents_are_judged_as_real_ones(
    corpus: Corpus, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader, the entropies and the world see no difference between a document and its copy."""
    valid = corpus.split("valid")
    copies = torch.from_numpy(valid.padded(valid.tokens, 0))
    monkeypatch.setattr(scripts, "sample_continuations", lambda *asked: copies)
    model, settings = Model.read(run), EvaluateOptions(eval_batch=len(valid))
    result = measure_scripts(model, corpus, valid, settings)
    assert result is not None
    scores = result.scores
    assert scores["scripts_as_asked"] == scores["scripts_real_as_labelled"] > 0.7
    assert scores["scripts_head_variety"] == 1
    # Names that training has not seen are unknown words, which the world does not say.
    known = [(valid.tokens[part] != corpus.vocabulary.unknown).all() for part in valid.parts()]
    assert scores["scripts_possible"] == pytest.approx(np.mean(known))
    assert scores["scripts_log_prob"] == scores["scripts_true_log_prob"]
    # Always the same head for a frame: there is no variety in that.
    heads = {int(frame): int(words[0]) for words, frame in zip(valid.tokens, valid.frames, strict=True)}
    copies[..., 0] = torch.from_numpy(np.vectorize(heads.get)(valid.padded(valid.frames, 0), 0))
    monotonous = measure_scripts(model, corpus, valid, settings)
    assert monotonous is not None
    assert monotonous.scores["scripts_head_variety"] == 0
    assert monotonous.scores["scripts_possible"] < scores["scripts_possible"]


def test_scripts_are_measured_of_a_run_and_are_the_same_again(run: Path) -> None:
    asked: dict[str, Any] = {"tasks": "scripts", "scripts": 30, "progress": False}
    scores = ssdvae.evaluate(run, **asked)
    assert ssdvae.evaluate(run, **asked) == scores
    assert 0 <= scores["scripts_as_asked"] <= 1
    assert 0 <= scores["scripts_possible"] <= 1


def test_the_reader_may_be_given(run: Path, tmp_path: Path) -> None:
    """A lexicon without any verb of the corpus knows no frame, and is never right."""
    (tmp_path / "verbs.json").write_text('{"xyzzy": ["Nowhere"]}')
    reader = str(tmp_path / "verbs.json")
    scores = ssdvae.evaluate(run, tasks="scripts", scripts=5, script_reader=reader, progress=False)
    assert scores["scripts_as_asked"] == scores["scripts_real_as_labelled"] == 0


def test_only_storyworld_is_told_by_the_world(corpus: Corpus, tmp_path: Path) -> None:
    assert is_of_world(corpus, World.embedded())
    ssdvae.tickets(tmp_path / "tickets.jsonl", documents=50, progress=False)
    other = ssdvae.prepare(tmp_path / "tickets.jsonl", tmp_path / "corpus", valid_share=0.2, progress=False)
    assert not is_of_world(other, World.embedded())


def test_each_seed_is_continued_by_itself(corpus: Corpus, run: Path) -> None:
    """A script begins with its own seed, whatever the others are."""
    model = Model.read(run).eval()
    valid = corpus.split("valid").first(3)
    rows = np.flatnonzero(valid.lengths == 3)[:4]
    tokens = torch.from_numpy(valid.take(rows).padded(valid.tokens, 0)).long()
    batch = Batch.of_words(tokens)
    asked = torch.full((4, 3), -1)
    made = sample_continuations(model, batch.first(1), asked, GenerateOptions(seed=3))
    assert made.shape == tokens.shape
    assert (made[:, 0] == tokens[:, 0]).all()
    others = sample_continuations(model, batch.first(1), asked, GenerateOptions(seed=4))
    assert (made[:, 1:] != others[:, 1:]).any()
