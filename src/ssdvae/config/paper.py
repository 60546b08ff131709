"""Settings of `reproduce`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from ssdvae.config.data import EngineSettings, names_of_text
from ssdvae.config.evaluation import EvaluateSettings
from ssdvae.config.presets import PRESETS
from ssdvae.config.settings import setting
from ssdvae.config.training import TrainSettings

REPRODUCED = (
    "rnnlm",
    "rnnlm-document",
    "rnnlm-context",
    "rnnlm-role",
    "haqae",
    "ssdvae",
    "ssdvae-concatenation",
    "rnnlm-classifier",
    "rnnlm-role-classifier",
)
"""The models in the paper's tables, as `reproduce --models` names them. `rnnlm-document` and
`rnnlm-context`, with a vector of the document or of the events so far, stand beside what the authors' code
has."""

PRESCRIBED = {"events": 5, "tied": False, "decay": False}
"""What the paper prescribes for all models, beside the size and what `--help` shows as defaults."""

REPRODUCE_DEFAULTS = {"model": "ssdvae", **PRESCRIBED}
"""What gives the settings of `train` the defaults that they have in `reproduce`."""

Version = Literal["paper", "code"]
"""What SSDVAE is: the model of the paper's text, or that of the authors' code of its time."""

SET_APART = ("document_vector", "variant", "context_vector")
"""What ``--as code`` and its rows are about, and nothing else."""

TRAINED_ALIKE = tuple(
    name
    for name in TrainSettings.names()
    if name not in ("model", "attention", "observe", "seed", "preset", *SET_APART)
)
MEASURED_ALIKE = tuple(
    name
    for name in EvaluateSettings.names()
    if name not in ("split", "events", "tasks", "cloze", "similarity", "mcnc", "floor_vectors")
)
"""The settings of `train` and `evaluate` that `reproduce` takes for all its runs: each model takes those that
it has. The size is that of ``--scale``; what was trained on the first M events is measured on them."""


@dataclass(frozen=True, kw_only=True)
class ReproduceSettings(EngineSettings):
    """Which cells of the paper's tables are made, and how many at a time."""

    topic: ClassVar[str] = "experiments"

    as_: Literal["paper", "code", "both"] = setting(
        "paper",
        "which SSDVAE: that of the paper's text; that of the authors' code of its time, with a vector of the "
        "whole document and observed frames that replace the logits; or both, side by side",
    )
    scale: str = setting("paper", f"preset of all models, as --preset of train: {', '.join(PRESETS)}")
    seeds: int = setting(3, "runs behind each row of a table, with the random seeds 1, 2, …", at_least=1)
    observe: str = setting(
        "0,0.2,0.4,0.5,0.7,0.8,0.9",
        "probabilities that a training frame is observed (ε), comma-separated; by default the paper's",
    )
    models: str | None = setting(
        None, f"restrict the tables to these models, comma-separated: {', '.join(REPRODUCED)}"
    )
    split: Literal["valid", "test"] = setting("valid", "which split of the corpus is measured")
    cloze: str | None = setting(
        None,
        "further cloze files in the public <TUP>/<DIST> format, as NAME=FILE, comma-separated; the paper's "
        "figures for the New York Times stand beside the one that is named nyt",
    )
    cells: Path | None = setting(
        None,
        "CSV file with the figures of runs that were made elsewhere, as tables/cells.csv has them: these are "
        "not made again",
    )
    jobs: int = setting(
        0,
        "runs at a time; 0 for one per GPU or, without a GPU, per core",
        at_least=0,
        topic="processes",
    )

    @property
    def versions(self) -> tuple[Version, ...]:
        return ("paper", "code") if self.as_ == "both" else (self.as_,)

    @property
    def observed(self) -> tuple[float, ...]:
        """ε, each once, from the lowest."""
        return tuple(sorted({float(value) for value in self.observe.split(",")}))

    @property
    def model_names(self) -> frozenset[str]:
        return frozenset(REPRODUCED if self.models is None else names_of_text(self.models))

    @property
    def cloze_files(self) -> dict[str, Path]:
        """Further cloze files by name; one that was given none is called by that of the file."""
        pairs = [word.rpartition("=") for word in names_of_text(self.cloze or "")]
        return {name or Path(path).stem: Path(path) for name, _, path in pairs}

    @property
    def cloze_names(self) -> dict[Path, str]:
        return {path: name for name, path in self.cloze_files.items()}

    def check_relations(self) -> None:
        super().check_relations()
        self._require("scale", self.scale in PRESETS, f"one of {', '.join(PRESETS)}")
        try:
            right = all(0 <= value <= 1 for value in self.observed)
        except ValueError:
            right = False
        self._require("observe", right, "probabilities from 0 to 1, comma-separated")
        known = bool(self.model_names) and self.model_names <= set(REPRODUCED)
        self._require("models", known, f"some of {', '.join(REPRODUCED)}")
        named = len(self.cloze_files) == len(names_of_text(self.cloze or "")) and all(self.cloze_files)
        self._require("cloze", named, "a different name for each file, as NAME=FILE")
