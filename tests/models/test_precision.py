"""The choice of the precision, and its reason."""

from __future__ import annotations

import pytest
import torch

from ssdvae.models.precision import SMALLEST, autocast, choose_precision, explain_precision

CPU = torch.device("cpu")


def machine(patch: pytest.MonkeyPatch, amx: bool = False, avx: bool = False) -> None:
    patch.setattr("torch.cpu._is_amx_tile_supported", lambda: amx)
    patch.setattr("torch.cpu._is_avx512_bf16_supported", lambda: avx)


@pytest.mark.parametrize(
    ("has", "hidden", "chosen", "why"),
    [
        ({}, 512, "fp32", "no bf16"),
        ({"avx": True}, 512, "bf16", "AVX512_BF16"),
        ({"amx": True, "avx": True}, SMALLEST, "bf16", "AMX"),
        ({"avx": True}, SMALLEST - 1, "fp32", str(SMALLEST)),
    ],
)
def test_bf16_is_chosen_where_the_processor_has_it_and_the_model_gains_by_it(
    has: dict[str, bool], hidden: int, chosen: str, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine(monkeypatch, **has)
    assert choose_precision(CPU, hidden) == chosen
    for asked in ("fp32", "bf16"):
        said = explain_precision(asked, CPU, hidden)
        assert said.startswith(asked)
        assert (why if asked == chosen else "asked") in said


@pytest.mark.parametrize("has", [True, False])
def test_a_gpu_is_asked_for_itself(has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even for small models; emulated bf16 does not count."""
    machine(monkeypatch, avx=not has)
    monkeypatch.setattr(
        "torch.cuda.is_bf16_supported", lambda including_emulation: has or including_emulation
    )
    assert choose_precision(torch.device("cuda"), 8) == ("bf16" if has else "fp32")


def test_products_are_rounded_only_in_bf16() -> None:
    x = torch.full((1, 1), 1 + 2**-9)
    with autocast("bf16", CPU):
        assert (x @ x).dtype == torch.bfloat16
        with autocast("fp32", CPU):
            assert (x @ x).dtype == torch.float32
    with autocast("fp32", CPU):
        assert (x @ x).dtype == torch.float32
