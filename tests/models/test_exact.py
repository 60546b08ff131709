"""The planner against enumeration: of all events, of all frames, of all words."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ssdvae.data.batches import Batch
from ssdvae.models.latent import categorical
from ssdvae.models.mixture import Support, candidates
from ssdvae.models.plan import PlanRequest
from ssdvae.models.planner import Planner
from tests.toys import FRAMES, WORDS, noise, toy_batch, toy_model

KINDS: dict[str, dict[str, Any]] = {
    "head": {},
    "event": {"mixture": "event"},
    "tied": {"mixture": "event", "tied": True, "past_vector": 3},
    "one slot": {"slots": 1},
    "one slot, event": {"slots": 1, "mixture": "event"},
    "two slots": {"slots": 2, "mixture": "event"},
}


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def toy_planner(**settings: Any) -> Planner:
    model = toy_model("planner", **settings)
    assert isinstance(model, Planner)
    assert (model.decoder.table >= 0).any()
    return model


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> Planner:
    return toy_planner(**KINDS[request.param])


def every_event(model: Planner) -> Tensor:
    return torch.tensor(list(product(range(WORDS), repeat=len(model.slots))))


def with_frames(batch: Batch, frames: Tensor | int) -> Batch:
    return dataclasses.replace(batch, observed=torch.as_tensor(frames).expand_as(batch.observed))


def test_all_events_together_have_the_probability_one(model: Planner) -> None:
    seed = toy_batch([2], observe=0, slots=len(model.slots))
    every = every_event(model)[None, :, None]
    plan = model.plan(PlanRequest.continuing(seed, torch.full((1, 3), -1), categorical, noise(1)))
    options = model.continuations(seed, plan, every)
    torch.testing.assert_close(options.logsumexp(1), torch.zeros(1, dtype=torch.float64))


def test_given_a_frame_too(model: Planner) -> None:
    seed = toy_batch([2], observe=0, slots=len(model.slots))
    every = every_event(model)[None, :, None]
    for frame in range(FRAMES):
        given = torch.tensor([[-1, -1, frame]])
        plan = model.plan(PlanRequest.continuing(seed, given, categorical, noise(1)))
        options = model.continuations(seed, plan, every)
        torch.testing.assert_close(options.logsumexp(1), torch.zeros(1, dtype=torch.float64))


def test_words_and_frames_sum_to_the_words_and_their_shares_are_the_posterior(model: Planner) -> None:
    batch = toy_batch([1] * 30, observe=0, slots=len(model.slots))
    with_each = torch.stack(
        [model.bounds(with_frames(batch, frame), 1, noise(30))[0] for frame in range(FRAMES)], dim=-1
    )
    alone = model.bounds(batch, 1, noise(30))[0]
    torch.testing.assert_close(with_each.logsumexp(-1), alone)
    torch.testing.assert_close(model.infer(batch).log_q[:, 0], with_each - alone[:, None])
    torch.testing.assert_close(model.word_log_probs(batch, noise(30)).sum((1, 2)), alone)


def test_the_next_frame_is_predicted_and_the_words_follow_from_it(model: Planner) -> None:
    """log p(words, frame) = log p(frame | before) + log p(words | frame)"""
    batch = toy_batch([1] * 30, observe=1, slots=len(model.slots))
    ahead = model.next_frame_log_probs(batch).gather(-1, batch.observed[..., None])[..., 0]
    words = model.word_log_probs(batch, noise(30)).sum(-1)
    torch.testing.assert_close((ahead + words).sum(1), model.bounds(batch, 1, noise(30))[0])


def test_the_mixture_is_that_of_its_formula(model: Planner) -> None:
    """Every softmax written out, with a matrix of all frames and words and a vector for every frame."""
    batch, decoder = toy_batch([3] * 10, observe=0, slots=len(model.slots)), model.decoder
    output = decoder(model.reader(batch.tokens), model._no_plan(batch))
    log_a = dense(decoder.support).log()
    scores = decoder.w_out(output.joined[:, :, 0])
    log_f = decoder.foresee(output.states[:, :, 0]) @ decoder.frame_vectors[:FRAMES].T + decoder.frame_bias
    log_f = log_f.log_softmax(-1)
    by_frame = (scores[..., None, :] + log_a).log_softmax(-1)  # B M F V
    head = batch.tokens[..., 0]
    heads = log_f + by_frame.gather(-1, head[..., None, None].expand(*head.shape, FRAMES, 1))[..., 0]
    arguments = torch.zeros_like(heads)
    for frame in range(FRAMES):
        vectors = decoder.frame_vectors[_frame_row(model, head, frame)]
        if model.config.mixture == "head":
            vectors = heads.softmax(-1) @ decoder.frame_vectors[:FRAMES]
        told = decoder.narrowed(
            decoder.guide(vectors).unflatten(-1, (len(model.slots) - 1, model.config.hidden))
        )
        log_p = decoder.w_out(output.joined[:, :, 1:] + told).log_softmax(-1)
        arguments[..., frame] = log_p.gather(-1, batch.tokens[..., 1:, None])[..., 0].sum(-1)
    joint = heads + arguments
    torch.testing.assert_close(model.event_log_probs(batch), joint.logsumexp(-1))
    torch.testing.assert_close(model.infer(batch).log_q, joint.log_softmax(-1))


def _frame_row(model: Planner, heads: Tensor, frame: int) -> Tensor:
    """Whose vector the arguments of a head have, if the frame is this one."""
    rows = []
    for head in heads.flatten().tolist():
        own = [f for f in model.decoder.table[head].tolist() if f >= 0]
        rows.append(frame if frame in own else own[0] if own else FRAMES)
    return torch.tensor(rows).view(heads.shape)


def dense(support: Support) -> Tensor:
    """a_fv, pair by pair."""
    matrix = support.others[:, None].repeat(1, len(support.table))
    for word, frames in enumerate(support.table.tolist()):
        for place, frame in enumerate(frames):
            if frame >= 0:
                matrix[frame, word] = support.weights[word, place]
    matrix[:, support.unknown] = support.unknown_weights
    return matrix


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_sums_over_words_and_frames_are_those_of_the_matrix(scale: float, dtype: torch.dtype) -> None:
    """Even where all heads of a frame are e³⁰⁰ times less likely than another word."""
    support = toy_planner().decoder.support
    scores = torch.randn(20, WORDS, dtype=torch.float64) * scale
    expected = (scores.log_softmax(-1)[:, None] + dense(support).log()).logsumexp(-1)
    low = Support(*(getattr(support, f.name) for f in dataclasses.fields(support)))
    if dtype == torch.float32:
        low = dataclasses.replace(
            support,
            weights=support.weights.float(),
            others=support.others.float(),
            unknown_weights=support.unknown_weights.float(),
        )
    p0 = scores.to(dtype).log_softmax(-1).exp()
    reach = low.reach(p0[:, low.words]).log()
    assert torch.isfinite(reach).all()
    torch.testing.assert_close(reach.double(), expected, rtol=1e-4, atol=1e-5)
    weights = torch.rand(20, FRAMES, dtype=torch.float64)
    torch.testing.assert_close(support.over_words(weights), weights @ dense(support))
    heads = torch.arange(WORDS)
    torch.testing.assert_close(support.of(heads), dense(support).T)


def test_frames_are_kept_in_mind_from_word_to_word(model: Planner) -> None:
    """Whatever the head: each argument changes what is believed of the frame, if the mixture is over it."""
    batch = toy_batch([2] * 40, observe=0, slots=len(model.slots))
    seed = batch.first(1)
    plan = model.plan(PlanRequest.continuing(seed, batch.observed, categorical, noise(40)))
    whole, state = model.word_log_probs(batch, noise(40)), model.begin(seed, plan)
    words, plan = None, plan.after(1)
    for slot in range(len(model.slots)):
        log_p, state = model.next_word(state, plan, words, slot)
        words = batch.tokens[:, 1, slot]
        torch.testing.assert_close(log_p[torch.arange(40), words], whole[:, 1, slot])


def test_nothing_that_comes_later_changes_an_earlier_probability(model: Planner) -> None:
    """Neither words nor observed frames: of words, of the next frame, and of frames inferred."""
    batch = toy_batch([4, 4, 4], observe=0.5, slots=len(model.slots))
    words = model.word_log_probs(batch, noise(3))
    ahead, inferred = model.next_frame_log_probs(batch), model.infer(batch).log_q
    for event in range(1, 4):
        tokens, observed = batch.tokens.clone(), batch.observed.clone()
        tokens[:, event:] = (tokens[:, event:] + 1) % WORDS
        observed[:, event:] = (observed[:, event:] + 2) % (FRAMES + 1) - 1
        other = dataclasses.replace(batch, tokens=tokens, observed=observed)
        torch.testing.assert_close(model.word_log_probs(other, noise(3))[:, :event], words[:, :event])
        torch.testing.assert_close(model.next_frame_log_probs(other)[:, : event + 1], ahead[:, : event + 1])
        torch.testing.assert_close(model.infer(other).log_q[:, :event], inferred[:, :event])
        assert (model.next_frame_log_probs(other)[:, event + 1 :] != ahead[:, event + 1 :]).all()


def test_an_observed_frame_is_certain_and_leaves_the_frames_of_others_alone(model: Planner) -> None:
    batch = toy_batch([3] * 5, observe=0, slots=len(model.slots))
    free = model.infer(batch).log_q
    told = model.infer(dataclasses.replace(batch, observed=batch.frames.where(torch.arange(3) == 1, -1)))
    assert (told.value[:, 1] == batch.frames[:, 1]).all()
    assert (told.log_q[:, 1].exp().sum(-1) == 1).all()
    torch.testing.assert_close(told.log_q[:, ::2], free[:, ::2])


def test_the_arguments_speak_of_the_frame_if_the_mixture_is_over_them() -> None:
    for mixture in ("head", "event"):
        model, batch = toy_planner(mixture=mixture), toy_batch([1] * 60, observe=0)
        tokens = batch.tokens.clone()
        tokens[..., 1:] = (tokens[..., 1:] + 1) % WORDS
        other = dataclasses.replace(batch, tokens=tokens)
        change = model.infer(batch).log_q - model.infer(other).log_q
        moved = (change.abs() > 1e-9).any(-1)[:, 0]
        several = (model.decoder.table[batch.tokens[:, 0, 0]] >= 0).sum(-1) > 1
        assert bool(several.any())
        assert moved.tolist() == (several.tolist() if mixture == "event" else [False] * 60)


def test_the_loss_is_that_of_words_and_observed_frames_and_labels_can_weigh_more(model: Planner) -> None:
    batch = toy_batch([3, 2, 4], slots=len(model.slots))
    loss = model(batch, noise(3))
    torch.testing.assert_close(-loss.per_document, model.bounds(batch, 1, noise(3))[0])
    model.config = dataclasses.replace(model.config, label_weight=3.0)
    heavier = loss.per_document + 2 * loss.terms["frame_nll"]
    torch.testing.assert_close(model(batch, noise(3)).per_document, heavier)


pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40)


@given(pairs, st.integers(1, 4))
def test_candidates_are_the_most_frequent_frames_of_each_head(seen: list[tuple[int, int]], most: int) -> None:
    heads, frames = torch.tensor(seen).T
    table, counts = candidates(heads, frames, 5, most)
    for head in range(5):
        expected = Counter(frame for h, frame in seen if h == head)
        found = [(f, c) for f, c in zip(table[head].tolist(), counts[head].tolist(), strict=True) if f >= 0]
        assert table[head, len(found) :].eq(-1).all()
        assert all(expected[frame] == count for frame, count in found)
        assert [c for _, c in found] == sorted(expected.values(), reverse=True)[:most]
        assert len({frame for frame, _ in found}) == len(found)


def test_a_lexicon_adds_candidates_after_those_that_were_seen() -> None:
    heads, frames = torch.tensor([0, 0, 0, 2]), torch.tensor([1, 1, 2, 0])
    lexicon = torch.tensor([[0, 3], [0, 1], [1, 2], [1, 2]])
    table, together = candidates(heads, frames, 3, 3, lexicon)
    assert table.tolist() == [[1, 2, 3], [2, -1, -1], [0, -1, -1]]
    assert together.tolist() == [[2, 1, 0.5], [0.5, 0, 0], [1, 0, 0]]
    assert candidates(heads, frames, 3, 2, lexicon)[0].tolist() == [[1, 2], [2, -1], [0, -1]]


def test_a_lexicon_is_enough_to_start_from() -> None:
    model, nothing = toy_planner(), torch.full((2, 3), -1)
    model.initialize_from_data(
        torch.zeros(2, 3, dtype=torch.long), nothing, [], torch.tensor([[4, 1], [5, 2]])
    )
    assert model.decoder.table[4].tolist() == [1, -1]
    assert torch.isfinite(model.bounds(toy_batch([3, 2]), 1, noise(2))).all()


def test_it_starts_from_what_was_observed() -> None:
    """With p_0 the frequency of heads, a frame gives its heads their share of its events."""
    model = toy_planner(candidates=FRAMES)
    generator = torch.Generator().manual_seed(0)
    heads = torch.randint(2, WORDS, (200, 3), generator=generator)
    frames = (heads % FRAMES).where(torch.rand(200, 3, generator=generator) < 0.8, 0)
    observed = frames.where(torch.rand(200, 3, generator=generator) < 0.9, -1)
    before = model.decoder.frame_vectors.clone()
    model.initialize_from_data(heads, observed, [])
    seen = observed >= 0
    together = torch.zeros(FRAMES, WORDS).double()
    together.index_put_((observed[seen], heads[seen]), torch.tensor(1.0).double(), accumulate=True)
    frequency = together.sum(0) / together.sum()
    weighed = dense(model.decoder.support) * frequency
    share = together / (together.sum(1, keepdim=True) + 1)
    torch.testing.assert_close(weighed[together > 0], share[together > 0], rtol=1e-5, atol=1e-6)
    means = (together @ model.reader.words.weight) / together.sum(1, keepdim=True)
    torch.testing.assert_close(model.decoder.frame_vectors[:-1], means)
    torch.testing.assert_close(model.decoder.frame_vectors[-1], before[-1])
    # What is masked is not looked at, and where nothing is observed nothing changes.
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.initialize_from_data(heads, torch.full_like(observed, -1), [])
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
