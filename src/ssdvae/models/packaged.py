"""Models that come with the package, by their names: folders in ``ssdvae/pretrained``."""

from __future__ import annotations

import re
from pathlib import Path

from ssdvae.errors import UserError

FOLDER = Path(__file__).parents[1] / "pretrained"

DEFAULT = "wiki-en"
"""The model that answers where none is named."""

SCRIPTS = "scripts.jsonl"
"""A file beside the weights: scripts that the model wrote by itself, to look at where its corpus is not."""


def packaged(name: str) -> Path | None:
    """The folder of the model of this name; None if the package has none."""
    folder = FOLDER / name
    return folder if re.fullmatch(r"[\w-]+", name) and (folder / "config.json").is_file() else None


def default_model() -> Path:
    """The folder of the model that answers where none is named."""
    folder = packaged(DEFAULT)
    if folder is None:
        raise UserError(
            f"no model is named, and this installation comes without {DEFAULT}, the one that would answer\n"
            "name a run folder, or a model on the Hugging Face Hub; ssdvae demo makes a run in three minutes"
        )
    return folder
