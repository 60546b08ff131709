"""The fused output layer against the plain one."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from ssdvae.models import output
from ssdvae.models.output import linear_cross_entropy


@pytest.mark.parametrize("weighing", ["the same", "differently", "some not at all"])
@pytest.mark.parametrize("rows", [0, 1, 5, 23])
def test_same_loss_and_gradients_as_the_plain_one(
    rows: int, weighing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the rows weigh in the loss, and however many of them are computed at once."""
    monkeypatch.setattr(output, "ROWS", 5)
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
            nll = linear_cross_entropy(a, b, c, target)
        else:
            nll = functional.cross_entropy(functional.linear(a, b, c), target, reduction="none")
        return [nll, *torch.autograd.grad((nll * scale).sum(), (a, b, c))]

    for mine, plain in zip(gradients(True), gradients(False), strict=True):
        torch.testing.assert_close(mine, plain)


def test_nothing_is_kept_where_nothing_is_learned() -> None:
    x, weight, bias = torch.randn(3, 4), torch.randn(7, 4), torch.randn(7)
    target = torch.tensor([0, 6, 2])
    with torch.no_grad():
        nll = linear_cross_entropy(x, weight, bias, target)
    torch.testing.assert_close(
        nll, functional.cross_entropy(functional.linear(x, weight, bias), target, reduction="none")
    )
    assert nll.grad_fn is None


def test_impossible_words_cost_infinity_and_no_nan() -> None:
    bias = torch.tensor([0.0, -torch.inf, 0.0])
    x, weight = torch.zeros(2, 4, requires_grad=True), torch.randn(3, 4)
    nll = linear_cross_entropy(x, weight, bias, torch.tensor([0, 1]))
    assert nll.tolist() == pytest.approx([0.6931, torch.inf], abs=1e-3)
