"""The quantiles of surprisal that are kept with a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssdvae.io.errors import DataError
from ssdvae.models.quantiles import TYPICAL, SurprisalQuantiles


def test_they_are_read_as_written_and_only_with_their_weights(tmp_path: Path) -> None:
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    values = np.random.default_rng(0).random((50, 3))
    first, events = values[:20], values.sum(1)
    quantiles = SurprisalQuantiles.of("valid", "exact", first, events[:20], values, events, events[:20])
    quantiles.write(tmp_path)
    found = SurprisalQuantiles.read(tmp_path)
    assert found is not None
    assert found.model_copy(update={"weights": ""}) == quantiles
    weights.write_bytes(b"others")
    assert SurprisalQuantiles.read(tmp_path) is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"event": [2.0, 1.0]}, "not in order at event"),
        ({"event": [1.0]}, "too few.* at event"),
        ({"slots": [[0.0, 1.0], [0.0, 10**310]]}, r"at slots\[2\]\[2\], expected a finite number"),
        ({"document": [0.0, 1e999]}, r"None at document\[2\], expected a number"),
        ({"documents": 10**400}, "at documents, expected a whole number of 64 bits"),
        ({"split": None}, "None at split, expected text"),
    ],
)
def test_wrong_quantiles_are_refused_in_words(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    right = {"split": "valid", "documents": 1, "kind": "exact", "weights": "0"}
    right |= {"event": [0, 1], "document": [0, 1], "slots": [[0, 1]]}
    (tmp_path / TYPICAL).write_text(json.dumps({**right, **change}))
    with pytest.raises(DataError, match=rf"typical\.json: found .*{message}"):
        SurprisalQuantiles.read(tmp_path)
