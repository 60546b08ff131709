"""Another architecture is one file: it trains, generates, answers and is saved like all others."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import ssdvae
from ssdvae.data.batches import Batch
from ssdvae.models.base import LanguageModel
from ssdvae.models.latents import LatentQuery
from ssdvae.models.options import MODEL_OPTIONS
from ssdvae.models.registry import MODELS
from tests.models.transformer import TransformerLM, TransformerOptions


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "transformer", TransformerLM)
    monkeypatch.setitem(MODEL_OPTIONS, "transformer", TransformerOptions)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    ssdvae.world(tmp_path / "events.jsonl", documents=400, progress=False)
    ssdvae.prepare(tmp_path / "events.jsonl", tmp_path / "corpus", valid_share=0.2, progress=False)
    # As a caller in Python does: `--model` on the command line lists the models of the package.
    from ssdvae.data.corpus import Corpus
    from ssdvae.training.options import TrainOptions
    from ssdvae.training.train import train

    sizes = {"embedding": 16, "hidden": 16, "layers": 1, "batch": 20, "epochs": 3, "learning_rate": 5e-3}
    settings = TrainOptions(model_options=TransformerOptions(), **sizes)
    return train(Corpus(tmp_path / "corpus"), tmp_path / "run", settings).folder


def test_it_trains_answers_and_writes(run: Path) -> None:
    curve = [record["ppl"] for record in ssdvae.Run(run).metrics() if record["split"] == "valid"]
    assert curve[-1] < 0.8 * curve[0]
    model = ssdvae.load(run)
    assert isinstance(model, TransformerLM)
    (ahead,) = ssdvae.next_events(model, [["arrested police suspect"]], progress=False)
    assert ahead.exact
    assert sum(event.probability for event in ahead.events) < 1
    scripts = ssdvae.generate(model, ["arrested police suspect"], events=2, scripts=2)
    assert all(len(script.events) == 3 for script in scripts)
    (scored,) = ssdvae.score(model, [["arrested police suspect", "jailed court man"]], progress=False)
    assert scored.kind == "exact"


@torch.no_grad()
def test_word_by_word_it_gives_the_probabilities_of_the_whole_document(run: Path) -> None:
    model = ssdvae.load(run)
    assert isinstance(model, LanguageModel)
    batch = Batch.of_words(torch.randint(2, len(model.vocabulary), (3, 2, len(model.slots))))
    latents = model.latents(LatentQuery.roll_out(batch.first(0), 2))
    whole, state = model.log_probs(batch, latents), model.start(batch.first(0), latents)
    for event in range(2):
        words = None
        for slot in range(len(model.slots)):
            log_p, state = model.next_word(state, latents.after(event), words, slot)
            words = batch.tokens[:, event, slot]
            torch.testing.assert_close(log_p.gather(1, words[:, None])[:, 0], whole[:, event, slot])
        _, state = model.next_word(state, latents.after(event), words, len(model.slots))
