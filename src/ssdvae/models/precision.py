"""The arithmetic of matrix products: fp32, or bf16 where the device has it.

bf16 is mixed precision: GRUs and the output layer round the factors of their products. Weights, optimizer,
latent variables, attention, sums over words and losses stay fp32: they are little work.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

Precision = Literal["auto", "fp32", "bf16", "fp16"]

SMALLEST = 128
"""The hidden size below which a CPU gains less by bf16 products than the conversions cost."""


def bf16_arithmetic(device: torch.device) -> str | None:
    """Return what the device has for bf16 products; None if it has nothing, and would emulate them slowly."""
    if device.type == "cuda":
        return "a GPU with bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else None
    if device.type != "cpu":
        return None
    if torch.cpu._is_amx_tile_supported():
        return "AMX"
    return "AVX512_BF16" if torch.cpu._is_avx512_bf16_supported() else None


def choose_precision(device: torch.device, hidden: int) -> Literal["fp32", "bf16"]:
    """Return what ``auto`` stands for."""
    if bf16_arithmetic(device) is None or (device.type == "cpu" and hidden < SMALLEST):
        return "fp32"
    return "bf16"


def explain_precision(precision: Precision, device: torch.device, hidden: int) -> str:
    """Return the precision, and why it is chosen, in words."""
    found, chosen = bf16_arithmetic(device), choose_precision(device, hidden)
    if precision != chosen:
        reason = "as asked"
    elif found is None:
        reason = f"this {device.type} has no bf16 arithmetic"
    elif chosen == "fp32":
        reason = f"hidden sizes below {SMALLEST} are no faster in bf16 on a CPU"
    else:
        reason = f"this machine has {found}"
    return f"{precision} ({reason})"


def lower(values: Tensor) -> Tensor:
    """Return the values as the factors of products are: in bf16 within ``autocast`` of bf16."""
    kind = values.device.type
    return values.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else values


def autocast(precision: Precision, device: torch.device) -> torch.autocast:
    """Return the context in which products are computed in bf16, if that is the precision."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16")
