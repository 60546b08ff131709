"""Named sizes."""

from __future__ import annotations

from typing import Any

from ssdvae.errors import UserError

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "vocabulary": 2_000,
        "frames": 200,
        "embedding": 32,
        "hidden": 32,
        "layers": 1,
        "role_embedding": 8,
        "codes": 32,
        "code_width": 16,
        "batch": 32,
    },
    "small": {"vocabulary": 10_000, "frames": 500, "hidden": 256, "layers": 2, "batch": 100},
    "paper": {
        "vocabulary": 40_000,
        "frames": 500,
        "embedding": 300,
        "hidden": 512,
        "layers": 2,
        "batch": 100,
    },
}
"""Each command, and each model, takes from a size what it has."""


def preset(name: str) -> dict[str, Any]:
    if name not in PRESETS:
        raise UserError(f"no preset {name!r}; there are: {', '.join(PRESETS)}")
    return PRESETS[name]
