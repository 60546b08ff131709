"""Times: densities that integrate to one, quantiles that invert them, and a model that they leave alone."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from ssdvae.data.batches import Batch
from ssdvae.models.cases import CaseModel, forecast_times
from ssdvae.models.times import DAY, TimeMixture, time_targets
from tests.models.test_cases import ended, toy_cases
from tests.toys import noise


def mixture() -> TimeMixture:
    torch.manual_seed(3)
    means = torch.tensor([[0.0, 3, -2], [9, 12, 14], [1, 1, 1]]).double()
    return TimeMixture(torch.randn(3, 3).double().log_softmax(-1), means, torch.rand(3, 3).double() + 0.05)


def test_densities_integrate_to_one() -> None:
    found = mixture()
    y = torch.linspace(0, 30, 300_001).double()
    density = found.log_prob(y.expm1().expand(3, -1).T[..., None].squeeze(-1)).exp() / DAY
    total = torch.trapezoid(density * y.exp()[:, None], y, dim=0)
    torch.testing.assert_close(total, torch.ones(3).double(), atol=1e-5, rtol=0)


def test_tails_are_integrals_and_quantiles_invert_them() -> None:
    found, y = mixture(), torch.linspace(0, 30, 300_001).double()
    density = found.log_prob(y.expm1()[:, None].expand(-1, 3)).exp() / DAY * y.exp()[:, None]
    above = y >= 2.5
    expected = torch.trapezoid(density[above], y[above], dim=0)
    tail = found.survival(torch.full((3,), 2.5).double().expm1())
    torch.testing.assert_close(tail, expected, atol=1e-4, rtol=0)
    assert found.survival(torch.zeros(3)).tolist() == pytest.approx([1, 1, 1])
    for p in (0.1, 0.5, 0.9):
        assert (1 - found.survival(found.quantile(p))).tolist() == pytest.approx([p] * 3, abs=1e-5)


def test_a_component_far_below_zero_is_next_to_zero() -> None:
    found = TimeMixture(
        torch.tensor([[0.3, 0.7]]).log(), torch.tensor([[-4.0, 9]]), torch.tensor([[0.054, 0.1]])
    )
    assert found.quantile(0.2).item() < 1e-2
    assert found.quantile(0.65).item() == pytest.approx(
        math.expm1(9), rel=1e-3
    )  # in the middle of the second


def test_targets_by_hand() -> None:
    times = torch.tensor([[0.0, 10, 5, torch.nan], [3, 4, 6, 9]]).double()
    mask, ends = ~times.isnan(), torch.zeros(2, 4, dtype=torch.bool)
    ends[0, 2] = True
    gap, rest = time_targets(times, mask, ends)
    nan = torch.nan
    torch.testing.assert_close(
        gap, torch.tensor([[10, 0, nan, nan], [1, 2, 3, nan]]).double(), equal_nan=True
    )
    torch.testing.assert_close(rest, torch.tensor([[5, 0, 0, nan], [nan] * 4]).double(), equal_nan=True)


def timed(lengths: list[int]) -> Batch:
    batch = ended(lengths)
    times = (torch.rand(batch.mask.shape).double() * 1e5).cumsum(1) + 1e9
    return replace(batch, times=times.masked_fill(~batch.mask, torch.nan))


@pytest.fixture(params=["ssdvae-exact", "rnnlm"])
def model(request: pytest.FixtureRequest) -> CaseModel:
    torch.manual_seed(1)
    return toy_cases(request.param)


def test_times_teach_nothing_but_the_clock(model: CaseModel) -> None:
    batch = timed([4, 1, 3])
    model(batch, noise(3)).per_document.sum().backward()
    mine = {name: p.grad for name, p in model.named_parameters() if not name.startswith("clock")}
    assert model.clock is not None
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.clock.parameters())
    model.zero_grad()
    model(replace(batch, times=None), noise(3)).per_document.sum().backward()
    for name, p in model.named_parameters():
        if not name.startswith("clock") and p.grad is not None:
            torch.testing.assert_close(p.grad, mine[name], msg=name)
    (group,) = [g for g in model.clipping_groups() if any(p is next(model.clock.parameters()) for p in g)]
    assert {id(p) for p in group} == {id(p) for p in model.clock.parameters()}


def test_a_case_has_its_times_whatever_its_batch(model: CaseModel) -> None:
    batch = timed([4, 1, 3])
    whole = forecast_times(model, batch)
    alone = forecast_times(model, batch.rows(torch.tensor([2])).first(3))
    before = forecast_times(model, batch.rows(torch.tensor([2])).first(1))
    assert whole is not None
    assert alone is not None
    assert before is not None
    for name in ("gap", "rest"):
        mine, theirs, first = (getattr(x, name).quantile(0.5) for x in (whole, alone, before))
        torch.testing.assert_close(mine[2, :3], theirs[0])
        torch.testing.assert_close(mine[2, :1], first[0])  # what comes later says nothing


def test_training_on_cases_drops_states_by_its_noise(model: CaseModel) -> None:
    batch, model = timed([4, 1, 3]), model.train()
    first, again, other = (model(batch, noise(3, seed)).per_document for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    model.learn_cases(ends=False, times=False)  # a text
    first, other = (model(batch, noise(3, seed)).per_document for seed in (1, 2))
    assert torch.equal(first, other) or model.config.model == "ssdvae-exact"  # whose readers have noise
