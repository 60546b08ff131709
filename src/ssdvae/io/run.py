"""The run folder: the output of a training run, and all that is needed to resume it.

    config.yaml                     every option: `ssdvae train CORPUS --config …` makes the run again
    config.json model.safetensors   the best model so far, with vocab.json and frames.json beside it
    metrics.jsonl                   the terms of the loss and the validations, in their order
    checkpoint/state.safetensors    weights, optimizer and state of the last checkpoint
    README.md                       the model card
    scores.json                     the measurements of `ssdvae evaluate`

Each file is written under another name first and then renamed, so a crash leaves the old or the new one,
never half of one. Nothing here is pickled: reading a run executes no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import torch
import yaml
from pydantic import Field, NonNegativeFloat, PositiveFloat, model_validator
from torch import nn

from ssdvae.io.errors import DataError, Malformed, UserError
from ssdvae.io.files import (
    atomic_write,
    check_exists,
    is_left_over,
    real_path,
    translate_os_errors,
    write_text,
)
from ssdvae.io.limits import read_whole
from ssdvae.io.locks import lock_path
from ssdvae.io.records import Count, Record, from_json, parse, read_yaml, to_json
from ssdvae.io.weights import load_metadata, load_weights, restore_training, save_training
from ssdvae.options import unversioned, versioned
from ssdvae.training.options import TrainOptions

CHECKPOINT = "a checkpoint of this run"
OPTIONS = "the options of a run"

LOCK = ".lock"
"""The lock file of a run folder, held by the process that trains it."""

Metrics = dict[str, Any]
"""A line of metrics.jsonl, without the values that are not finite."""


class MetricsLine(Record, extra="allow"):
    """The values of a line of metrics.jsonl; null stands for one that is not finite."""

    __pydantic_extra__: dict[str, float | dict[str, float | None] | None]

    step: Count
    epoch: NonNegativeFloat
    seconds: NonNegativeFloat
    split: str
    words: NonNegativeFloat | None = None
    documents: NonNegativeFloat | None = None
    ppl: PositiveFloat | None = None
    ppl_with_separators: PositiveFloat | None = None
    ppl_bound: PositiveFloat | None = None
    case_ppl: PositiveFloat | None = None
    frame_ppl: PositiveFloat | None = None


class State(Record, frozen=False):
    """The progress of a run. Order, masks and noise follow from the seed and the step."""

    step: Count = 0
    best: float | None = None  # lowest value of ``selection_metric``
    best_step: Count = 0
    stale: Count = 0  # validations since then
    finished: bool = False
    records: Count = 0  # lines of metrics.jsonl
    seconds: NonNegativeFloat = 0.0  # of training
    sums: dict[str, float] = Field(default_factory=dict)  # loss terms since the last record
    summed: Count = 0  # documents in these sums
    corpus: str = ""  # fingerprint of the corpus
    settings: str = ""  # fingerprint of the options in config.yaml
    scaler: dict[str, int | float] = Field(default_factory=dict)  # of mixed precision

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.best_step > self.step:
            raise Malformed(f"{self.best_step} at best_step", f"at most {self.step}, the steps taken")
        return self


def unique_folders(folders: Iterable[Path]) -> list[Path]:
    """Return each folder once, however it is spelt, in the order given."""
    return list({real_path(folder): folder for folder in folders}.values())


class Run:
    """A run folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.config_path = self.folder / "config.yaml"
        self.metrics_path = self.folder / "metrics.jsonl"
        self.checkpoint_path = self.folder / "checkpoint" / "state.safetensors"

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @contextlib.contextmanager
    def lock(self, new: bool = False) -> Iterator[None]:
        """Keep other processes from training this run at the same time.

        A ``new`` run must not exist. If it fails before it has begun, nothing is left of it.
        """
        with translate_os_errors(self.folder, "write"), contextlib.ExitStack() as stack:
            if new:
                if self.folder.exists() and not self.folder.is_dir():
                    self._refuse()
                self.folder.mkdir(parents=True, exist_ok=True)
                stack.callback(self._remove_if_empty)
            busy = f"another process is training {self.folder}"
            stack.enter_context(
                lock_path(self.folder / LOCK, f"{busy}\nwait for it, or choose another --out")
            )
            if new and not all(map(self._left_over, self.folder.iterdir())):
                self._refuse()
            rest = stack.pop_all()
        with rest:
            yield

    def _refuse(self) -> None:
        raise UserError(
            f"{self.folder} is already there and not empty; choose another --out, "
            f"or go on with it: ssdvae train --resume {self.folder}"
        )

    def _left_over(self, path: Path) -> bool:
        """Tell whether a process made this file that was killed before its run began."""
        if path == self.checkpoint_path.parent:
            return path.is_dir() and not any(path.iterdir())
        return path.name == LOCK or is_left_over(path.name, [self.config_path.name])

    def _remove_if_empty(self) -> None:
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def create(self, options: TrainOptions, corpus: Path) -> None:
        """Write the first files of a new run."""
        with translate_os_errors(self.folder, "write"):
            self.checkpoint_path.parent.mkdir(parents=True, exist_ok=True)
        values = versioned({"corpus": str(real_path(corpus)), **options.to_dict()})
        write_text(self.config_path, yaml.safe_dump(values, sort_keys=False))
        self.metrics_path.touch()

    def config(self) -> tuple[Path, TrainOptions]:
        """Return the corpus and the options of the run."""
        check_exists(self.folder)
        if not self.config_path.is_file():
            raise UserError(f"{self.folder} is not the folder of a run: it has no config.yaml")
        values = read_yaml(self.config_path, OPTIONS)
        try:
            corpus = parse(str, values.pop("corpus", None), "corpus")
            options = TrainOptions(**unversioned(values))
        except Malformed as error:
            raise DataError(self.config_path, None, error.found, error.expected) from error
        except UserError as error:
            raise UserError(f"{self.config_path}: {error}") from error
        first = self.state().settings
        if first and first != self._options_fingerprint():
            hint = "put them back as they were, or train a new run with --config"
            found = "other options than those that the run began with"
            raise DataError(self.config_path, None, found, OPTIONS, hint)
        return Path(corpus), options

    # Metrics

    def log_metrics(self, state: State, metrics: Metrics) -> None:
        """Add a line to metrics.jsonl."""
        with (
            translate_os_errors(self.metrics_path, "write"),
            open(self.metrics_path, "a", encoding="utf-8") as file,
        ):
            file.write(to_json(metrics) + "\n")
        state.records += 1

    def metrics(self) -> list[Metrics]:
        """Return all lines of metrics.jsonl; a last line that a crash cut short is ignored."""
        records = []
        for number, line in enumerate(self._lines(), start=1):
            try:
                record = from_json(line)
                parse(MetricsLine, record)
            except Malformed as error:
                raise DataError(self.metrics_path, number, error.found, error.expected) from error
            records.append({name: value for name, value in record.items() if value is not None})
        return records

    def curve(self) -> list[Metrics]:
        """Return the validations with a perplexity, in their order."""
        return [r for r in self.metrics() if r["split"] == "valid" and r.get("ppl") is not None]

    def rewind(self, state: State) -> None:
        """Remove the metrics that were logged after the checkpoint: these steps are about to be repeated."""
        lines = self._lines()[: state.records]
        if len(lines) < state.records:
            found = f"{len(lines)} lines"
            expected = f"{state.records}, as many as the checkpoint counts"
            raise DataError(self.metrics_path, None, found, expected)
        with atomic_write(self.metrics_path) as path:
            path.write_bytes(b"".join(line + b"\n" for line in lines))

    def _lines(self) -> list[bytes]:
        """Return the complete lines of metrics.jsonl; none if there is no file."""
        if not self.metrics_path.exists():
            return []
        with translate_os_errors(self.metrics_path, "read"), open(self.metrics_path, "rb") as file:
            return read_whole(file, self.metrics_path).split(b"\n")[:-1]

    # Checkpoints

    def save(self, state: State, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Write a checkpoint: weights, optimizer and state in one file."""
        state.settings = self._options_fingerprint()
        with translate_os_errors(self.metrics_path, "write"), open(self.metrics_path, "ab") as file:
            # The lines that the checkpoint counts are on the disk before it is.
            os.fsync(file.fileno())
        save_training(self.checkpoint_path, model, optimizer, {"state": to_json(state.model_dump())})

    def state(self) -> State:
        """Return the state of the last checkpoint; without one, that of a new run."""
        path = self.checkpoint_path
        return self._state(load_metadata(path, CHECKPOINT)) if path.is_file() else State()

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
        """Load the last checkpoint into the model and the optimizer, and return its state."""
        tensors, metadata = load_weights(self.checkpoint_path, CHECKPOINT)
        state = self._state(metadata)
        restore_training(self.checkpoint_path, tensors, model, optimizer, CHECKPOINT)
        return state

    def _state(self, metadata: Mapping[str, str]) -> State:
        try:
            return parse(State, from_json(metadata.get("state", "null")))
        except Malformed as error:
            raise DataError(self.checkpoint_path, None, error.found, error.expected) from error

    def _options_fingerprint(self) -> str:
        """Return a fingerprint of the options in config.yaml, without the corpus, which may move."""
        values = read_yaml(self.config_path, OPTIONS)
        values.pop("corpus", None)
        return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()


# Validations


def selection_metric(metrics: Mapping[str, Any]) -> str | None:
    """Return the name of the metric that selects the best validation; lower is better.

    It is what the model was trained for: words with ends and times of cases, the bound, the words or, of a
    model without words, the frames.
    """
    names = ("case_ppl", "ppl_bound", "ppl", "frame_ppl")
    return next((name for name in names if metrics.get(name) is not None), None)


def best_validation(validations: Sequence[Metrics]) -> Metrics | None:
    """Return the validation that the saved model is from: the first of those with the lowest value."""
    # By one metric for all: where it is missing it was not finite, and another does not stand in for it.
    name = selection_metric({k: v for metrics in validations for k, v in metrics.items() if v is not None})
    judged = [metrics for metrics in validations if name is not None and metrics.get(name) is not None]
    return min(judged, key=lambda metrics: float(metrics[str(name)]), default=None)
