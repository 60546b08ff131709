"""The run folder: what a training run leaves behind, and all it needs to go on.

    config.yaml                     every setting: `ssdvae train CORPUS --config …` makes the run again
    config.json model.safetensors   the best model so far, with vocab.json and frames.json beside it
    metrics.jsonl                   one line per record: every term of the loss, every validation
    checkpoint/state.safetensors    weights, optimiser and place of the last checkpoint
    README.md                       the model card

Each file is written under another name first and then renamed, so a crash leaves the old or the new one,
never half of one. Nothing here is pickled: reading a run executes no code.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ssdvae.config import TrainSettings
from ssdvae.errors import DataError, UserError
from ssdvae.files import atomic_write, check_exists, translate_os_errors
from ssdvae.models.base import EventModel


@dataclass
class State:
    """Where a run stands. Order, masks and noise follow from the seed and the step."""

    step: int = 0
    best: float | None = None  # lowest validation perplexity
    best_step: int = 0
    stale: int = 0  # validations since then
    finished: bool = False
    records: int = 0  # lines of metrics.jsonl
    seconds: float = 0.0  # of training
    sums: dict[str, float] = field(default_factory=dict)  # loss terms since the last record
    summed: int = 0  # documents in these sums
    corpus: str = ""  # fingerprint of the corpus
    scaler: dict[str, Any] = field(default_factory=dict)  # of mixed precision


def distinct(folders: Iterable[Path]) -> list[Path]:
    """Each folder once, however it is spelt, in the order given."""
    return list({folder.resolve(): folder for folder in folders}.values())


class Run:
    """A run folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.config_path = self.folder / "config.yaml"
        self.metrics_path = self.folder / "metrics.jsonl"
        self.checkpoint_path = self.folder / "checkpoint" / "state.safetensors"

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def refuse_if_there(self) -> None:
        """A run is never overwritten."""
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise UserError(
                f"{self.folder} is already there and not empty; choose another --out, "
                f"or go on with it: ssdvae train --resume {self.folder}"
            )

    def create(self, settings: TrainSettings, corpus: Path) -> None:
        """Begin a new run."""
        with translate_os_errors(self.folder, "write"):
            self.checkpoint_path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(self.config_path) as path:
            values = {"corpus": str(corpus.resolve()), **settings.to_dict()}
            path.write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
        self.metrics_path.touch()

    def config(self) -> tuple[Path, TrainSettings]:
        """The corpus and the settings of the run."""
        check_exists(self.folder)
        if not self.config_path.is_file():
            raise UserError(f"{self.folder} is not the folder of a run: it has no config.yaml")
        try:
            values = yaml.safe_load(self.config_path.read_text(encoding="utf-8"))
            return Path(values.pop("corpus")), TrainSettings(**values)
        except (yaml.YAMLError, TypeError, AttributeError, KeyError) as error:
            raise DataError(self.config_path, None, str(error), "the settings of a run") from error

    # What happened

    def record(self, state: State, record: dict[str, Any]) -> None:
        """Add a line to metrics.jsonl."""
        with (
            translate_os_errors(self.metrics_path, "write"),
            open(self.metrics_path, "a", encoding="utf-8") as file,
        ):
            file.write(json.dumps(record) + "\n")
        state.records += 1

    def metrics(self) -> list[dict[str, Any]]:
        """All records; a last line that a crash cut short is passed over."""
        return [json.loads(line) for line in self._lines()]

    def rewind(self, state: State) -> None:
        """Forget what was recorded after the checkpoint: it is about to happen again."""
        lines = self._lines()[: state.records]
        with atomic_write(self.metrics_path) as path:
            path.write_bytes(b"".join(line + b"\n" for line in lines))

    def _lines(self) -> list[bytes]:
        """The whole lines of metrics.jsonl; none before it is there."""
        return self.metrics_path.read_bytes().split(b"\n")[:-1] if self.metrics_path.exists() else []

    # Checkpoints

    def save(self, state: State, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        """Write one file with everything; the last one stays until this one is whole."""
        tensors = {f"model/{name}": value for name, value in model.state_dict().items()}
        for name, parameter in model.named_parameters():
            for key, value in optimizer.state[parameter].items():
                tensors[f"optimizer/{name}/{key}"] = value
        tensors = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        with atomic_write(self.checkpoint_path) as path:
            save_file(tensors, path, metadata={"state": json.dumps(asdict(state))})

    def state(self) -> State:
        """Where the last checkpoint was; a run without one is at its beginning."""
        if not self.checkpoint_path.is_file():
            return State()
        with self._opened() as file:
            return _state(file)

    def restore(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> State:
        """Put the last checkpoint into the model and the optimiser, and tell where it was."""
        with self._opened() as file:
            state = _state(file)
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            weights = {n.removeprefix("model/"): t for n, t in tensors.items() if n.startswith("model/")}
            model.load_state_dict(weights)
        for name, parameter in model.named_parameters():
            prefix = f"optimizer/{name}/"
            optimizer.state[parameter] = {
                # The fused Adam has even its count of steps where the parameter is.
                key.removeprefix(prefix): value.to(parameter.device).clone()
                for key, value in tensors.items()
                if key.startswith(prefix)
            }
        return state

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        """The checkpoint; whatever is found wrong with it is said in words."""
        path = self.checkpoint_path
        try:
            with safe_open(path, framework="pt") as file:
                yield file
        except (SafetensorError, RuntimeError, TypeError, KeyError, ValueError) as error:
            raise DataError(path, None, str(error).splitlines()[0], "a checkpoint of this run") from error

    def save_model(self, model: EventModel, scores: dict[str, Any]) -> None:
        """Write the model as it is now, with its card."""
        with translate_os_errors(self.folder, "write"):
            # Not save_pretrained, which first takes the old config.json away.
            model._save_pretrained(self.folder)
            with atomic_write(self.folder / "README.md") as path:
                model.generate_model_card(scores=scores).save(path)


def _state(file: Any) -> State:
    return State(**json.loads(file.metadata()["state"]))
