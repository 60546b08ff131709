"""Weights in files: sealed with a fingerprint, finite, and read without executing anything.

The metadata of a safetensors file has a SHA-256 over all that is in it. A bit that was flipped would
otherwise give other answers, and nobody would know.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ssdvae.errors import DataError, UserError, shorten_text
from ssdvae.files import atomic_write

SEAL = "sha256"
"""The name of the fingerprint in the metadata. Files made before there was one have none."""

NOT_FINITE = "start again with a smaller --learning-rate, or without --precision"


class NotFinite(UserError):
    """A training that has come to infinity."""


def check_finite(tensors: Mapping[str, Tensor], consequence: str) -> None:
    """Refuse weights with which nothing can be computed."""
    if name := not_finite(tensors):
        raise NotFinite(f"{name} has numbers that are not finite: {consequence}\n{NOT_FINITE}")


def not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The name of the first that is not."""
    wrong = (n for n, t in tensors.items() if t.is_floating_point() and not bool(t.isfinite().all()))
    return next(wrong, None)


def save_weights(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write a file in one go; the old one stays until the new one is whole."""
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    check_finite(plain, f"{path.name} is not written")
    sealed = {**metadata, SEAL: _fingerprint(plain, metadata)}
    with atomic_write(path) as temporary:
        save_file(plain, temporary, metadata=sealed)


def load_weights(path: Path, expected: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, if they are those that were written."""
    metadata = load_metadata(path, expected)
    try:
        with safe_open(path, framework="pt") as file:
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise _unreadable(path, error, expected) from error
    seal = metadata.pop(SEAL, None)
    if seal is not None and seal != _fingerprint(tensors, metadata):
        hint = "the file was changed after it was written: copy it again, or train again"
        raise DataError(path, None, "other numbers than were written (SHA-256)", expected, hint)
    if name := not_finite(tensors):
        raise DataError(path, None, f"numbers that are not finite in {name}", expected, NOT_FINITE)
    return tensors, metadata


def load_metadata(path: Path, expected: str) -> dict[str, str]:
    """What a file says of itself, without its tensors."""
    try:
        with safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise _unreadable(path, error, expected) from error


def put_into(model: nn.Module, tensors: Mapping[str, Tensor], path: Path, expected: str) -> None:
    """Give a model its weights: all that it has, of the same shapes, and no others."""
    mine = model.state_dict()
    for name, value in tensors.items():
        if name in mine and value.is_floating_point() != mine[name].is_floating_point():
            raise DataError(path, None, f"{value.dtype} in {name}", f"{mine[name].dtype}")
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise _unreadable(path, error, expected) from error


def _unreadable(path: Path, error: Exception, expected: str) -> DataError:
    # torch has what is wrong below a line that says that something is.
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return DataError(path, None, shorten_text(" ".join(lines[:2]) or type(error).__name__), expected)


def _fingerprint(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    digest = hashlib.sha256(repr(sorted(metadata.items())).encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)} ".encode())
        digest.update(value.contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
