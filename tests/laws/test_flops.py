"""The work of a model by formula against what torch counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode, addmm_flop

from ssdvae.models import MODELS
from ssdvae.models.flops import TRAINING
from tests.toys import noise, toy_batch, toy_model

DOCUMENTS, EVENTS = 6, 12
CASES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in MODELS),
    ("ssdvae", {"attention": "concatenation"}),
    ("ssdvae", {"layers": 1}),
    ("ssdvae", {"samples": 3}),
    ("ssdvae", {"guide": "aligned", "roles": True, "tied": True}),
    ("haqae", {"latents": 2, "structure": "chain"}),
]


def added(total: Any, first: Any, second: Any, **_: Any) -> int:
    return int(addmm_flop(total.shape, first.shape, second.shape))


added._get_raw = True  # type: ignore[attr-defined]  # how torch marks what takes tensors, not shapes


def counter() -> FlopCounterMode:
    # torch counts addmm, and has forgotten addmm_, which adds to what is there.
    return FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: added})


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_scoring_is_the_formula(name: str, settings: dict[str, Any]) -> None:
    model, batch = toy_model(name, **settings), toy_batch([EVENTS] * DOCUMENTS)
    model.requires_grad_(False)
    with counter() as counted, torch.no_grad():
        if model.decoder is None:
            model.infer(batch)
        else:
            model.word_log_probs(batch, noise(DOCUMENTS))
    assert counted.get_total_flops() == model.flops(DOCUMENTS, EVENTS)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_training_step_is_three_times_the_formula(name: str, settings: dict[str, Any]) -> None:
    """All but exactly: first and last states of a GRU have fewer gradients; haqae asks its queries twice."""
    model, batch = toy_model(name, **settings), toy_batch([EVENTS] * DOCUMENTS)
    with counter() as counted:
        model.train()(batch, noise(DOCUMENTS)).per_document.sum().backward()
    useful = TRAINING * model.flops(DOCUMENTS, EVENTS, model.training_chains)
    assert counted.get_total_flops() == pytest.approx(useful, rel=0.02)
