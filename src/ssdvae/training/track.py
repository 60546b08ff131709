"""Experiment trackers, through Accelerate."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import get_available_trackers
from accelerate.utils import LoggerType

from ssdvae.io.errors import UserError
from ssdvae.io.files import real_path
from ssdvae.options import names_of_text
from ssdvae.training.options import TrainOptions

PROJECT = "ssdvae"
"""The project of all runs, in trackers that have projects."""

FOLDER = "tracking"
"""The folder in the run folder for trackers that write files."""


def chosen_trackers(options: TrainOptions) -> list[str]:
    """Return the chosen trackers; refuse one that is unknown or not installed."""
    known = [name for name in LoggerType.list() if name != "all"]
    installed = [str(tracker.value) for tracker in get_available_trackers()]
    asked = names_of_text(options.track or "")
    for name in asked:
        if name not in known:
            raise UserError(f"--track: found {name!r}, expected some of {', '.join(known)}")
        if name not in installed:
            extra = "'ssdvae[tensorboard]'" if name == "tensorboard" else name.replace("_", "-")
            raise UserError(f"--track {name} needs a package that is not installed\npip install {extra}")
    return asked


def start_trackers(accelerator: Accelerator, folder: Path, options: TrainOptions, step: int) -> None:
    """Start tracking a run, or resume after a step: later steps will be logged again."""
    if not accelerator.log_with:
        return
    name = folder.name
    # A resumed run is the same run in the tracker.
    identity = hashlib.sha256(str(real_path(folder)).encode()).hexdigest()[:16]
    by_tracker = {
        "tensorboard": {"purge_step": step + 1},
        "wandb": {"name": name, "id": identity, "resume": "allow"},
        "trackio": {"name": name, "resume": "allow"},
        "mlflow": {"run_name": name},
    }
    config = {key: value for key, value in options.to_dict().items() if value is not None}
    accelerator.init_trackers(PROJECT, None if step else config, by_tracker)


def log_to_trackers(accelerator: Accelerator, values: dict[str, Any], step: int) -> None:
    """Log the numbers of a record, as ``valid/ppl``."""
    if accelerator.trackers:
        split = values["split"]
        numbers = {f"{split}/{k}": v for k, v in values.items() if isinstance(v, int | float)}
        accelerator.log(numbers, step=step)


def finish_trackers(accelerator: Accelerator) -> None:
    # Not `end_training`, which also parts the processes: they may have other runs to train.
    for tracker in accelerator.trackers:
        tracker.finish()
