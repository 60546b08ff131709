"""Gradients through a discrete draw, against the exact gradient by enumeration."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ssdvae.models.latent import ESTIMATORS, gumbel_softmax, reinmax, straight_through
from tests.toys import noise

Function = Callable[[Tensor], Tensor]
VALUES, DRAWS = 4, 40_000
LOGITS = torch.tensor([0.5, -0.7, 0.2, 1.1], dtype=torch.float64)


def linear(point: Tensor) -> Tensor:
    return point @ torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)


def quadratic(point: Tensor) -> Tensor:
    """Strongly curved, so that first-order estimators are visibly wrong."""
    matrix = torch.tensor(
        [[4.0, -1.0, 0.0, 1.0], [-1.0, -3.0, 2.0, 0.5], [0.0, 2.0, 5.0, -2.0], [1.0, 0.5, -2.0, -4.0]],
        dtype=torch.float64,
    )
    return linear(point) + ((point @ matrix) * point).sum(-1)


def exact_gradient(function: Function) -> Tensor:
    logits = LOGITS.clone().requires_grad_()
    values = function(torch.eye(VALUES, dtype=torch.float64))
    gradient: Tensor = torch.autograd.grad((logits.softmax(-1) * values).sum(), logits)[0]
    return gradient


def estimates(name: str, function: Function, temperature: float = 1.0) -> Tensor:
    """One gradient for each draw."""
    logits = LOGITS.expand(DRAWS, -1).clone().requires_grad_()
    sample = ESTIMATORS[name](temperature)(logits, noise(DRAWS))
    gradients: Tensor = torch.autograd.grad(function(sample).sum(), logits)[0]
    return gradients


def off(gradients: Tensor, exact: Tensor) -> Tensor:
    """How many standard errors the mean is from the exact gradient."""
    error: Tensor = gradients.std(0) / DRAWS**0.5
    return (gradients.mean(0) - exact).abs() / (error + 1e-12)


def test_reinmax_is_exact_in_the_mean_for_quadratic_functions() -> None:
    """That is what it is made for; for linear ones all the more."""
    for function in (linear, quadratic):
        assert off(estimates("reinmax", function), exact_gradient(function)).max() < 4.5


@pytest.mark.parametrize("name", ["soft", "straight-through"])
def test_the_others_are_biased_there(name: str) -> None:
    """So the measurement above could have failed."""
    assert off(estimates(name, quadratic), exact_gradient(quadratic)).max() > 10


def test_reinmax_has_the_smallest_bias_of_the_hard_ones() -> None:
    exact = exact_gradient(quadratic)
    bias = {name: (estimates(name, quadratic).mean(0) - exact).norm() for name in ESTIMATORS}
    assert bias["reinmax"] < 0.2 * bias["straight-through"]


@pytest.mark.parametrize("temperature", [0.3, 1.0])
def test_hard_estimators_draw_what_is_drawn_exactly(temperature: float) -> None:
    """One value each, as often as its probability says."""
    logits = LOGITS.expand(DRAWS, -1)
    for sampler in (straight_through(temperature), reinmax(temperature)):
        sample = sampler(logits, noise(DRAWS))
        assert set(sample.round().flatten().tolist()) == {0.0, 1.0}
        torch.testing.assert_close(sample, sample.round())
        error = 4.5 * (0.25 / DRAWS) ** 0.5
        torch.testing.assert_close(sample.mean(0), LOGITS.softmax(-1), atol=error, rtol=0)


def test_a_soft_draw_is_a_point_of_the_simplex() -> None:
    sample = gumbel_softmax(0.5)(LOGITS.expand(100, -1), noise(100))
    torch.testing.assert_close(sample.sum(-1), torch.ones(100, dtype=torch.float64))
    assert (sample > 0).all()
    assert (sample < 1).all()
