"""While testing, the shapes in the signatures are checked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from jaxtyping import install_import_hook

install_import_hook(["ssdvae.models", "ssdvae.data.batches"], "beartype.beartype")


@pytest.fixture(autouse=True)
def _own_randomness() -> Iterator[None]:
    """No test depends on another one's draws."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
