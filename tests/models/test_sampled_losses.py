"""The sampled output layer against the exact one."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ssdvae.models.base import Model
from ssdvae.models.losses import (
    Drawn,
    draw,
    inclusion_probabilities,
    linear_cross_entropy,
    sampled_cross_entropy,
)
from ssdvae.models.options import MODEL_OPTIONS
from tests.models.test_base import SPEAKING, batch_of, variant_id
from tests.toys import WORDS, noise, outputs, prepared, toy_model

COUNTS = [40, 12, 9, 3, 2, 1, 0]
LENGTHS = [3, 1, 2]
SAMPLED = [v for v in SPEAKING if "sampled_words" in MODEL_OPTIONS[v["name"]].names()]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30), st.integers(1, 40))
def test_chances_follow_the_counts_and_sum_to_what_is_expected(counts: list[int], expected: int) -> None:
    pi = inclusion_probabilities(counts, expected)
    assert ((pi > 0) & (pi <= 1)).all()
    assert pi.sum().item() == pytest.approx(min(expected, len(counts)))
    uncertain = pi < 1
    ratio = pi[uncertain] / torch.tensor(counts, dtype=torch.float64).clamp_min(1)[uncertain]
    torch.testing.assert_close(ratio, ratio[:1].expand(len(ratio)))


def test_words_are_drawn_by_their_chances() -> None:
    pi = inclusion_probabilities(COUNTS, 3)
    generator, draws = torch.Generator().manual_seed(1), 4000
    hits = torch.zeros(len(pi), dtype=torch.float64)
    for _ in range(draws):
        drawn = draw(pi, generator)
        torch.testing.assert_close(drawn.probability, pi[drawn.words])
        hits[drawn.words] += 1
    assert ((hits / draws - pi).abs() <= 5 * (pi * (1 - pi) / draws).sqrt()).all()


def layer() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(3)
    words = len(COUNTS)
    x, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((4, 3), (words, 3), (words,)))
    return x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_(), torch.tensor([0, 6, 2, 6])


def all_draws(pi: Tensor) -> Iterator[tuple[float, Drawn]]:
    """Every set of words that can be drawn, with its probability."""
    for bits in itertools.product([False, True], repeat=len(pi)):
        chosen = torch.tensor(bits)
        probability = pi.where(chosen, 1 - pi).prod().item()
        if probability:
            yield probability, Drawn(chosen.nonzero()[:, 0], pi[chosen])


@pytest.mark.parametrize("expected", [1, 3, 5])
def test_the_sum_over_words_is_right_in_the_mean(expected: int) -> None:
    """Over all draws: E[Ẑ] = Z, and E[log Ẑ] ≤ log Z."""
    x, weight, bias, target = layer()
    exact = linear_cross_entropy(x, weight, bias, target)
    share, nll = torch.zeros(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    for probability, drawn in all_draws(inclusion_probabilities(COUNTS, expected)):
        sampled = sampled_cross_entropy(x, weight, bias, target, drawn)
        share += probability * sampled.exp().detach()  # Ẑ / exp(o_w)
        nll += probability * sampled.detach()
    torch.testing.assert_close(share, exact.exp().detach())
    assert (nll <= exact).all()


def test_the_mean_gradient_comes_closer_with_more_words() -> None:
    x, weight, bias, target = layer()
    parameters = (x, weight, bias)

    def gradient(nll: Tensor) -> Tensor:
        return torch.cat([g.flatten() for g in torch.autograd.grad(nll.sum(), parameters)])

    exact = gradient(linear_cross_entropy(x, weight, bias, target))
    distances = []
    for expected in (1, 3, 5, 6, 7):
        mean = torch.zeros_like(exact)
        for probability, drawn in all_draws(inclusion_probabilities(COUNTS, expected)):
            mean += probability * gradient(sampled_cross_entropy(x, weight, bias, target, drawn))
        distances.append((mean - exact).norm().item())
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.1
    assert distances[-1] < 1e-9


@pytest.fixture(params=SAMPLED, ids=variant_id)
def pair(request: pytest.FixtureRequest) -> tuple[Model, Model]:
    """A model with the exact output layer, and the same with all words drawn."""
    return _pair(sampled_words=WORDS, **request.param)


def _pair(sampled_words: int, **variant: Any) -> tuple[Model, Model]:
    torch.manual_seed(5)
    exact, sampled = (prepared(toy_model(**variant, sampled_words=words)) for words in (0, sampled_words))
    sampled.load_state_dict(exact.state_dict())
    return exact.eval(), sampled.eval()


def losses_and_gradients(model: Model) -> list[Tensor]:
    torch.manual_seed(6)
    batch = batch_of(model, LENGTHS)
    loss = model(batch, noise(len(batch))).per_document
    gradients = torch.autograd.grad(loss.sum(), list(model.parameters()), allow_unused=True)
    return [loss, *(gradient for gradient in gradients if gradient is not None)]


def test_with_all_words_drawn_it_is_the_exact_loss(pair: tuple[Model, Model]) -> None:
    exact, sampled = (losses_and_gradients(model.train()) for model in pair)
    assert len(exact) == len(sampled)
    for plain, mine in zip(exact, sampled, strict=True):
        torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("variant", SAMPLED, ids=variant_id)
def test_training_is_sampled_and_evaluation_is_not(variant: dict[str, str]) -> None:
    exact, sampled = _pair(sampled_words=2, **variant)
    batch = batch_of(exact, LENGTHS)
    first, second = outputs(exact, batch), outputs(sampled, batch)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.allclose(
        exact.train()(batch, noise(3)).per_document, sampled.train()(batch, noise(3)).per_document
    )


@pytest.mark.parametrize("variant", SAMPLED, ids=variant_id)
def test_a_document_does_not_depend_on_how_the_batch_is_shared_out(variant: dict[str, str]) -> None:
    _, model = _pair(sampled_words=4, **variant)
    batch = batch_of(model, LENGTHS)
    together = model.train()(batch, noise(3)).per_document
    for row in range(3):
        part = slice(row, row + 1)
        alone = model(batch.part(part), dataclasses.replace(noise(3), rows=part)).per_document
        torch.testing.assert_close(alone, together[part])
