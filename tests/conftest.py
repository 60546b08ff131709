"""While testing, the shapes in the signatures are checked."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch
from hypothesis import settings
from jaxtyping import install_import_hook

import ssdvae.models.options  # noqa: F401  # before the hook: pydantic checks options itself

install_import_hook(
    ["ssdvae.models", "ssdvae.data.batches", "ssdvae.analysis", "ssdvae.inference"], "beartype.beartype"
)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The cache of whoever runs the tests is left alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSDVAE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_job() -> Iterator[None]:
    """A command shares its work with other processes where a test names their number: each imports torch."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssdvae.engine.pool.cores", lambda: 1)
        yield


@pytest.fixture(autouse=True)
def _own_randomness() -> Iterator[None]:
    """No test depends on another one's draws."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield


# A machine that others use too has no known speed, so no example has a time limit. In CI, every run is alike.
settings.register_profile("ssdvae", deadline=None, max_examples=50, derandomize="CI" in os.environ)
settings.load_profile("ssdvae")
