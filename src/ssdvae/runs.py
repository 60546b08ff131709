"""The run folder: what a training run leaves behind, and all it needs to go on.

    config.yaml                     every setting: `ssdvae train CORPUS --config …` makes the run again
    config.json model.safetensors   the best model so far, with vocab.json and frames.json beside it
    metrics.jsonl                   one line per record: every term of the loss, every validation
    checkpoint/state.safetensors    weights, optimiser and place of the last checkpoint
    README.md                       the model card
    scores.json                     what `ssdvae evaluate` measured

Each file is written under another name first and then renamed, so a crash leaves the old or the new one,
never half of one. Nothing here is pickled: reading a run executes no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import torch
import yaml
from torch import Tensor, nn

from ssdvae.config import TrainSettings
from ssdvae.config.formats import read_train_settings, versioned
from ssdvae.errors import DataError, Malformed, UserError
from ssdvae.files import atomic_write, check_exists, real_path, translate_os_errors
from ssdvae.limits import read_whole
from ssdvae.locks import held
from ssdvae.records import from_json, read_yaml, to_json
from ssdvae.shapes import check_shape, made
from ssdvae.weights import load_metadata, load_weights, put_into, save_weights

CHECKPOINT = "a checkpoint of this run"
SETTINGS = "the settings of a run"

LOCK = ".lock"
"""The file in a run folder that the process holds which trains it."""

Record = dict[str, Any]
"""A line of metrics.jsonl."""


@dataclass
class State:
    """Where a run stands. Order, masks and noise follow from the seed and the step."""

    step: int = 0
    best: float | None = None  # lowest ``validation_loss``
    best_step: int = 0
    stale: int = 0  # validations since then
    finished: bool = False
    records: int = 0  # lines of metrics.jsonl
    seconds: float = 0.0  # of training
    sums: dict[str, float] = field(default_factory=dict)  # loss terms since the last record
    summed: int = 0  # documents in these sums
    corpus: str = ""  # fingerprint of the corpus
    settings: str = ""  # fingerprint of those in config.yaml
    scaler: dict[str, float] = field(default_factory=dict)  # of mixed precision

    def check(self) -> None:
        """What is counted is counted from 0, and the best model is from a step that was taken."""
        for name in ("step", "best_step", "stale", "records", "seconds", "summed"):
            if getattr(self, name) < 0:
                raise Malformed(f"{getattr(self, name)} at {name}", "0 or more")
        if self.best_step > self.step:
            raise Malformed(f"{self.best_step} at best_step", f"at most {self.step}, the steps taken")


class Required(TypedDict):
    """What every line of metrics.jsonl has."""

    step: int
    epoch: float
    seconds: float
    split: str


Figures = dict[str, float | dict[str, float | None] | None]
"""What else it may have."""


def distinct(folders: Iterable[Path]) -> list[Path]:
    """Each folder once, however it is spelt, in the order given."""
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
    def held(self, new: bool = False) -> Iterator[None]:
        """Keep other processes from training this run at the same time; a ``new`` one is never one that is.

        Of a run that fails before it has begun nothing is left.
        """
        with translate_os_errors(self.folder, "write"), contextlib.ExitStack() as stack:
            if new:
                if self.folder.exists() and not self.folder.is_dir():
                    self._refuse()
                self.folder.mkdir(parents=True, exist_ok=True)
                stack.callback(self._remove_if_empty)
            busy = f"another process is training {self.folder}"
            stack.enter_context(held(self.folder / LOCK, f"{busy}\nwait for it, or choose another --out"))
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
        """Whether it is all that a process has made that was killed before its run began."""
        if path == self.checkpoint_path.parent:
            return path.is_dir() and not any(path.iterdir())
        return path.name == LOCK or (path.name.startswith(".config.yaml.") and path.suffix == ".tmp")

    def _remove_if_empty(self) -> None:
        with contextlib.suppress(OSError):
            self.folder.rmdir()

    def create(self, settings: TrainSettings, corpus: Path) -> None:
        """Begin a new run."""
        with translate_os_errors(self.folder, "write"):
            self.checkpoint_path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.config_path) as path:
            values = versioned({"corpus": str(real_path(corpus)), **settings.to_dict()})
            path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
        self.metrics_path.touch()

    def config(self) -> tuple[Path, TrainSettings]:
        """The corpus and the settings of the run."""
        check_exists(self.folder)
        if not self.config_path.is_file():
            raise UserError(f"{self.folder} is not the folder of a run: it has no config.yaml")
        values = read_yaml(self.config_path, SETTINGS)
        try:
            check_shape(corpus := values.pop("corpus", None), str, "corpus")
            settings = read_train_settings(values)
        except Malformed as error:
            raise DataError(self.config_path, None, error.found, error.expected) from error
        except UserError as error:
            raise UserError(f"{self.config_path}: {error}") from error
        begun = self.state().settings
        if begun and begun != self._settings_fingerprint():
            hint = "put them back as they were, or train a new run with --config"
            found = "other settings than those that the run began with"
            raise DataError(self.config_path, None, found, SETTINGS, hint)
        return Path(corpus), settings

    # What happened

    def record(self, state: State, record: Record) -> None:
        """Add a line to metrics.jsonl."""
        with (
            translate_os_errors(self.metrics_path, "write"),
            open(self.metrics_path, "a", encoding="utf-8") as file,
        ):
            file.write(to_json(record) + "\n")
        state.records += 1

    def metrics(self) -> list[Record]:
        """All records; a last line that a crash cut short is passed over.

        A figure that was not finite is left out, like one that a model does not have.
        """
        records = []
        for number, line in enumerate(self._lines(), start=1):
            try:
                record = from_json(line)
                check_shape(record, dict[str, Any])
                check_shape({name: record.get(name) for name in Required.__annotations__}, Required)
                check_shape({k: v for k, v in record.items() if k != "split"}, Figures)
                _check_signs(record)
            except Malformed as error:
                raise DataError(self.metrics_path, number, error.found, error.expected) from error
            records.append({name: value for name, value in record.items() if value is not None})
        return records

    def curve(self) -> list[Record]:
        """The validations in which words were given a probability, in their order."""
        return [r for r in self.metrics() if r["split"] == "valid" and r.get("ppl") is not None]

    def rewind(self, state: State) -> None:
        """Forget what was recorded after the checkpoint: it is about to happen again."""
        lines = self._lines()[: state.records]
        if len(lines) < state.records:
            found = f"{len(lines)} lines"
            expected = f"{state.records}, as many as the checkpoint counts"
            raise DataError(self.metrics_path, None, found, expected)
        with atomic_write(self.metrics_path) as path:
            path.write_bytes(b"".join(line + b"\n" for line in lines))

    def _lines(self) -> list[bytes]:
        """The whole lines of metrics.jsonl; none before it is there."""
        if not self.metrics_path.exists():
            return []
        with translate_os_errors(self.metrics_path, "read"), open(self.metrics_path, "rb") as file:
            return read_whole(file, self.metrics_path).split(b"\n")[:-1]

    # Checkpoints

    def save(self, state: State, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Write one file with everything; the last one stays until this one is whole."""
        tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
        for name, parameter in model.named_parameters():
            for key, value in optimizer.state[parameter].items():
                tensors[f"optimizer/{name}/{key}"] = value
        state.settings = self._settings_fingerprint()
        with translate_os_errors(self.metrics_path, "write"), open(self.metrics_path, "ab") as file:
            # The lines that the checkpoint counts are on the disk before it is.
            os.fsync(file.fileno())
        save_weights(self.checkpoint_path, tensors, {"state": to_json(asdict(state))})

    def state(self) -> State:
        """Where the last checkpoint was; a run without one is at its beginning."""
        path = self.checkpoint_path
        return self._state(load_metadata(path, CHECKPOINT)) if path.is_file() else State()

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
        """Put the last checkpoint into the model and the optimiser, and tell where it was."""
        path = self.checkpoint_path
        tensors, metadata = load_weights(path, CHECKPOINT)
        state = self._state(metadata)
        weights = {n.removeprefix("model/"): t for n, t in tensors.items() if n.startswith("model/")}
        put_into(model, weights, path, CHECKPOINT)
        try:
            for name, parameter in model.named_parameters():
                optimizer.state[parameter] = _moments(tensors, name, parameter)
        except Malformed as error:
            raise DataError(path, None, error.found, error.expected) from error
        return state

    def _state(self, metadata: Mapping[str, str]) -> State:
        try:
            state = made(State, from_json(metadata.get("state", "null")))
            state.check()
        except Malformed as error:
            raise DataError(self.checkpoint_path, None, error.found, error.expected) from error
        return state

    def _settings_fingerprint(self) -> str:
        """Of the settings as they stand in the file; the corpus may move."""
        values = read_yaml(self.config_path, SETTINGS)
        values.pop("corpus", None)
        return hashlib.sha256(repr(sorted(values.items())).encode()).hexdigest()


def _check_signs(record: Mapping[str, Any]) -> None:
    """Times and counts are not below 0; a perplexity is the exponential of something."""
    for name, value in record.items():
        if name in ("step", "epoch", "seconds", "words", "documents"):
            check_shape(value, float | None, name)
            if value is not None and value < 0:
                raise Malformed(f"{value} at {name}", "0 or more")
        if name in ("ppl", "ppl_with_separators", "ppl_bound", "frame_ppl"):
            check_shape(value, float | None, name)
            if value is not None and value <= 0:
                raise Malformed(f"{value} at {name}", "a number above 0")


def _moments(tensors: Mapping[str, Tensor], name: str, parameter: nn.Parameter) -> dict[str, Tensor]:
    """What Adam knows of a parameter: nothing, if it never had a gradient."""
    moments = {}
    for key, shape in (("step", ()), ("exp_avg", parameter.shape), ("exp_avg_sq", parameter.shape)):
        value = tensors.get(f"optimizer/{name}/{key}")
        if value is None:
            continue
        if value.shape != shape or not value.is_floating_point():
            found = f"{list(value.shape)} numbers ({value.dtype}) as {key} of {name}"
            raise Malformed(found, f"{list(shape)} of floating point")
        if key != "exp_avg" and bool((value < 0).any()):
            raise Malformed(f"a number below 0 as {key} of {name}", "0 or more")
        # The fused Adam has even its count of steps where the parameter is.
        moments[key] = value.to(parameter.device).clone()
    if len(moments) not in (0, 3):
        raise Malformed(f"only {', '.join(moments)} of {name}", "all that Adam knows of it, or nothing")
    return moments


# Validations


def validation_loss(scores: Mapping[str, Any]) -> float | None:
    """The figure by which a validation is judged; lower is better.

    It is what the model was trained for: the bound, the words or, of a model without words, the frames.
    """
    name = judged_by(scores)
    return None if name is None else float(scores[name])


def judged_by(scores: Mapping[str, Any]) -> str | None:
    """The name of that figure."""
    return next((name for name in ("ppl_bound", "ppl", "frame_ppl") if scores.get(name) is not None), None)


def best_validation(records: Sequence[Record]) -> Record | None:
    """The validation that the saved model is from: the first of those with the lowest loss."""
    # By one figure for all: where it is not there it was not finite, and another one is no measure for it.
    name = judged_by(
        {name: value for record in records for name, value in record.items() if value is not None}
    )
    judged = [record for record in records if name is not None and record.get(name) is not None]
    return min(judged, key=lambda record: float(record[str(name)]), default=None)
