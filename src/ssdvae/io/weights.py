"""Weights in safetensors files: checked by SHA-256, finite, and read without executing anything.

The metadata of a file has a SHA-256 over all that is in it. Without it, a flipped bit would go unnoticed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Self

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ssdvae.io.errors import DataError, Malformed, UserError, locate_errors, shorten_text
from ssdvae.io.files import atomic_write, sha256, write_text
from ssdvae.io.limits import format_bytes, memory_limit
from ssdvae.io.records import Record, read_json, to_json

SEAL = "sha256"
"""The key of the SHA-256 in the metadata. A file from another program may have none."""

NOT_FINITE = "start again with a smaller --learning-rate, or with --precision fp32"


class NotFinite(UserError):
    """A training that has diverged."""


def check_finite(tensors: Mapping[str, Tensor], consequence: str) -> None:
    """Refuse weights that are not finite."""
    if name := first_not_finite(tensors):
        raise NotFinite(f"{name} has numbers that are not finite: {consequence}\n{NOT_FINITE}")


def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """Return the name of the first tensor that is not finite; None if all are."""
    wrong = (n for n, t in tensors.items() if t.is_floating_point() and not bool(t.isfinite().all()))
    return next(wrong, None)


def save_weights(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write tensors and metadata, with their SHA-256."""
    plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    check_finite(plain, f"{path.name} is not written")
    sealed = {**metadata, SEAL: _fingerprint(plain, metadata)}
    with atomic_write(path) as temporary:
        save_file(plain, temporary, metadata=sealed)
        _sort_metadata(temporary)


def compact(values: Tensor) -> Tensor:
    """Return whole numbers in 16 bits, if they all fit; models are loaded with the types that they have."""
    if values.is_floating_point() or values.dtype == torch.bool or not values.numel():
        return values
    small = torch.iinfo(torch.int16)
    fits = small.min <= int(values.min()) and int(values.max()) <= small.max
    return values.to(torch.int16) if fits else values


def _sort_metadata(path: Path) -> None:
    """Sort the metadata of a file, which safetensors writes in no order: the same weights, the same bytes."""
    with open(path, "rb+") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
        assert len(text) <= size
        file.seek(8)
        file.write(text.ljust(size))


class WeightsRecord(Record):
    """A file beside weights, which holds for no others."""

    file: ClassVar[str]
    about: ClassVar[str]  # what it holds, for messages
    weights: str = ""  # SHA-256 of the weights

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the record in the folder of a model; None if there is none for its weights."""
        path = folder / cls.file
        if not path.is_file():
            return None
        found = read_json(path, cls, cls.about, "remove the file")
        return found if found.weights == sha256(folder / "model.safetensors") else None

    def write(self, folder: Path) -> None:
        """Write the record beside the weights that gave it."""
        values = {**self.model_dump(), "weights": sha256(folder / "model.safetensors")}
        write_text(folder / self.file, to_json(values, ensure_ascii=False, separators=(",", ":")) + "\n")


def check_shapes(path: Path, model: nn.Module, expected: str) -> None:
    """Refuse a file whose tensors are not those of a model, or do not fit into the memory.

    Only its header is read, and the model may be on the device "meta", which has shapes and no numbers.
    """
    mine = {name: list(value.shape) for name, value in model.state_dict().items()}
    try:
        with safe_open(path, framework="pt") as file:
            there = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise _unreadable(path, error, expected) from error
    if other := sorted(name for name in mine.keys() | there.keys() if mine.get(name) != there.get(name)):
        name = other[0]
        found = f"{there[name]} numbers in {name}" if name in there else f"no {name}"
        raise DataError(path, None, found, f"{mine[name]}" if name in mine else expected)
    need, limit = 4 * sum(map(math.prod, there.values())), memory_limit()
    if need > limit:
        found = f"weights that take {format_bytes(need)} of memory"
        hint = "SSDVAE_MAX_MEMORY=64G, for example, allows more"
        raise DataError(path, None, found, f"at most {format_bytes(limit)}", hint)


def load_weights(path: Path, expected: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the metadata of a file, if they are those that were written."""
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
    if name := first_not_finite(tensors):
        raise DataError(path, None, f"numbers that are not finite in {name}", expected, NOT_FINITE)
    return tensors, metadata


def load_metadata(path: Path, expected: str) -> dict[str, str]:
    """Return the metadata of a file, without its tensors."""
    try:
        with safe_open(path, framework="pt") as file:
            return dict(file.metadata() or {})
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError) as error:
        raise _unreadable(path, error, expected) from error


def assign_weights(model: nn.Module, tensors: Mapping[str, Tensor], path: Path, expected: str) -> None:
    """Load weights into a model: all that it has, of the same shapes, and no others."""
    mine = model.state_dict()
    for name, value in tensors.items():
        if name in mine and value.is_floating_point() != mine[name].is_floating_point():
            raise DataError(path, None, f"{value.dtype} in {name}", f"{mine[name].dtype}")
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise _unreadable(path, error, expected) from error


def save_training(
    path: Path, model: nn.Module, optimizer: torch.optim.Optimizer, metadata: Mapping[str, str]
) -> None:
    """Write the weights of a model and the state of its optimizer, so that training resumes exactly."""
    tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for key, value in optimizer.state[parameter].items():
            tensors[f"optimizer/{name}/{key}"] = value
    save_weights(path, tensors, metadata)


def restore_training(
    path: Path,
    tensors: Mapping[str, Tensor],
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    expected: str,
) -> None:
    """Load the tensors of a file that ``save_training`` wrote into a model and its optimizer."""
    weights = {n.removeprefix("model/"): t for n, t in tensors.items() if n.startswith("model/")}
    assign_weights(model, weights, path, expected)
    with locate_errors(path, None):
        for name, parameter in model.named_parameters():
            optimizer.state[parameter] = _moments(tensors, name, parameter)


def _moments(tensors: Mapping[str, Tensor], name: str, parameter: nn.Parameter) -> dict[str, Tensor]:
    """Return the state of Adam for a parameter; empty if it never had a gradient."""
    moments = {}
    for key, shape in (("step", ()), ("exp_avg", parameter.shape), ("exp_avg_sq", parameter.shape)):
        value = tensors.get(f"optimizer/{name}/{key}")
        if value is None:
            continue
        if value.shape != shape or not value.is_floating_point():
            found = f"{list(value.shape)} numbers ({value.dtype}) as {key} of {name}"
            raise Malformed(found, f"{list(shape)} of floating point")
        if key != "exp_avg" and bool((value < 0).any()):
            raise Malformed(f"a number below 0 as {key} of {name}", "0 or more")
        # The fused Adam has even its count of steps where the parameter is.
        moments[key] = value.to(parameter.device).clone()
    if len(moments) not in (0, 3):
        raise Malformed(f"only {', '.join(moments)} of {name}", "all of the state of Adam, or nothing")
    return moments


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
