"""Options of `reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

from ssdvae.data.options import EngineOptions
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.options import PRESETS, FilePath, names_of_text
from ssdvae.training.options import TrainOptions

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
`rnnlm-context`, with a vector of the document or of the events so far, stand beside the authors' code."""

PRESCRIBED = {"events": 5, "tied": False, "decay": False}
"""Options that the paper prescribes for all models, beside the size and the defaults."""

Version = Literal["paper", "code"]
"""Which SSDVAE: the model of the paper's text, or that of the authors' code of its time."""

VARIANT_OPTIONS = ("document_vector", "variant", "context_vector")
"""Options that only ``--as code`` sets."""

SHARED_TRAIN_OPTIONS = tuple(
    name
    for name in TrainOptions.names()
    if name not in ("model", "attention", "observe", "seed", "preset", *VARIANT_OPTIONS)
)
SHARED_EVALUATE_OPTIONS = tuple(
    name
    for name in EvaluateOptions.names()
    if name not in ("split", "events", "tasks", "cloze", "similarity", "mcnc", "floor_vectors", "precision")
)
"""The options of `train` and `evaluate` that hold for all runs; each model takes those that it has. The size
is that of ``--scale``. What was trained on the first M events is measured on them."""


class ReproduceOptions(EngineOptions):
    """Which of the paper's tables and rows are made, and how many runs at a time."""

    group: ClassVar[str] = "experiments"

    as_: Literal["paper", "code", "both"] = Field(
        "paper",
        description="which SSDVAE: that of the paper's text; that of the authors' code of its time, "
        "with a vector of the "
        "whole document and observed frames that replace the logits; or both, side by side",
    )
    scale: str = Field(
        "paper", description=f"preset of all models, as --preset of train: {', '.join(PRESETS)}"
    )
    seeds: int = Field(3, description="runs behind each row of a table, with the random seeds 1, 2, …", ge=1)
    observe: str = Field(
        "0,0.2,0.4,0.5,0.7,0.8,0.9",
        description="probabilities that a training frame is observed (ε), comma-separated; by default "
        "the paper's",
    )
    models: str | None = Field(
        None, description=f"restrict the tables to these models, comma-separated: {', '.join(REPRODUCED)}"
    )
    split: Literal["valid", "test"] = Field("valid", description="which split of the corpus is measured")
    cloze: str | None = Field(
        None,
        description="further cloze files in the public <TUP>/<DIST> format, as NAME=FILE, "
        "comma-separated; the paper's "
        "figures for the New York Times stand beside the one that is named nyt",
    )
    cells: FilePath | None = Field(
        None,
        description="CSV file with the figures of runs that were made elsewhere, as tables/cells.csv "
        "has them: these are "
        "not made again",
    )
    jobs: int = Field(0, description="runs at a time; 0 for one per GPU or, without a GPU, per core", ge=0)

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
        names = list(self.cloze_files)
        named = len(names) == len(names_of_text(self.cloze or "")) and all(
            name and name.isprintable() for name in names
        )
        self._require("cloze", named, "a different name for each file, as NAME=FILE")
