"""The formats of config.yaml and config.json, this one and those before it.

1   no number; every setting of every model is there, and those of other models were ignored
2   ``format: 2``; the settings that the model has, and no others
3   the recipe, and in config.yaml the preset, by which these were chosen; before, nobody wrote them down
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ssdvae.config.models import ModelSettings
from ssdvae.config.training import TrainSettings
from ssdvae.errors import UserError

FORMAT = 3


def versioned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as they are written today."""
    return {"format": FORMAT, **values}


def upgraded(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a run or model that this or an earlier version wrote, as they are called today."""
    values = dict(values)
    number = values.pop("format", 1)
    if number not in range(1, FORMAT + 1):
        raise UserError(
            f"found settings in format {number!r}, expected {FORMAT} or an earlier one\n"
            "they are from a newer version: pip install --upgrade ssdvae"
        )
    if number == 1:
        # What belongs to other models had no effect, whatever its value.
        known = set(TrainSettings.names_for(values))
        values = {name: value for name, value in values.items() if name in known or not _is_setting(name)}
    if number < 3:
        values = {"recipe": None, **values}
    if values.pop("tensorboard", False):
        values = {"track": "tensorboard", **values}
    return values


def _is_setting(name: str) -> bool:
    return name in TrainSettings.names()


def read_model_settings(values: Mapping[str, Any]) -> ModelSettings:
    """From config.json."""
    return ModelSettings.exactly(upgraded(values))


def read_train_settings(values: Mapping[str, Any]) -> TrainSettings:
    """From config.yaml, without the corpus."""
    return TrainSettings.exactly(upgraded(values))
