"""Sums of nats and counts, divided once."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import torch

from ssdvae.config import EvaluateSettings
from ssdvae.data.corpus import Documents
from ssdvae.evaluation.perplexity import Tally, evaluate
from tests.toys import FRAMES, WORDS, toy_ssdvae

LENGTHS = [3, 1, 2, 3, 3]


@pytest.fixture
def documents() -> Documents:
    draw = np.random.default_rng(0)
    frames = draw.integers(0, FRAMES, (5, 3)).astype(np.int32)
    frames[0, 1] = -1  # an event whose frame nobody knows
    return Documents(
        pa.chunked_array([[str(i) for i in range(5)]]),
        draw.integers(0, WORDS, (5, 3, 4)).astype(np.int32),
        frames,
        np.array(LENGTHS, np.int32),
    )


def test_a_model_that_knows_nothing(documents: Documents) -> None:
    """Uniform words: ppl = V. The official figure divides by separators too. The bound is exact: no word
    depends on the frames, and q is uniform like the prior.
    """
    model = toy_ssdvae()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    scores = evaluate(model, documents, EvaluateSettings(bound_samples=2, eval_batch=2))
    events = sum(LENGTHS)
    assert scores["words"] == 4 * events
    assert scores["documents"] == len(LENGTHS)
    assert scores["ppl"] == pytest.approx(WORDS)
    assert scores["ppl_bound"] == pytest.approx(WORDS)
    separators = events - len(LENGTHS)
    assert scores["ppl_official"] == pytest.approx(
        math.exp(math.log(WORDS) * 4 * events / (4 * events + separators))
    )


def test_frame_accuracy_counts_the_events_whose_frame_is_known(documents: Documents) -> None:
    model = toy_ssdvae()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    model.encoder.w_out.bias.data[1] = 1.0  # always infers frame 1
    real = np.arange(3) < np.array(LENGTHS)[:, None]
    labelled = real & (documents.frames >= 0)
    expected = ((documents.frames == 1) & labelled).sum() / labelled.sum()
    scores = evaluate(model, documents, EvaluateSettings(bound_samples=1))
    assert scores["frame_accuracy"] == pytest.approx(expected)


def test_any_number_of_processes_gives_the_same_figures(documents: Documents) -> None:
    model, settings = toy_ssdvae(), EvaluateSettings(eval_batch=2, bound_samples=2)
    whole = evaluate(model, documents, settings)
    parts: list[torch.Tensor] = []

    def keep(tally: torch.Tensor) -> torch.Tensor:
        parts.append(tally)
        return tally

    for process in range(2):
        evaluate(model, documents, settings, process=process, processes=2, reduce=keep)
    assert Tally(*torch.stack(parts).sum(0).tolist()).scores() == pytest.approx(whole)


def test_evaluation_looks_at_no_frame_and_changes_no_mode(documents: Documents) -> None:
    model, settings = toy_ssdvae().train(), EvaluateSettings(bound_samples=2)
    before = evaluate(model, documents, settings)
    assert model.training
    other = Documents(documents.ids, documents.tokens, (documents.frames + 1) % FRAMES, documents.lengths)
    after = evaluate(model, other, settings)
    for name in ("ppl", "ppl_official", "ppl_bound"):
        assert after[name] == before[name]
