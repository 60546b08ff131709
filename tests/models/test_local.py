"""The local guide: each frame by the words around its event, in documents of any length."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from ssdvae.data.batches import Batch, collate
from ssdvae.models.encoder import Surroundings
from ssdvae.models.latent import categorical
from ssdvae.models.plan import PlanRequest
from tests.toys import FRAMES, noise, toy_batch, toy_documents, toy_ssdvae

GUIDES = ["attention", "aligned", "local"]


@pytest.mark.parametrize("guide", GUIDES)
def test_a_document_between_two_others_is_read_as_the_middle_of_one(guide: str) -> None:
    model = toy_ssdvae(guide=guide)
    lengths = [3, 1, 2]
    documents, rows = toy_documents(lengths), np.arange(3)
    batch = collate(documents, rows, around=2)
    assert batch.around is not None
    around = Surroundings(model.reader(batch.around.clamp_min(0)), batch.around[..., 0] >= 0)
    states = model.encoder.read(model.reader(batch.tokens), batch.mask, around)
    by_event = states.view(*batch.mask.shape, -1, states.shape[-1])
    for row, length in enumerate(lengths):
        before, after = (collate(documents, np.array([(row + d) % 3])).tokens[0] for d in (-1, 1))
        joined = torch.cat([before[-2:], batch.tokens[row, :length], after[:2]])[None]
        mask = torch.ones(joined.shape[:2], dtype=torch.bool)
        whole = model.encoder.read(model.reader(joined), mask)
        expected = whole.view(joined.shape[1], -1, whole.shape[-1])[len(before[-2:]) :][:length]
        torch.testing.assert_close(by_event[row, :length], expected)


def test_surroundings_are_read_in_training_and_not_else() -> None:
    model = toy_ssdvae(guide="local", surroundings=1.0)
    documents, rows = toy_documents([3, 2, 4]), np.arange(3)
    alone, between = collate(documents, rows), collate(documents, rows, around=model.surroundings)
    assert not torch.equal(model.train()(alone, noise(3)).per_document, model(between, noise(3)).per_document)
    model.eval()
    torch.testing.assert_close(
        model(alone, noise(3)).per_document, model(between, noise(3)).per_document, rtol=0, atol=0
    )


def test_the_frame_of_an_event_that_was_read_does_not_depend_on_those_before() -> None:
    model, batch = toy_ssdvae(guide="local"), toy_batch([5, 5], observe=0)
    first, second = (
        model.posterior(PlanRequest.whole(batch, categorical, noise(2, seed))) for seed in (1, 2)
    )
    assert not torch.equal(first.sample, second.sample)
    torch.testing.assert_close(first.logits, second.logits, rtol=0, atol=0)


def test_the_frame_of_an_event_that_was_not_read_follows_from_the_one_before() -> None:
    model, batch = toy_ssdvae(guide="local"), toy_batch([4], observe=0)
    seed, observed = batch.first(2), batch.observed

    def posterior(frame: int) -> torch.Tensor:
        def drawn(logits: torch.Tensor, _: object) -> torch.Tensor:
            return torch.nn.functional.one_hot(logits.argmax(-1) * 0 + frame, FRAMES).double()

        return model.posterior(PlanRequest.continuing(seed, observed, drawn, noise(1))).logits[0]

    one, other = posterior(0), posterior(1)
    torch.testing.assert_close(one[:2], other[:2])
    assert not torch.isclose(one[2:], other[2:]).all(-1).any()


def test_attention_stays_within_the_event() -> None:
    model, batch = toy_ssdvae(guide="local"), toy_batch([3, 2])
    beliefs = model.infer(batch)
    assert beliefs.attention is not None
    slots = batch.tokens.shape[2]
    shares = beliefs.attention.view(2, 3, 3, slots).sum(-1)
    torch.testing.assert_close(shares, torch.eye(3, dtype=torch.float64).expand(2, 3, 3))


def test_words_follow_the_frame_of_their_own_event_and_the_past() -> None:
    """The frame of a later event says nothing of the words of an earlier one."""
    model, batch = toy_ssdvae(guide="local", prior="history"), toy_batch([4])
    plan = model.plan(PlanRequest.whole(batch, categorical, noise(1)))
    other = dataclasses.replace(plan, vectors=plan.vectors.clone())
    other.vectors[:, 2] += 1.0
    before, after = model.log_probs(batch, plan), model.log_probs(batch, other)
    torch.testing.assert_close(before[:, :2], after[:, :2], rtol=0, atol=0)
    assert (before[:, 2:] != after[:, 2:]).all()


def test_all_frames_at_once_take_the_noise_of_one_after_another() -> None:
    logits = torch.randn(3, 4, FRAMES)
    together, turn = categorical(logits, noise(3)), noise(3)
    one_by_one = [categorical(logits[:, m], turn) for m in range(4)]
    torch.testing.assert_close(together, torch.stack(one_by_one, dim=1))


def test_around_a_document_are_its_neighbours_in_the_corpus() -> None:
    documents = toy_documents([3, 1, 2])
    first, second, third = (documents.tokens[part] for part in documents.parts())
    around = documents.around(np.array([1]), 2)
    np.testing.assert_array_equal(around[0], np.concatenate([first[-2:], third[:2]]))
    # The first stands after the last; of a short neighbour there is only what it has.
    around = documents.around(np.array([0, 2]), 2)
    np.testing.assert_array_equal(around[0, :2], third[-2:])
    np.testing.assert_array_equal(around[0, 2:], np.concatenate([second, np.full_like(second, -1)]))
    np.testing.assert_array_equal(around[1, :2], np.concatenate([np.full_like(second, -1), second]))
    assert isinstance(collate(documents, np.arange(3)), Batch)
