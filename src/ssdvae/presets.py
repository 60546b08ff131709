"""Named sizes, and the one that fits the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ssdvae.io.errors import UserError

Preset = Literal["auto", "tiny", "small", "paper"]

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


@dataclass(frozen=True)
class Counts:
    """What there is to learn from."""

    documents: int  # of the training split
    events: int
    words: int  # in the vocabulary


class Auto:
    """The default of an option that the preset ``auto`` sets when the corpus is known."""

    def __repr__(self) -> str:
        return "auto"


AUTO = Auto()

SET_BY_AUTO = ("embedding", "hidden", "layers", "role_embedding", "batch", "epochs", "learning_rate")
"""The options that the preset ``auto`` sets."""


READ = 300_000
"""Events that a run reads, those that come again counted again."""


def auto(counts: Counts) -> dict[str, Any]:
    """A size that fits the data: small corpora are read more often, large ones by a wider network.

    docs/runs.md has the table, and where it is from.
    """
    text = counts.words > 5_000  # the words of a text; logs and made worlds have fewer
    large = counts.events > 200_000
    return {
        "embedding": 128 if text else 64,
        "hidden": 256 if large else 128,
        "layers": 1,
        "role_embedding": 16,
        "batch": 64 if large else 32,
        "epochs": min(20, max(3, round(READ / max(1, counts.events)))),
        "learning_rate": 6e-3 if text else 5e-3,
    }


def sizes(name: str | None, counts: Counts | None = None) -> Mapping[str, Any]:
    """What a named size gives; without ``counts``, ``auto`` says only what it will decide."""
    if name is None:
        return {}
    if name != "auto":
        return preset(name)
    return dict.fromkeys(SET_BY_AUTO, AUTO) if counts is None else auto(counts)
