"""The figures of a run for experiment trackers: those that Accelerate knows, as they are."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import LoggerType

from ssdvae.config import TrainSettings
from ssdvae.config.data import names_of_text
from ssdvae.errors import UserError
from ssdvae.files import real_path

PROJECT = "ssdvae"
"""What runs are grouped under, by trackers that have projects."""

FOLDER = "tracking"
"""In the run folder, for trackers that write files."""


def chosen_trackers(settings: TrainSettings) -> list[str]:
    """The trackers that a run is to be shown in; one that is not known or not installed is named."""
    known = [name for name in LoggerType.list() if name != "all"]
    installed = [str(tracker.value) for tracker in get_available_trackers()]
    asked = names_of_text(settings.track or "")
    for name in asked:
        if name not in known:
            raise UserError(f"--track: found {name!r}, expected some of {', '.join(known)}")
        if name not in installed:
            extra = "'ssdvae[tensorboard]'" if name == "tensorboard" else name.replace("_", "-")
            raise UserError(f"--track {name} needs a package that is not installed\npip install {extra}")
    return asked


def start_trackers(accelerator: Accelerator, folder: Path, settings: TrainSettings, step: int) -> None:
    """Begin to show a run, or go on after a step: what was shown of later ones is about to happen again."""
    if not accelerator.log_with:
        return
    name = folder.name
    # The same run again is the same run there, too.
    identity = hashlib.sha256(str(real_path(folder)).encode()).hexdigest()[:16]
    options = {
        "tensorboard": {"purge_step": step + 1},
        "wandb": {"name": name, "id": identity, "resume": "allow"},
        "trackio": {"name": name, "resume": "allow"},
        "mlflow": {"run_name": name},
    }
    config = {key: value for key, value in settings.to_dict().items() if value is not None}
    accelerator.init_trackers(PROJECT, None if step else config, options)


def log_to_trackers(accelerator: Accelerator, values: dict[str, Any], step: int) -> None:
    """The numbers of a record, as ``valid/ppl``."""
    if accelerator.trackers:
        split = values["split"]
        numbers = {f"{split}/{k}": v for k, v in values.items() if isinstance(v, int | float)}
        accelerator.log(numbers, step=step)


def finish_trackers(accelerator: Accelerator) -> None:
    # Not `end_training`, which also parts the processes: they may have other runs to train.
    for tracker in accelerator.trackers:
        tracker.finish()
