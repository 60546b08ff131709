"""What every model in the table must obey."""

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
from ssdvae.errors import UserError
from ssdvae.models import MODELS
from ssdvae.models.base import Model
from ssdvae.models.latent import categorical, most_likely
from ssdvae.models.plan import PlanRequest
from tests.toys import FRAMES, WORDS, noise, outputs, toy_batch, toy_model, toy_ssdvae

LENGTHS = [4, 1, 3, 4]


def equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    for name in first:
        torch.testing.assert_close(first[name], second[name], msg=name)


VARIANTS: list[dict[str, Any]] = [
    *({"name": name} for name in MODELS),
    {"name": "ssdvae", "attention": "concatenation"},
    {"name": "ssdvae", "prior": "markov", "objective": "bound", "estimator": "reinmax"},
    {"name": "ssdvae", "prior": "framenet", "guide": "aligned", "estimator": "straight-through"},
    {"name": "ssdvae", "prior": "history", "objective": "bound", "guide": "aligned", "roles": True},
    {"name": "ssdvae", "prior": "history", "objective": "bound", "guide": "local", "preference": True},
    {"name": "ssdvae", "guide": "local", "attention": "concatenation", "preference": True},
    {"name": "ssdvae", "tied": True, "roles": True},
    {"name": "rnnlm", "tied": True},
    {"name": "rnnlm", "past_vector": 5, "state_dropout": 0.2},
    {"name": "ssdvae", "document_vector": 3, "injection": "replace"},
    {"name": "rnnlm", "document_vector": 3},
    {"name": "planner", "tied": True, "past_vector": 3},
    {"name": "planner", "mixture": "event"},
    {"name": "haqae", "structure": "chain"},
    # All models with fewer and more slots, and what belongs to a slot.
    *({"name": name, "slots": slots} for name in MODELS for slots in (1, 2, 7)),
    {
        "name": "ssdvae",
        "slots": 1,
        "prior": "history",
        "objective": "bound",
        "guide": "aligned",
        "roles": True,
    },
    {"name": "ssdvae", "slots": 7, "guide": "aligned", "document_vector": 3},
    {"name": "rnnlm", "slots": 2, "past_vector": 5, "document_vector": 3},
    *({"name": "planner", "slots": s, "mixture": "event", "tied": True, "past_vector": 3} for s in (1, 2, 7)),
]
SPEAKING = [variant for variant in VARIANTS if toy_model(**variant).decoder is not None]


def variant_id(variant: dict[str, Any]) -> str:
    return "-".join(map(str, variant.values()))


@pytest.fixture(params=VARIANTS, ids=variant_id)
def model(request: pytest.FixtureRequest) -> Model:
    return toy_model(**request.param)


@pytest.fixture(params=SPEAKING, ids=variant_id)
def speaking(request: pytest.FixtureRequest) -> Model:
    return toy_model(**request.param)


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


def test_padded_vectors_of_nan_change_nothing(model: Model) -> None:
    """What stands in the padding is not even multiplied by zero."""
    batch = batch_of(model, LENGTHS, events=4)
    tokens = batch.tokens.clamp(max=WORDS - 2)
    tokens = tokens.where(batch.mask[..., None], WORDS - 1)
    batch = dataclasses.replace(batch, tokens=tokens)
    expected = outputs(model, batch)
    if getattr(model.config, "tied", False):
        pytest.skip("its word vectors are also what words are predicted by")
    model.word_embedding().weight.data[WORDS - 1] = torch.nan
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


def test_a_word_does_not_change_the_probability_of_those_before_it(speaking: Model) -> None:
    """Given the plan: latent variables themselves are inferred from all words."""
    batch = batch_of(speaking, [4, 4])
    plan = speaking.plan(PlanRequest.whole(batch, categorical, noise(2)))
    before = speaking.log_probs(batch, plan).flatten(1)
    for place in range(batch.tokens[0].numel()):
        tokens = batch.tokens.flatten(1).clone()
        tokens[:, place] = (tokens[:, place] + 1) % WORDS
        changed = dataclasses.replace(batch, tokens=tokens.view(batch.tokens.shape))
        after = speaking.log_probs(changed, plan).flatten(1)
        torch.testing.assert_close(after[:, :place], before[:, :place])
        assert (after[:, place:] != before[:, place:]).all()


def test_words_one_by_one_have_the_probabilities_of_the_whole_document(speaking: Model) -> None:
    batch = batch_of(speaking, [3, 3])
    seed = _events(batch, slice(1))
    plan = speaking.plan(PlanRequest.continuing(seed, batch.observed, categorical, noise(2)))
    whole = speaking.log_probs(batch, plan)
    state = speaking.begin(seed, plan)
    for event in (1, 2):
        plan, words = plan.after(1), None
        for slot in range(len(speaking.slots)):
            log_p, state = speaking.next_word(state, plan, words, slot)
            torch.testing.assert_close(log_p.logsumexp(-1), torch.zeros(2, dtype=torch.float64))
            words = batch.tokens[:, event, slot]
            torch.testing.assert_close(log_p[torch.arange(2), words], whole[:, event, slot])
        _, state = speaking.next_word(state, plan, words, len(speaking.slots))


def test_a_continuation_has_the_probability_of_its_words_after_the_seed(speaking: Model) -> None:
    """Each option as if it were alone, whatever the others are."""
    seed, others = batch_of(speaking, [1, 1, 1]), torch.randint(0, WORDS, (3, 4, 2, len(speaking.slots)))
    wanted, nothing = torch.ones(3, 3, dtype=torch.bool), torch.full((3, 3), -1)
    plan = speaking.plan(PlanRequest(seed, nothing, wanted, categorical, noise(3)))
    scores = speaking.continuations(seed, plan, others)
    for option in range(4):
        document = Batch(torch.cat([seed.tokens, others[:, option]], 1), nothing, nothing, wanted)
        alone = speaking.log_probs(document, plan)[:, 1:].sum((1, 2))
        torch.testing.assert_close(scores[:, option], alone)


def test_a_plan_from_the_seed_is_for_the_whole_script_and_looks_at_words_alone(speaking: Model) -> None:
    """A frame for each event, or a code of each codebook, or nothing; gold frames change none of it."""
    batch = batch_of(speaking, [4, 3], observe=0)
    seed = _events(batch, slice(1))
    plan = speaking.plan(PlanRequest(seed, batch.observed, batch.mask, most_likely, noise(2)))
    codebooks, _ = speaking.latent_shape
    assert plan.mask.sum(1).tolist() == ([4, 3] if codebooks == 1 else [codebooks, codebooks])
    assert plan.vectors.shape[:2] == plan.mask.shape
    other = dataclasses.replace(seed, frames=(seed.frames + 1) % FRAMES)
    again = speaking.plan(PlanRequest(other, batch.observed, batch.mask, most_likely, noise(2)))
    torch.testing.assert_close(again.vectors, plan.vectors)


def test_scripts_written_at_once_have_each_their_own_plan(speaking: Model) -> None:
    batch = batch_of(speaking, [3, 2, 3])
    plan = speaking.plan(PlanRequest(batch, batch.observed, batch.mask, most_likely, noise(3)))
    some = plan.rows(torch.tensor([2, 2, 1]))
    for row, place in enumerate((2, 2, 1)):
        one = _events(batch, slice(None), slice(place, place + 1))
        alone = speaking.plan(PlanRequest(one, one.observed, one.mask, most_likely, noise(1)))
        size = int(alone.mask.sum())
        torch.testing.assert_close(some.vectors[row, :size], alone.vectors[0, :size])
        assert some.mask[row].tolist() == alone.mask[0].tolist() + [False] * (
            some.mask.shape[1] - alone.mask.shape[1]
        )


def _events(batch: Batch, events: slice, rows: slice = slice(None)) -> Batch:
    parts = (batch.tokens, batch.frames, batch.observed, batch.mask)
    return Batch(*(part[rows, events] for part in parts))


def test_every_parameter_has_a_gradient(model: Model) -> None:
    model.train()
    model(batch_of(model, LENGTHS), noise(4)).per_document.sum().backward()
    # Of a slot that there is not, there is nothing to learn.
    learned = [(n, p.grad) for n, p in model.named_parameters() if p.numel()]
    assert not [n for n, grad in learned if grad is None or not grad.abs().sum() > 0]


def test_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(speaking: Model) -> None:
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
    free = model.posterior(PlanRequest.whole(batch, most_likely, noise(20))).logits.log_softmax(-1)
    told = dataclasses.replace(batch, observed=batch.frames)
    steered = model.posterior(PlanRequest.whole(told, most_likely, noise(20))).logits.log_softmax(-1)
    first = batch.frames[:, :1, None]
    assert (steered[:, :1].gather(-1, first) > free[:, :1].gather(-1, first)).all()


@pytest.mark.parametrize("slots", [1, 2, 4, 7])
@pytest.mark.parametrize("name", ["rnnlm", "rnnlm-role"])
def test_a_language_model_gives_all_documents_together_the_probability_one(name: str, slots: int) -> None:
    model, words = toy_model(name, slots=slots), 3 if slots < 7 else 2
    with torch.no_grad():
        # All documents of one event over the first few words, when no other word has any probability.
        model.get_parameter("decoder.w_out.bias")[words:] = -torch.inf
        every = Batch.of_words(torch.tensor(list(product(range(words), repeat=slots)))[:, None])
        total = model.bounds(every, 1, noise(len(every)))[0].logsumexp(0)
    torch.testing.assert_close(total, torch.zeros((), dtype=torch.float64))


def test_a_classifier_has_no_words() -> None:
    model = toy_model("rnnlm-classifier")
    with pytest.raises(UserError, match="no probability"):
        model.word_log_probs(toy_batch([2]), noise(1))


def test_dropout_is_for_training_only() -> None:
    model, batch = toy_model("rnnlm-classifier"), toy_batch([3, 2], observe=1)
    evaluated = [model(batch, noise(2, seed)).per_document for seed in (1, 2)]
    model.train()
    trained = [model(batch, noise(2, seed)).per_document for seed in (1, 2)]
    torch.testing.assert_close(*evaluated)
    assert (trained[0] != trained[1]).all()
    beliefs = model.infer(batch)
    assert beliefs is not None
    torch.testing.assert_close(beliefs.log_q, model.eval().infer(batch).log_q)  # type: ignore[union-attr]


def test_foresight_reads_the_first_events_only_and_foretells_the_frames_of_all() -> None:
    """In training alone: the encoder never sees the last event, whose words then change no frame."""
    model, batch = toy_ssdvae(foresight=1.0), toy_batch([4, 4, 4], observe=1)
    tokens = batch.tokens.clone()
    tokens[:, -1] = (tokens[:, -1] + 1) % WORDS
    other = dataclasses.replace(batch, tokens=tokens)
    model.train()
    for seed in range(8):
        first, second = (model(b, noise(3, seed)).terms for b in (batch, other))
        torch.testing.assert_close(first["frame_nll"], second["frame_nll"])
        assert (first["reconstruction"] != second["reconstruction"]).all()
    seen = {model._events_read(batch, noise(3, seed)) for seed in range(50)}
    assert seen == {1, 2, 3}
    model.eval()
    first, second = (model(b, noise(3)).terms for b in (batch, other))
    assert (first["frame_nll"] != second["frame_nll"]).all()
