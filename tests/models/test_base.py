"""Laws of every model in the table."""

from __future__ import annotations

import dataclasses
import math
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch

import ssdvae
from ssdvae.data.batches import Batch
from ssdvae.io.errors import UserError
from ssdvae.models.base import LanguageModel, LatentModel, Model, as_language_model
from ssdvae.models.latents import LatentQuery, categorical, most_likely
from ssdvae.models.options import MODEL_OPTIONS
from ssdvae.models.registry import MODELS
from tests.toys import (
    FRAMES,
    WORDS,
    noise,
    outputs,
    prepared,
    toy_batch,
    toy_language_model,
    toy_model,
    toy_ssdvae,
)

LENGTHS = [4, 1, 3, 4]


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    for name in first:
        torch.testing.assert_close(first[name], second[name], msg=name)


VARIANTS: list[dict[str, Any]] = [
    *({"name": name} for name in MODELS),
    {"name": "ssdvae", "attention": "concatenation"},
    {"name": "ssdvae", "variant": "code"},
    {"name": "rnnlm", "tied": False},
    {"name": "rnnlm", "context_vector": 5},
    {"name": "rnnlm", "document_vector": 3},
    {"name": "ssdvae-exact", "tied": False},
    {"name": "ssdvae-exact", "context_vector": 3},
    {"name": "haqae", "structure": "chain"},
    # All models with fewer and more slots, and what belongs to a slot.
    *({"name": name, "slots": slots} for name in MODELS for slots in (1, 2, 7)),
    {"name": "ssdvae", "slots": 7, "variant": "code"},
    {"name": "rnnlm", "slots": 2, "context_vector": 5, "document_vector": 3},
    *({"name": "ssdvae-exact", "slots": slots, "context_vector": 3} for slots in (1, 2, 7)),
]
SPEAKING = [variant for variant in VARIANTS if issubclass(MODELS[variant["name"]], LanguageModel)]


def variant_id(variant: dict[str, Any]) -> str:
    return "-".join(map(str, variant.values()))


@pytest.fixture(params=VARIANTS, ids=variant_id)
def model(request: pytest.FixtureRequest) -> Model:
    return toy_model(**request.param)


@pytest.fixture(params=SPEAKING, ids=variant_id)
def speaking(request: pytest.FixtureRequest) -> LanguageModel:
    return toy_language_model(**request.param)


def batch_of(model: Model, lengths: list[int], **how: Any) -> Batch:
    """Documents of as many slots as the model has."""
    return toy_batch(lengths, slots=len(model.slots), **how)


def test_padding_takes_part_in_nothing(model: Model) -> None:
    """Neither its words, nor its frames, nor how much of it there is."""
    batch = batch_of(model, LENGTHS, events=4)
    other = dataclasses.replace(
        batch,
        tokens=batch.tokens.where(batch.mask[..., None], (batch.tokens + 1) % WORDS),
        frames=batch.frames.where(batch.mask, 1),
        observed=batch.observed.where(batch.mask, 1),
    )
    expected = outputs(model, batch)
    equal(expected, outputs(model, other))
    longer = outputs(model, _padded(batch))
    # A longer chain takes more noise, so later samples differ.
    for name in longer.keys() - {"bound"}:
        value, short = longer[name], expected[name]
        torch.testing.assert_close(value[:, : short.shape[1]] if value.dim() > 1 else value, short, msg=name)
    if "words" in longer:
        assert (longer["words"][:, 4:] == 0).all()


def _padded(batch: Batch) -> Batch:
    """One more event of padding."""
    size = len(batch)
    return Batch(
        torch.cat([batch.tokens, torch.full_like(batch.tokens[:, :1], 2)], 1),
        torch.cat([batch.frames, torch.full((size, 1), -1)], 1),
        torch.cat([batch.observed, torch.full((size, 1), -1)], 1),
        torch.cat([batch.mask, torch.zeros(size, 1, dtype=torch.bool)], 1),
    )


@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_padded_vectors_of_nan_change_nothing(variant: dict[str, Any]) -> None:
    """Padding is not even multiplied by zero.

    Tied word vectors are also what words are predicted by, so none are tied here.
    """
    can_be_tied = "tied" in MODEL_OPTIONS[variant["name"]].names()
    model = toy_model(**{**variant, **({"tied": False} if can_be_tied else {})})
    batch = batch_of(model, LENGTHS, events=4)
    tokens = batch.tokens.clamp(max=WORDS - 2)
    tokens = tokens.where(batch.mask[..., None], WORDS - 1)
    batch = dataclasses.replace(batch, tokens=tokens)
    expected = outputs(model, batch)
    model.word_reader.words.weight.data[WORDS - 1] = torch.nan
    equal(expected, outputs(model, batch))


def test_a_document_does_not_depend_on_its_neighbours(model: Model) -> None:
    batch = batch_of(model, LENGTHS)
    together = outputs(model, batch)
    for row in range(len(batch)):
        single = batch.part(slice(row, row + 1))
        slot = dataclasses.replace(noise(len(batch)), rows=slice(row, row + 1))
        alone = model(single, slot).per_document
        torch.testing.assert_close(alone, together["loss"][row : row + 1])


def test_the_gold_frame_of_a_latent_event_is_never_looked_at(model: Model) -> None:
    batch = batch_of(model, LENGTHS)
    equal(
        outputs(model, batch), outputs(model, dataclasses.replace(batch, frames=(batch.frames + 1) % FRAMES))
    )


def test_a_word_does_not_change_the_probability_of_those_before_it(speaking: LanguageModel) -> None:
    """Given the latent variables, which are themselves inferred from all words."""
    batch = batch_of(speaking, [4, 4])
    latents = speaking.latents(LatentQuery.whole(batch, categorical, noise(2)))
    before = speaking.log_probs(batch, latents).flatten(1)
    for place in range(batch.tokens[0].numel()):
        tokens = batch.tokens.flatten(1).clone()
        tokens[:, place] = (tokens[:, place] + 1) % WORDS
        changed = dataclasses.replace(batch, tokens=tokens.view(batch.tokens.shape))
        after = speaking.log_probs(changed, latents).flatten(1)
        torch.testing.assert_close(after[:, :place], before[:, :place])
        assert (after[:, place:] != before[:, place:]).all()


def test_words_one_by_one_have_the_probabilities_of_the_whole_document(speaking: LanguageModel) -> None:
    batch = batch_of(speaking, [3, 3])
    seed = _events(batch, slice(1))
    latents = speaking.latents(LatentQuery.continuing(seed, batch.observed, categorical, noise(2)))
    whole = speaking.log_probs(batch, latents)
    state = speaking.start(seed, latents)
    for event in (1, 2):
        latents, words = latents.after(1), None
        for slot in range(len(speaking.slots)):
            log_p, state = speaking.next_word(state, latents, words, slot)
            torch.testing.assert_close(log_p.logsumexp(-1), torch.zeros(2, dtype=torch.float64))
            words = batch.tokens[:, event, slot]
            torch.testing.assert_close(log_p[torch.arange(2), words], whole[:, event, slot])
        _, state = speaking.next_word(state, latents, words, len(speaking.slots))


def test_a_continuation_has_the_probability_of_its_words_after_the_seed(speaking: LanguageModel) -> None:
    """Each option as if it were alone, whatever the others are."""
    seed, others = batch_of(speaking, [1, 1, 1]), torch.randint(0, WORDS, (3, 4, 2, len(speaking.slots)))
    wanted, nothing = torch.ones(3, 3, dtype=torch.bool), torch.full((3, 3), -1)
    latents = speaking.latents(LatentQuery(seed, nothing, wanted, categorical, noise(3)))
    scores = speaking.continuations(seed, latents, others)
    for option in range(4):
        document = Batch(torch.cat([seed.tokens, others[:, option]], 1), nothing, nothing, wanted)
        alone = speaking.log_probs(document, latents)[:, 1:].sum((1, 2))
        torch.testing.assert_close(scores[:, option], alone)


def test_latents_after_a_seed_are_for_the_whole_script_and_look_at_words_alone(
    speaking: LanguageModel,
) -> None:
    """A frame for each event, or a code of each codebook, or nothing; gold frames change none of it."""
    batch = batch_of(speaking, [4, 3], observe=0)
    seed = _events(batch, slice(1))
    latents = speaking.latents(LatentQuery(seed, batch.observed, batch.mask, most_likely, noise(2)))
    codebooks = speaking.latent_shape[0] if isinstance(speaking, LatentModel) else 0
    assert latents.mask.sum(1).tolist() == ([4, 3] if codebooks == 1 else [codebooks, codebooks])
    assert latents.vectors.shape[:2] == latents.mask.shape
    other = dataclasses.replace(seed, frames=(seed.frames + 1) % FRAMES)
    again = speaking.latents(LatentQuery(other, batch.observed, batch.mask, most_likely, noise(2)))
    torch.testing.assert_close(again.vectors, latents.vectors)


def test_scripts_written_at_once_have_each_their_own_latents(speaking: LanguageModel) -> None:
    batch = batch_of(speaking, [3, 2, 3])
    latents = speaking.latents(LatentQuery(batch, batch.observed, batch.mask, most_likely, noise(3)))
    some = latents.select(torch.tensor([2, 2, 1]))
    for row, place in enumerate((2, 2, 1)):
        one = _events(batch, slice(None), slice(place, place + 1))
        alone = speaking.latents(LatentQuery(one, one.observed, one.mask, most_likely, noise(1)))
        size = int(alone.mask.sum())
        torch.testing.assert_close(some.vectors[row, :size], alone.vectors[0, :size])
        assert some.mask[row].tolist() == alone.mask[0].tolist() + [False] * (
            some.mask.shape[1] - alone.mask.shape[1]
        )


def _events(batch: Batch, events: slice, rows: slice = slice(None)) -> Batch:
    parts = (batch.tokens, batch.frames, batch.observed, batch.mask)
    return Batch(*(part[rows, events] for part in parts))


def test_every_parameter_has_a_gradient(model: Model) -> None:
    prepared(model)(batch_of(model, LENGTHS), noise(4)).per_document.sum().backward()
    # Of a slot that there is not, there is nothing to learn.
    learned = [(n, p.grad) for n, p in model.named_parameters() if p.numel()]
    assert not [n for n, grad in learned if grad is None or not grad.abs().sum() > 0]


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(speaking: LanguageModel) -> None:
    for parameter in speaking.parameters():
        torch.nn.init.zeros_(parameter)
    words = speaking.word_log_probs(batch_of(speaking, [3, 2]), noise(2))
    assert math.exp(-words.sum().item() / (len(speaking.slots) * 5)) == pytest.approx(WORDS)


def test_saving_and_loading_keeps_every_answer(model: Model, tmp_path: Path) -> None:
    batch = batch_of(model, LENGTHS)
    model.save_pretrained(tmp_path / "model")
    loaded = ssdvae.load(tmp_path / "model").double()
    assert type(loaded) is type(model)
    assert (loaded.vocabulary, loaded.frames) == (model.vocabulary, model.frames)
    assert loaded.slots == model.slots
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
    free = model.posterior(batch).log_q
    steered = model.posterior(dataclasses.replace(batch, observed=batch.frames)).log_q
    first = batch.frames[:, :1, None]
    assert (steered[:, :1].gather(-1, first) > free[:, :1].gather(-1, first)).all()


@pytest.mark.parametrize("slots", [1, 2, 4, 7])
@pytest.mark.parametrize("name", ["rnnlm", "rnnlm-role"])
def test_a_language_model_gives_all_documents_together_the_probability_one(name: str, slots: int) -> None:
    model, words = toy_language_model(name, slots=slots, tied=False), 3 if slots < 7 else 2
    with torch.no_grad():
        # All documents of one event over the first few words, when no other word has any probability.
        model.get_parameter("decoder.output.linear.bias")[words:] = -torch.inf
        every = Batch.of_words(torch.tensor(list(product(range(words), repeat=slots)))[:, None])
        total = model.bounds(every, 1, noise(len(every)))[0].logsumexp(0)
    torch.testing.assert_close(total, torch.zeros((), dtype=torch.float64))


def test_a_classifier_has_no_words() -> None:
    with pytest.raises(UserError, match="no probability"):
        as_language_model(toy_model("rnnlm-classifier"))


def test_dropout_is_for_training_only() -> None:
    model, batch = toy_model("rnnlm-classifier"), toy_batch([3, 2], observe=1)
    evaluated = [model(batch, noise(2, seed)).per_document for seed in (1, 2)]
    model.train()
    trained = [model(batch, noise(2, seed)).per_document for seed in (1, 2)]
    torch.testing.assert_close(*evaluated)
    assert (trained[0] != trained[1]).all()
    assert isinstance(model, LatentModel)
    inferred = model.posterior(batch).log_q
    model.eval()
    torch.testing.assert_close(inferred, model.posterior(batch).log_q)
