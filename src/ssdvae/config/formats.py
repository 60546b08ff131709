"""The format of config.yaml and config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ssdvae.config.models import ModelSettings
from ssdvae.config.training import TrainSettings
from ssdvae.errors import UserError

FORMAT = 1


def versioned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings as they are written."""
    return {"format": FORMAT, **values}


def unversioned(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return written settings without their format, which must be this one."""
    values = dict(values)
    number = values.pop("format", None)
    if number != FORMAT:
        raise UserError(
            f"found settings in format {number!r}, expected {FORMAT}\n"
            "they are from another version of ssdvae: train again, or install that version"
        )
    return values


def read_model_settings(values: Mapping[str, Any]) -> ModelSettings:
    """Read config.json."""
    return ModelSettings.exactly(unversioned(values))


def read_train_settings(values: Mapping[str, Any]) -> TrainSettings:
    """Read config.yaml, without the corpus."""
    return TrainSettings.exactly(unversioned(values))
