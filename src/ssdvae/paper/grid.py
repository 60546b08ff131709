"""Which runs are behind which table of the paper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ssdvae.config import ReproduceSettings, TrainSettings
from ssdvae.config.paper import Version
from ssdvae.errors import UserError
from ssdvae.evaluation.tasks import TASKS
from ssdvae.evaluation.tasks.base import ATTENTION, FRAMES, Task

Attention = Literal["addition", "concatenation"]


LABELS = {"rnnlm": "RNNLM", "rnnlm-role": "RNNLM+ROLE", "haqae": "HAQAE", "ssdvae": "SSDVAE"}

WIDTH = 20
"""Of the document vector in the authors' code, and of what stands beside it here."""


@dataclass(frozen=True)
class Variant:
    """What a row has that the model of the paper does not."""

    label: str
    settings: Mapping[str, Any]


VARIANTS = {
    "code": Variant(", authors' code", {"variant": "code"}),
    "document": Variant(" + document vector", {"document_vector": WIDTH}),
    "context": Variant(" + context vector", {"context_vector": WIDTH}),
}


@dataclass(frozen=True)
class Configuration:
    """A row of a table: what is trained once for each seed."""

    model: str
    observe: float | None = None  # ε; None for the baselines
    attention: Attention = "addition"
    single: bool = False  # trained on single events (M = 1)
    variant: str | None = None  # one of VARIANTS

    @property
    def kind(self) -> str:
        """The model as `--models` names it; `--as` says which SSDVAE it is."""
        parts = [self.model]
        if self.variant not in (None, "code"):
            parts.append(str(self.variant))
        return "-".join(parts + [self.attention] * (self.attention != "addition"))

    @property
    def label(self) -> str:
        """The model as the paper names it."""
        name = LABELS[self.model.removesuffix("-classifier")]
        name += "" if self.variant is None else VARIANTS[self.variant].label
        return name if self.attention == "addition" else f"{name}, {self.attention}"

    @property
    def name(self) -> str:
        parts = ["single"] * self.single + [self.kind] + ["code"] * (self.variant == "code")
        return "-".join(parts + ([] if self.observe is None else [str(self.observe)]))

    def settings(self, common: Mapping[str, Any], seed: int) -> TrainSettings:
        """Of the settings for all rows those that this model has, with what sets it apart."""
        # A baseline sees all frames if it classifies, and none if it models words.
        default = float(self.model.endswith("classifier"))
        observe = default if self.observe is None else self.observe
        apart = {"model": self.model, "attention": self.attention, "observe": observe, "seed": seed}
        variant = {} if self.variant is None else VARIANTS[self.variant].settings
        return TrainSettings.of({**common, **apart, **variant})


RNNLM_DOCUMENT, RNNLM_CONTEXT = (
    Configuration("rnnlm", variant=variant) for variant in ("document", "context")
)
VECTORS = (RNNLM_DOCUMENT, RNNLM_CONTEXT)
"""Baselines with a vector too, where SSDVAE has one."""

RNNLM, RNNLM_ROLE, HAQAE = (Configuration(model) for model in ("rnnlm", "rnnlm-role", "haqae"))
CLASSIFIERS = tuple(Configuration(f"{model}-classifier", single=True) for model in ("rnnlm", "rnnlm-role"))


def ssdvae_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe)


def ssdvae_concatenation_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe, attention="concatenation")


def ssdvae_single_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe, single=True)


def of_version(row: Configuration, version: Version) -> Configuration:
    """A row of SSDVAE as the paper's text has it, or the authors' code."""
    return replace(row, variant="code" if version == "code" else None)


def tables() -> dict[str, Task | None]:
    """The tables, and the task that is measured for each.

    Every task that is reproduced has a table of its own name. The ablation is a second table of perplexities,
    and the learning curves are there after training.
    """
    tasks: dict[str, Task | None] = {}
    for name, task in TASKS.items():
        if not task.reproduced:
            continue
        tasks |= {name: task, **{table: task for table, of in FURTHER.items() if of == name}}
    return {**tasks, CURVES: None}


FURTHER = {"ablation": "perplexity"}
"""Tables that show a task on other rows, and the task of each."""

CURVES = "curves"


def targets() -> dict[str, tuple[str, ...]]:
    """What can be asked for, and the tables of each."""
    alone = {name: (name,) for name in tables() if name not in FURTHER}
    together = {
        name: (*found, *(t for t, of in FURTHER.items() if of == name)) for name, found in alone.items()
    }
    return {**together, "all": tuple(tables())}


def asked_for(what: str) -> tuple[str, ...]:
    """The tables of one or more targets, comma-separated, each once."""
    known, asked = targets(), [name.strip() for name in what.split(",")]
    for name in asked:
        if name not in known:
            raise UserError(f"no table {name!r}; there are: {', '.join(known)}")
    return tuple(dict.fromkeys(table for name in asked for table in known[name]))


def rows_of(table: str, settings: ReproduceSettings) -> list[Configuration]:
    """The rows of a table, without those of models that were not asked for."""

    def each(row: Callable[[float], Configuration]) -> list[Configuration]:
        """At every ε, as the paper has it, or the code, or both."""
        return [of_version(row(e), version) for version in settings.versions for e in settings.observed]

    chain = each(ssdvae_row)
    task = tables()[table]
    rows: Sequence[Configuration]
    if table == "ablation":
        rows = [*chain, *each(ssdvae_concatenation_row)]
    elif task is None:
        rows = [HAQAE, *chain]
    elif task.single_events:
        rows = [*CLASSIFIERS, *each(ssdvae_single_row)]
    elif {FRAMES, ATTENTION} & {*task.needs}:
        rows = chain  # the baselines that model words infer no frames
    else:
        vectors = VECTORS if "code" in settings.versions else ()
        rows = [RNNLM, *vectors, RNNLM_ROLE, HAQAE, *chain]
    return [row for row in rows if row.kind in settings.model_names]


@dataclass(frozen=True)
class Cell:
    """One run, and what is to be measured of it."""

    row: Configuration
    seed: int
    tasks: frozenset[str]

    @property
    def name(self) -> str:
        return f"{self.row.name}-seed{self.seed}"


def grid(names: Iterable[str], settings: ReproduceSettings) -> list[Cell]:
    """Each run that one of these tables needs, once. All rows come before the second seed of any."""
    tasks: dict[Configuration, set[str]] = {}
    for name in names:
        task = tables()[name]
        for row in rows_of(name, settings):
            tasks.setdefault(row, set()).update([] if task is None else [task.name])
    if not tasks:
        hint = ""
        if {row.kind for row in VECTORS} & settings.model_names:
            hint = "\nlanguage models with a vector are in --as code and --as both"
        models = ", ".join(sorted(settings.model_names))
        raise UserError(f"no row of these tables is of the models {models}{hint}")
    return [
        Cell(row, seed, frozenset(wanted))
        for seed in range(1, settings.seeds + 1)
        for row, wanted in tasks.items()
    ]
