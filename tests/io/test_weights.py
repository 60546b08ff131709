"""Weights are written byte for byte the same, and read as they were written."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from ssdvae.data.corpus import Corpus
from ssdvae.io.weights import compact, load_weights
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import train
from tests.training.conftest import corpus as corpus

SAVE = """
import sys, torch
from pathlib import Path
from ssdvae.io.weights import save_weights
tensors = {name: torch.arange(5.0) for name in "b a é".split()}
save_weights(Path(sys.argv[1]), tensors, {f"key {n}": f'a "ä" \\n {n}' for n in range(20)})
"""


def test_the_same_weights_are_the_same_bytes(tmp_path: Path) -> None:
    """In processes of their own: an order of their hashes differs from one to the next."""
    for name in ("one", "other"):
        subprocess.run([sys.executable, "-c", SAVE, tmp_path / name], check=True)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    tensors, metadata = load_weights(tmp_path / "one", "weights")
    assert all(torch.equal(value, torch.arange(5.0)) for value in tensors.values())
    assert metadata == {f"key {n}": f'a "ä" \n {n}' for n in range(20)}


def test_the_same_seed_gives_the_same_file(corpus: Corpus, tmp_path: Path) -> None:
    small = {"embedding": 8, "hidden": 8, "layers": 1, "batch": 32, "epochs": 1}
    digests = set()
    for name in ("one", "other"):
        run = train(corpus, tmp_path / name, TrainOptions.of(small))
        digests.add(hashlib.sha256((run.folder / "model.safetensors").read_bytes()).hexdigest())
    assert len(digests) == 1


@pytest.mark.parametrize("largest", [0, 32_767, 32_768, 2**31 - 1])
@pytest.mark.parametrize("least", [0, -32_768, -32_769])
def test_compact_changes_no_number(least: int, largest: int) -> None:
    values = torch.tensor([least, largest], dtype=torch.int32)
    stored = compact(values)
    assert torch.equal(stored.to(torch.int32), values)
    assert stored.element_size() == (2 if least >= -32_768 and largest <= 32_767 else 4)
    for others in (values.double(), values > 0, values[:0]):
        assert compact(others) is others
