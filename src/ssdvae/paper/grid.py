"""Which runs are behind which table of the paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ssdvae.config import ReproduceSettings, TrainSettings
from ssdvae.errors import UserError

Attention = Literal["addition", "concatenation"]


LABELS = {"rnnlm": "RNNLM", "rnnlm-role": "RNNLM+ROLE", "haqae": "HAQAE", "ssdvae": "SSDVAE"}


@dataclass(frozen=True)
class Configuration:
    """A row of a table: what is trained once for each seed."""

    model: str
    observe: float | None = None  # ε; None for the baselines
    attention: Attention = "addition"
    single: bool = False  # trained on single events (M = 1)

    @property
    def kind(self) -> str:
        """The model as `--models` names it."""
        return self.model if self.attention == "addition" else f"{self.model}-{self.attention}"

    @property
    def label(self) -> str:
        """The model as the paper names it."""
        name = LABELS[self.model.removesuffix("-classifier")]
        return name if self.attention == "addition" else f"{name}, {self.attention}"

    @property
    def name(self) -> str:
        parts = ["single"] * self.single + [self.kind] + ([] if self.observe is None else [str(self.observe)])
        return "-".join(parts)

    def settings(self, common: Mapping[str, Any], seed: int) -> TrainSettings:
        """Of the settings for all rows those that this model has, with what sets it apart."""
        # A baseline sees all frames if it classifies, and none if it models words.
        default = float(self.model.endswith("classifier"))
        observe = default if self.observe is None else self.observe
        apart = {"model": self.model, "attention": self.attention, "observe": observe, "seed": seed}
        return TrainSettings.of({**common, **apart})


RNNLM, RNNLM_ROLE, HAQAE = (Configuration(model) for model in ("rnnlm", "rnnlm-role", "haqae"))
CLASSIFIERS = tuple(Configuration(f"{model}-classifier", single=True) for model in ("rnnlm", "rnnlm-role"))


def ssdvae_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe)


def ssdvae_concatenation_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe, attention="concatenation")


def ssdvae_single_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe, single=True)


TASKS: dict[str, str | None] = {
    "perplexity": "perplexity",
    "ablation": "perplexity",
    "cloze": "cloze",
    "frames": "frames",
    "attention": "attention",
    "curves": None,
}
"""The tables, and what is measured of the runs behind each; curves are there after training."""

TARGETS: dict[str, tuple[str, ...]] = {
    "perplexity": ("perplexity", "ablation"),
    "cloze": ("cloze",),
    "frames": ("frames",),
    "attention": ("attention",),
    "curves": ("curves",),
    "all": tuple(TASKS),
}
"""What can be asked for, and the tables of each."""


def rows_of(table: str, settings: ReproduceSettings) -> list[Configuration]:
    """The rows of a table, without those of models that were not asked for."""
    observed = settings.observed
    chain = [ssdvae_row(observe) for observe in observed]
    rows: dict[str, Sequence[Configuration]] = {
        "perplexity": [RNNLM, RNNLM_ROLE, HAQAE, *chain],
        "ablation": [*chain, *map(ssdvae_concatenation_row, observed)],
        "cloze": [RNNLM, RNNLM_ROLE, HAQAE, *chain],
        "frames": [*CLASSIFIERS, *map(ssdvae_single_row, observed)],
        "attention": chain,
        "curves": [HAQAE, *chain],
    }
    return [row for row in rows[table] if row.kind in settings.model_names]


@dataclass(frozen=True)
class Cell:
    """One run, and what is to be measured of it."""

    row: Configuration
    seed: int
    tasks: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.row.name}-seed{self.seed}"


def grid(tables: Iterable[str], settings: ReproduceSettings) -> list[Cell]:
    """Each run that a table needs, once. All rows come before the second seed of any."""
    tasks: dict[Configuration, set[str]] = {}
    for table in tables:
        for row in rows_of(table, settings):
            tasks.setdefault(row, set()).update({task} if (task := TASKS[table]) else ())
    if not tasks:
        raise UserError(f"no row of these tables is of the models {', '.join(sorted(settings.model_names))}")
    return [
        Cell(row, seed, frozenset(wanted))
        for seed in range(1, settings.seeds + 1)
        for row, wanted in tasks.items()
    ]
