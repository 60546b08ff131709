"""What every model in the table must obey."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest
import torch

import ssdvae
from ssdvae.data.batches import Batch
from ssdvae.models import MODELS
from ssdvae.models.base import EventModel
from ssdvae.models.latent import mode
from tests.toys import FRAMES, WORDS, noise, outputs, toy_batch, toy_model, toy_ssdvae

LENGTHS = [4, 1, 3, 4]


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    for name in first:
        torch.testing.assert_close(first[name], second[name], msg=name)


@pytest.fixture(params=[*((name, "addition") for name in MODELS), ("ssdvae", "concatenation")], ids="-".join)
def model(request: pytest.FixtureRequest) -> EventModel:
    name, attention = request.param
    return toy_model(name, attention=attention)


def test_padding_takes_part_in_nothing(model: EventModel) -> None:
    """Neither its words, nor its frames, nor how much of it there is."""
    batch = toy_batch(LENGTHS, events=4)
    other = dataclasses.replace(
        batch,
        tokens=batch.tokens.where(batch.mask[..., None], (batch.tokens + 1) % WORDS),
        frames=batch.frames.where(batch.mask, 1),
        observed=batch.observed.where(batch.mask, 1),
    )
    expected = outputs(model, batch)
    equal(expected, outputs(model, other))
    longer = outputs(model, _padded(batch))
    del longer["bound"], expected["bound"]  # a longer chain takes more noise, so later samples differ
    for name, value in longer.items():
        torch.testing.assert_close(value[:, :4] if value.dim() > 1 else value, expected[name], msg=name)
    assert (longer["words"][:, 4:] == 0).all()


def _padded(batch: Batch) -> Batch:
    """One more event of padding."""
    size = len(batch)
    return Batch(
        torch.cat([batch.tokens, torch.full((size, 1, 4), 2)], 1),
        torch.cat([batch.frames, torch.full((size, 1), -1)], 1),
        torch.cat([batch.observed, torch.full((size, 1), -1)], 1),
        torch.cat([batch.mask, torch.zeros(size, 1, dtype=torch.bool)], 1),
    )


def test_padded_vectors_of_nan_change_nothing(model: EventModel) -> None:
    """What stands in the padding is not even multiplied by zero."""
    batch = toy_batch(LENGTHS, events=4)
    tokens = batch.tokens.clamp(max=WORDS - 2)
    tokens = tokens.where(batch.mask[..., None], WORDS - 1)
    batch = dataclasses.replace(batch, tokens=tokens)
    expected = outputs(model, batch)
    model.word_embedding().weight.data[WORDS - 1] = torch.nan
    equal(expected, outputs(model, batch))


def test_a_document_does_not_depend_on_its_neighbours(model: EventModel) -> None:
    batch = toy_batch(LENGTHS)
    together = outputs(model, batch)
    for row in range(len(batch)):
        single = batch.part(slice(row, row + 1))
        slot = dataclasses.replace(noise(len(batch)), rows=slice(row, row + 1))
        alone = model(single, slot).per_document
        torch.testing.assert_close(alone, together["loss"][row : row + 1])


def test_the_gold_frame_of_a_latent_event_is_never_looked_at(model: EventModel) -> None:
    batch = toy_batch(LENGTHS)
    equal(
        outputs(model, batch), outputs(model, dataclasses.replace(batch, frames=(batch.frames + 1) % FRAMES))
    )


def test_a_word_does_not_change_the_probability_of_those_before_it() -> None:
    """Given the frames: the frames themselves are inferred from all words."""
    model = toy_ssdvae()
    batch = toy_batch([4, 4])
    frames = torch.randn(2, 4, FRAMES, dtype=torch.float64).softmax(-1)
    inputs = model.reader(batch.tokens)
    before = model._log_probs(inputs, batch, frames).flatten(1)
    for place in range(16):
        event, slot = divmod(place, 4)
        tokens = batch.tokens.clone()
        tokens[:, event, slot] = (tokens[:, event, slot] + 1) % WORDS
        changed = dataclasses.replace(batch, tokens=tokens)
        after = model._log_probs(model.reader(tokens), changed, frames).flatten(1)
        torch.testing.assert_close(after[:, :place], before[:, :place])
        assert (after[:, place:] != before[:, place:]).all()


def test_every_parameter_has_a_gradient(model: EventModel) -> None:
    model.train()
    model(toy_batch(LENGTHS), noise(4)).per_document.sum().backward()
    without = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert not without


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(model: EventModel) -> None:
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    words = model.word_log_probs(toy_batch([3, 2]), noise(2))
    assert math.exp(-words.sum().item() / (4 * 5)) == pytest.approx(WORDS)


def test_saving_and_loading_keeps_every_answer(model: EventModel, tmp_path: Path) -> None:
    batch = toy_batch(LENGTHS)
    model.save_pretrained(tmp_path / "model")
    loaded = ssdvae.load(tmp_path / "model").double()
    assert type(loaded) is type(model)
    assert (loaded.vocabulary, loaded.frames) == (model.vocabulary, model.frames)
    equal(outputs(model.float().double(), batch), outputs(loaded, batch))
    assert "# " in (tmp_path / "model" / "README.md").read_text()


def test_more_samples_are_the_mean_of_single_ones() -> None:
    """With S chains the loss is the mean of S losses, each with its own noise."""
    single, several = toy_ssdvae(), toy_ssdvae(samples=3)
    several.load_state_dict(single.state_dict())
    batch = toy_batch(LENGTHS)
    stream = noise(4)
    mean = torch.stack([single(batch, stream).per_document for _ in range(3)]).mean(0)
    torch.testing.assert_close(several(batch, noise(4)).per_document, mean)


@pytest.mark.parametrize("events", [1, 2, 7])
def test_any_number_of_events_and_frames(events: int) -> None:
    model = toy_ssdvae(frames=events + 1)
    answers = outputs(model, toy_batch([events, 1], frames=events + 1))
    assert all(torch.isfinite(value).all() for value in answers.values())


def test_an_observed_frame_becomes_likelier() -> None:
    model = toy_ssdvae()
    batch = toy_batch([3] * 20, observe=0)
    free = model.posterior(batch, mode, noise(20)).logits.log_softmax(-1)
    told = dataclasses.replace(batch, observed=batch.frames)
    steered = model.posterior(told, mode, noise(20)).logits.log_softmax(-1)
    first = batch.frames[:, :1, None]
    assert (steered[:, :1].gather(-1, first) > free[:, :1].gather(-1, first)).all()


@pytest.mark.parametrize("name", ["rnnlm", "rnnlm-role"])
def test_a_language_model_gives_all_documents_together_the_probability_one(name: str) -> None:
    model = toy_model(name)
    with torch.no_grad():
        # All documents of one event over the first three words, when no other word has any probability.
        model.get_parameter("w_out.bias")[3:] = -torch.inf
        tokens = torch.cartesian_prod(*[torch.arange(3)] * 4)[:, None]
        nothing = torch.full((81, 1), -1)
        every = Batch(tokens, nothing, nothing, torch.ones(81, 1, dtype=torch.bool))
        total = model.bound(every, 1, noise(81)).logsumexp(0)
    torch.testing.assert_close(total, torch.zeros((), dtype=torch.float64))


@pytest.mark.parametrize("name", ["rnnlm", "rnnlm-role"])
def test_a_language_model_does_not_look_ahead(name: str) -> None:
    model, batch = toy_model(name), toy_batch([4, 4])
    before = model.word_log_probs(batch, noise(2)).flatten(1)
    for place in range(16):
        tokens = batch.tokens.flatten(1).clone()
        tokens[:, place] = (tokens[:, place] + 1) % WORDS
        changed = dataclasses.replace(batch, tokens=tokens.view(2, 4, 4))
        after = model.word_log_probs(changed, noise(2)).flatten(1)
        torch.testing.assert_close(after[:, :place], before[:, :place])
        assert (after[:, place:] != before[:, place:]).all()
