"""The fused output layer against the plain one."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from ssdvae.models import losses
from ssdvae.models.losses import Offsets, linear_cross_entropy, log_partition

EXPECTED: dict[str, Callable[[int], torch.Tensor]] = {
    "the same": torch.ones,
    "some not at all": lambda rows: (torch.arange(rows) % 2).float(),
    "some unknown": lambda rows: torch.tensor([1, torch.nan, 0]).repeat(rows)[:rows],
    "nothing": lambda rows: torch.full((rows,), torch.nan),
}
"""The weights of rows that are known before."""


@pytest.mark.parametrize("weighing", ["the same", "differently", "some not at all"])
@pytest.mark.parametrize("rows", [0, 1, 5, 23])
@pytest.mark.parametrize("expecting", EXPECTED)
def test_same_loss_and_gradients_as_the_plain_one(
    expecting: str, rows: int, weighing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the rows weigh, or are expected to, and however many of them are computed at once."""
    monkeypatch.setattr(losses, "ROWS", 5)
    monkeypatch.setattr(losses, "WORDS", 3)
    x, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((rows, 4), (7, 4), (7,)))
    target = torch.randint(0, 7, (rows,))
    scale = {
        "the same": torch.full((rows,), 0.3, dtype=torch.float64),
        "differently": torch.rand(rows, dtype=torch.float64),
        "some not at all": (torch.arange(rows) % 2).double(),
    }[weighing]

    def gradients(fused: bool) -> list[torch.Tensor]:
        a, b, c = (tensor.clone().requires_grad_() for tensor in (x, weight, bias))
        if fused:
            nll = linear_cross_entropy(a, b, c, target, EXPECTED[expecting](rows))
        else:
            nll = functional.cross_entropy(functional.linear(a, b, c), target, reduction="none")
        return [nll, *torch.autograd.grad((nll * scale).sum(), (a, b, c))]

    for mine, plain in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(mine, plain)


@pytest.mark.parametrize("weighing", ["the same", "differently"])
@pytest.mark.parametrize("expecting", EXPECTED)
def test_offsets_are_logits_that_rows_of_a_group_share(
    expecting: str, weighing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "ROWS", 5)
    monkeypatch.setattr(losses, "WORDS", 3)
    shapes = ((11, 4), (7, 4), (7,), (3, 7))
    tensors = [torch.randn(*shape, dtype=torch.float64) for shape in shapes]
    target, group = torch.randint(0, 7, (11,)), torch.randint(0, 3, (11,))
    scale = torch.full((11,), 0.3) if weighing == "the same" else torch.rand(11)

    def gradients(fused: bool) -> list[torch.Tensor]:
        a, b, c, added = (tensor.clone().requires_grad_() for tensor in tensors)
        if fused:
            nll = linear_cross_entropy(a, b, c, target, EXPECTED[expecting](11), Offsets(added, group))
        else:
            logits = functional.linear(a, b, c) + added[group]
            nll = functional.cross_entropy(logits, target, reduction="none")
        return [nll, *torch.autograd.grad((nll * scale).sum(), (a, b, c, added))]

    for mine, plain in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(mine, plain)
    with torch.no_grad():
        rows, weight, bias, added = tensors
        nll = linear_cross_entropy(rows, weight, bias, target, offsets=Offsets(added, group))
    torch.testing.assert_close(nll, gradients(False)[0].detach())


@pytest.mark.parametrize("learning", [True, False])
def test_the_partition_is_the_sum_over_all_words(learning: bool) -> None:
    x, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((3, 4), (7, 4), (7,)))
    with torch.set_grad_enabled(learning):
        found = log_partition(x, weight, bias, torch.tensor([0, 6, 2]))
    torch.testing.assert_close(found.detach(), functional.linear(x, weight, bias).logsumexp(-1).detach())


def test_where_nothing_is_learned_no_gradient_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluation has weights that could learn, and pays for none of it."""
    x, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((3, 4), (7, 4), (7,)))
    target = torch.tensor([0, 6, 2])
    monkeypatch.setattr(losses, "_Gradients", None)
    with torch.no_grad():
        nll = linear_cross_entropy(x, weight, bias, target)
    plain = functional.cross_entropy(functional.linear(x, weight, bias), target, reduction="none")
    torch.testing.assert_close(nll, plain.detach())


def test_a_second_pass_over_the_same_graph_gives_the_same_gradients() -> None:
    x, weight, bias = (torch.randn(*shape, requires_grad=True) for shape in ((3, 4), (7, 4), (7,)))
    loss = 0.3 * linear_cross_entropy(x, weight, bias, torch.tensor([0, 6, 2])).sum()
    first = torch.autograd.grad(loss, (x, weight, bias), retain_graph=True)
    for mine, again in zip(first, torch.autograd.grad(loss, (x, weight, bias)), strict=True):
        torch.testing.assert_close(mine, again)


def test_impossible_words_cost_infinity_and_no_nan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor where all words of the first tile are impossible."""
    monkeypatch.setattr(losses, "WORDS", 1)
    bias = torch.tensor([-torch.inf, 0.0, 0.0])
    x, weight = torch.zeros(2, 4, requires_grad=True), torch.randn(3, 4)
    nll = linear_cross_entropy(x, weight, bias, torch.tensor([1, 0]))
    assert nll.tolist() == pytest.approx([math.log(2), torch.inf])
