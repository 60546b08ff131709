"""Sums of nats and counts, divided once."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.nn import functional

from ssdvae.data.batches import collate
from ssdvae.data.corpus import Documents
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.perplexity import Tally, evaluate
from ssdvae.models.base import LatentModel
from ssdvae.models.latents import FramePosterior
from tests.models.test_cases import toy_cases
from tests.toys import FRAMES, WORDS, padded_documents, toy_documents, toy_exact, toy_model, toy_ssdvae

LENGTHS = [3, 1, 2, 3, 3]


@pytest.fixture
def documents() -> Documents:
    draw = np.random.default_rng(0)
    frames = draw.integers(0, FRAMES, (5, 3)).astype(np.int32)
    frames[0, 1] = -1  # an event whose frame nobody knows
    ids = pa.chunked_array([[str(i) for i in range(5)]])
    return padded_documents(ids, draw.integers(0, WORDS, (5, 3, 4)), frames, LENGTHS)


def test_a_model_that_knows_nothing(documents: Documents) -> None:
    """Uniform words: ppl = V. The official figure divides by separators too. The bound is exact: no word
    depends on the frames, and q is uniform like the prior.
    """
    model = toy_ssdvae()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    scores = evaluate(model, documents, EvaluateOptions(bound_samples=2, eval_batch=2))
    events = sum(LENGTHS)
    assert scores["words"] == 4 * events
    assert scores["documents"] == len(LENGTHS)
    assert scores["ppl"] == pytest.approx(WORDS)
    assert scores["ppl_bound"] == pytest.approx(WORDS)
    separators = events - len(LENGTHS)
    assert scores["ppl_with_separators"] == pytest.approx(
        math.exp(math.log(WORDS) * 4 * events / (4 * events + separators))
    )


def test_frame_accuracy_counts_the_events_whose_frame_is_known(documents: Documents) -> None:
    model = toy_ssdvae()
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    model.encoder.w_out.bias.data[1] = 1.0  # always infers frame 1
    real = np.arange(3) < np.array(LENGTHS)[:, None]
    frames = documents.padded(documents.frames, -1)
    labelled = real & (frames >= 0)
    expected = ((frames == 1) & labelled).sum() / labelled.sum()
    scores = evaluate(model, documents, EvaluateOptions(bound_samples=1))
    assert scores["frame_accuracy"] == pytest.approx(expected)


def test_any_number_of_processes_gives_the_same_figures(documents: Documents) -> None:
    model, settings = toy_ssdvae(), EvaluateOptions(eval_batch=2, bound_samples=2)
    whole = evaluate(model, documents, settings)
    parts: list[torch.Tensor] = []

    def keep(tally: torch.Tensor) -> torch.Tensor:
        parts.append(tally)
        return tally

    for process in range(2):
        evaluate(model, documents, settings, process=process, processes=2, reduce=keep)
    names = vars(Tally.empty(1, 1, 1))
    first, second = parts[: len(names)], parts[len(names) :]
    together = Tally(*(a + b for a, b in zip(first, second, strict=True))).scores(words_scored=True)
    by_samples = together.pop("ppl_bound_by_samples"), whole.pop("ppl_bound_by_samples")
    assert by_samples[0] == pytest.approx(by_samples[1])
    assert whole.pop("ppl_conditions_on_targets") == 1
    assert together == pytest.approx(whole)


def test_evaluation_looks_at_no_frame_and_changes_no_mode(documents: Documents) -> None:
    model, settings = toy_ssdvae().train(), EvaluateOptions(bound_samples=2)
    before = evaluate(model, documents, settings)
    assert model.training
    other = replace(documents, frames=(documents.frames + 1) % FRAMES)
    after = evaluate(model, other, settings)
    for name in ("ppl", "ppl_with_separators", "ppl_bound"):
        assert after[name] == before[name]


def test_the_use_of_the_latent_variables(documents: Documents) -> None:
    """A posterior that never moves says nothing; one that is sure and spreads evenly says all there is."""
    collapsed, certain = (Tally.empty(0, 1, FRAMES) for _ in range(2))
    batch = collate(documents, np.arange(5))
    events = int(batch.mask.sum())
    collapsed.add_posterior(FramePosterior(torch.full((5, 3, FRAMES), 1 / FRAMES).log(), batch.mask), batch)
    values = torch.arange(15).view(5, 3) % FRAMES
    certain.add_posterior(
        FramePosterior(functional.one_hot(values, FRAMES).double().log(), batch.mask), batch
    )
    nothing, everything = (tally.scores(words_scored=False) for tally in (collapsed, certain))
    assert nothing["latent_kl"] == pytest.approx(0, abs=1e-6)
    assert nothing["latent_information"] == pytest.approx(0, abs=1e-6)
    assert nothing["latent_entropy"] == pytest.approx(math.log(FRAMES))
    assert nothing["latent_used"] == 1
    counts = np.bincount(values[batch.mask].numpy(), minlength=FRAMES) / events
    entropy = -(counts * np.log(counts)).sum()
    assert everything["latent_kl"] == pytest.approx(math.log(FRAMES))
    assert everything["latent_entropy"] == 0
    assert everything["latent_information"] == pytest.approx(entropy)
    assert everything["latent_perplexity"] == pytest.approx(math.exp(entropy))
    assert everything["latent_used"] == FRAMES
    hits = (values == batch.frames)[batch.mask & (batch.frames >= 0)]
    assert everything["frame_accuracy"] == pytest.approx(hits.double().mean().item())


def test_codebooks_are_counted_each_for_itself(documents: Documents) -> None:
    model = toy_model("haqae").float()
    scores = evaluate(model, documents, EvaluateOptions(bound_samples=3, eval_batch=2))
    assert isinstance(model, LatentModel)
    posterior = model.posterior(collate(documents, np.arange(5)))
    used = [len(set(posterior.value[:, i].tolist())) for i in range(3)]
    assert scores["latent_used"] == sum(used)
    assert scores["frame_accuracy"] is None
    # A deterministic choice costs ln K for each variable, whatever the number of samples.
    nats = math.log(scores["ppl_bound"] / scores["ppl"]) * scores["words"]
    assert nats == pytest.approx(len(LENGTHS) * 3 * math.log(4), rel=1e-4)
    assert len(set(scores["ppl_bound_by_samples"].values())) == 1


def test_a_classifier_is_measured_by_its_frames_alone(documents: Documents) -> None:
    scores = evaluate(toy_model("rnnlm-classifier").float(), documents, EvaluateOptions())
    assert scores["ppl"] is scores["ppl_bound"] is None
    assert scores["frame_ppl"] > 1


@pytest.mark.parametrize("bias", [0.0, 30.0, -30.0])
def test_the_parts_of_the_posterior_of_the_exact_model_are_measured_too(
    documents: Documents, bias: float
) -> None:
    """Each by itself, also where it is never right; other models have no such figures."""
    model, batch = toy_exact(), collate(documents, np.arange(5))
    known = batch.mask & (batch.frames >= 0)
    labelled = replace(documents, frames=np.where(documents.frames >= 0, 0, -1).astype(np.int32))
    with torch.no_grad():
        model.decoder.frame_bias[0] += bias  # the exact posterior always or never says frame 0
        posterior = model.posterior(batch)
    scores = evaluate(model, labelled, EvaluateOptions(eval_batch=2))
    assert posterior.parts is not None
    for name, part in posterior.parts.items():
        share = (part.argmax(-1) == 0)[known].double().mean().item()
        assert scores[f"frame_accuracy_{name}"] == pytest.approx(share)
        if name == "exact" and bias:
            assert share == (bias > 0)
    plain = evaluate(toy_ssdvae(), documents, EvaluateOptions())
    assert plain["frame_accuracy_reader"] is plain["frame_accuracy_exact"] is None


def test_certainty_is_measured_too() -> None:
    """Rounding may put the nats of a model that is certain a little below zero."""
    tally = Tally.empty(2, 1, FRAMES)
    tally.add(nats=-1e-6, words=20, separators=4, documents=1, bound_nats=torch.tensor([-1e-6, 0.0]))
    scores = tally.scores(words_scored=True)
    assert scores["ppl"] == pytest.approx(1)
    assert scores["ppl_bound"] == 1
    assert tally.scores(words_scored=False)["ppl"] is None


def test_events_with_ends_and_times() -> None:
    torch.manual_seed(1)
    model = toy_cases("rnnlm")
    documents = toy_documents([3, 1, 2, 3])
    events = int(documents.lengths.sum())
    last = np.zeros(len(documents.frames), bool)
    last[documents.starts + documents.lengths - 1] = True
    times = (1e9 + 1e4 * np.arange(len(last))).astype(np.float64)
    cases = replace(documents, ends=last, times=times)
    batch = collate(cases, np.arange(4))
    with torch.no_grad():
        terms = model.case_terms(batch, model.event_states(batch))
    scores = evaluate(model, cases, EvaluateOptions(eval_batch=2))
    nats = 4 * events * math.log(scores["ppl"]) - sum(float(term.sum()) for term in terms.values())
    assert list(terms) == ["end", "time"]
    assert scores["case_ppl"] == pytest.approx(math.exp(nats / events))
    assert evaluate(toy_model("rnnlm"), documents, EvaluateOptions())["case_ppl"] is None
