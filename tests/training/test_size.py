"""Models that no machine can hold are refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdvae.data.corpus import Corpus
from ssdvae.data.events import MISSING
from ssdvae.data.vocabulary import UNKNOWN, Vocabulary
from ssdvae.io.errors import UserError
from ssdvae.models.registry import MODELS
from ssdvae.training.loop import new_model, parameters_at_least, refuse_if_too_large
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import train

SMALL = {"embedding": 8, "hidden": 8, "layers": 1, "batch": 32, "epochs": 1}


@pytest.mark.parametrize("name", MODELS)
def test_the_estimate_is_never_more_than_the_truth(name: str, corpus: Corpus) -> None:
    large = Vocabulary([MISSING, UNKNOWN, *map(str, range(5_000))], [1] * 5_002)
    for more in ({}, {"hidden": 32}, {"layers": 3}):
        settings = TrainOptions.of({"model": name, **SMALL, **more})
        for vocabulary in (corpus.vocabulary, large):
            model = new_model(settings, vocabulary, corpus.frames, None)
            truth = sum(parameter.numel() for parameter in model.parameters())
            least = parameters_at_least(settings, len(vocabulary), len(corpus.frames))
            assert truth / 20 < least <= truth  # the same order, whatever the model


@pytest.mark.parametrize(
    "more",
    [
        {"hidden": 10**8},
        {"embedding": 10**10},
        {"batch": 10**9, "hidden": 10**6},
        {"model": "ssdvae", "samples": 10**9},
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_estimate(
    more: dict[str, object], corpus: Corpus, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"parameters takes .* of memory|--samples: found"):
        train(corpus, tmp_path / "run", TrainOptions.of({**SMALL, **more}))
    assert not list(tmp_path.iterdir())


def test_the_limit_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TrainOptions.of(SMALL)
    refuse_if_too_large(settings, 100, 10, 100, 5, 4)
    monkeypatch.setenv("SSDVAE_MAX_MEMORY", "1K")
    with pytest.raises(UserError, match=r"takes [\d.]+ KiB of memory .* this machine has 1 KiB"):
        refuse_if_too_large(settings, 100, 10, 100, 5, 4)
