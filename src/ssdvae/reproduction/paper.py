"""The paper's tables: the figures that it prints, the rows of each table, and the trials behind them.

``paper.csv`` has the paper's figures under the names and in the units of this package: its perplexity counts
separators (``ppl_with_separators``), and its cloze accuracy, printed in per cent, is a share. A baseline that
classifies frames has the name of the model that does so here.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Literal

from ssdvae.evaluation.summary import Published, PublishedFigure
from ssdvae.evaluation.task import ATTENTION, FRAMES, TASKS, Task
from ssdvae.io.errors import UserError
from ssdvae.reproduction.options import ReproduceOptions, Version
from ssdvae.training.options import TrainOptions

SOURCE = "Rezaee and Ferraro, NAACL 2021"

CITATIONS = {"1a": "Table 1a", "1b": "Table 1b", "3": "Tables 3 and 5", "6": "Table 6"}
"""Citations of the tables of the paper; the deviations of Table 3 are in Table 5."""

NOTE = (
    f"The paper's figures ({SOURCE}), in italics, are means and deviations of three runs on its own corpus "
    "of Wikipedia, with 40,000 words and 500 frames. A run on any other corpus does not compare with them."
)


@cache
def published_figures() -> Published:
    """Return all figures of the paper; those on Wikipedia stand beside the corpus of a run."""
    text = (resources.files(__package__) / "paper.csv").read_text(encoding="utf-8")
    _, *lines = csv.reader(text.splitlines())
    figures = tuple(
        PublishedFigure(
            *(table, model, attention),
            float(observe) if observe else None,
            *(data, split, figure),
            float(mean),
            float(deviation),
            f"{mean} ± {deviation}",
        )
        for table, model, attention, observe, data, split, figure, mean, deviation in lines
    )
    return Published(SOURCE, CITATIONS, "wiki", NOTE, figures)


LABELS = {"rnnlm": "RNNLM", "rnnlm-role": "RNNLM+ROLE", "haqae": "HAQAE", "ssdvae": "SSDVAE"}

WIDTH = 20
"""Width of the document vector in the authors' code, and of the vectors of language models beside it."""


@dataclass(frozen=True)
class Variant:
    """A departure from the model of the paper's text: its label and the options that make it."""

    label: str
    options: Mapping[str, Any]


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
    attention: Literal["addition", "concatenation"] = "addition"
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
        """The unique name, which folders and cells.csv have."""
        parts = ["single"] * self.single + [self.kind] + ["code"] * (self.variant == "code")
        return "-".join(parts + ([] if self.observe is None else [str(self.observe)]))

    def train_options(self, shared: Mapping[str, Any], seed: int) -> TrainOptions:
        """Return the shared options that this model has, with those that make the row."""
        # A baseline sees all frames if it classifies, and none if it models words.
        default = float(self.model.endswith("classifier"))
        observe = default if self.observe is None else self.observe
        own = {"model": self.model, "attention": self.attention, "observe": observe, "seed": seed}
        variant = {} if self.variant is None else VARIANTS[self.variant].options
        return TrainOptions.of({**shared, **own, **variant})


RNNLM, RNNLM_ROLE, HAQAE = (Configuration(model) for model in ("rnnlm", "rnnlm-role", "haqae"))
RNNLM_DOCUMENT, RNNLM_CONTEXT = (Configuration("rnnlm", variant=name) for name in ("document", "context"))
RNNLMS_WITH_VECTOR = (RNNLM_DOCUMENT, RNNLM_CONTEXT)
"""Baselines that are not in the paper; they stand beside the code's SSDVAE, which has a vector too."""
CLASSIFIERS = tuple(Configuration(f"{model}-classifier", single=True) for model in ("rnnlm", "rnnlm-role"))


def ssdvae_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe)


def ssdvae_concatenation_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe, attention="concatenation")


def ssdvae_single_row(observe: float) -> Configuration:
    return Configuration("ssdvae", observe, single=True)


def with_version(row: Configuration, version: Version) -> Configuration:
    """Return a row of SSDVAE as the paper's text has it, or the authors' code."""
    return replace(row, variant="code" if version == "code" else None)


CURVES, ABLATION = "curves", "ablation"

FURTHER_TABLES = {ABLATION: "perplexity"}
"""Tables that show a task on other rows, and the task of each."""


def table_tasks() -> dict[str, Task | None]:
    """Return the tables and the task that is measured for each.

    Every task that is reproduced has a table of its own name. The ablation is a second table of perplexities.
    Learning curves have no task: training leaves them.
    """
    tasks: dict[str, Task | None] = {}
    for name, task in TASKS.items():
        if task.reproduced:
            further = {table: task for table, of in FURTHER_TABLES.items() if of == name}
            tasks |= {name: task, **further}
    return {**tasks, CURVES: None}


def targets() -> dict[str, tuple[str, ...]]:
    """Return the names that `reproduce` takes, and the tables of each."""
    tables = {
        name: (name, *(table for table, of in FURTHER_TABLES.items() if of == name))
        for name in table_tasks()
        if name not in FURTHER_TABLES
    }
    return {**tables, "all": tuple(table_tasks())}


def parse_targets(text: str) -> tuple[str, ...]:
    """Return the tables of one or more targets, comma-separated, each once."""
    known, names = targets(), [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known:
            raise UserError(f"no table {name!r}; there are: {', '.join(known)}")
    return tuple(dict.fromkeys(table for name in names for table in known[name]))


def table_rows(table: str, options: ReproduceOptions) -> list[Configuration]:
    """Return the rows of a table that are of the models in ``options``."""

    def each(row: Callable[[float], Configuration]) -> list[Configuration]:
        """Return a row for every version and ε."""
        return [with_version(row(e), version) for version in options.versions for e in options.observed]

    ssdvae, task = each(ssdvae_row), table_tasks()[table]
    rows: Sequence[Configuration]
    if table == ABLATION:
        rows = [*ssdvae, *each(ssdvae_concatenation_row)]
    elif task is None:
        rows = [HAQAE, *ssdvae]
    elif task.single_events:
        rows = [*CLASSIFIERS, *each(ssdvae_single_row)]
    elif {FRAMES, ATTENTION} & {*task.needs}:
        rows = ssdvae  # the baselines that model words infer no frames
    else:
        further = RNNLMS_WITH_VECTOR if "code" in options.versions else ()
        rows = [RNNLM, *further, RNNLM_ROLE, HAQAE, *ssdvae]
    return [row for row in rows if row.kind in options.model_names]


@dataclass(frozen=True)
class Trial:
    """One run: a configuration, a seed, and the tasks to measure."""

    row: Configuration
    seed: int
    tasks: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return f"{self.row.name}-seed{self.seed}"


def make_trials(tables: Iterable[str], options: ReproduceOptions) -> list[Trial]:
    """Return each trial that these tables need, once. All rows come before the second seed of any."""
    tasks: dict[Configuration, set[str]] = {}
    for table in tables:
        task = table_tasks()[table]
        for row in table_rows(table, options):
            tasks.setdefault(row, set()).update([] if task is None else [task.name])
    if not tasks:
        hint = ""
        if {row.kind for row in RNNLMS_WITH_VECTOR} & options.model_names:
            hint = "\nlanguage models with a vector are in --as code and --as both"
        models = ", ".join(sorted(options.model_names))
        raise UserError(f"no row of these tables is of the models {models}{hint}")
    return [
        Trial(row, seed, frozenset(names))
        for seed in range(1, options.seeds + 1)
        for row, names in tasks.items()
    ]
