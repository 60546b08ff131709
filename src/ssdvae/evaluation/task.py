"""The interface of evaluation tasks, and the table of them.

A task is a ``Task`` in a module beside this one, a line in ``TASKS``, and its name in the help of
``--tasks`` (``options.py``): its figures, what it needs of a model, the data that it is measured on, and a
function that measures. ``evaluate``, ``scores``, the report and ``reproduce`` read the table; modules are
imported on first use, since most import torch.
"""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ssdvae.data.events import SLOTS
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.io.errors import UserError
from ssdvae.io.files import sha256
from ssdvae.models.options import ModelOptions

if TYPE_CHECKING:
    from ssdvae.data.batches import Batch
    from ssdvae.data.corpus import Corpus, ItemKind
    from ssdvae.evaluation.measure import Evaluation
    from ssdvae.models.base import Model
    from ssdvae.models.latents import FramePosterior


@dataclass(frozen=True)
class Floor:
    """Another score of the same measurement, as a baseline of a figure."""

    score: str
    title: str


@dataclass(frozen=True)
class Figure:
    """One number that a task gives, and its presentation."""

    name: str  # its key in scores.json
    title: str  # the head of a column
    better: Literal["lower", "higher"] | None = None
    digits: int = 3  # after the point
    share: bool = False  # from 0 to 1: shown in per cent where it stands alone
    paper: str | None = None  # the paper's table that has it
    compared: bool = True  # `reproduce` has a column for it
    headline: str | None = None  # its name at the top of the page; None for a figure that is not shown there
    floor: Floor | None = None  # a baseline that needs no model
    note: str | None = None  # its meaning, in a few words
    marked_by: str | None = None  # the score that is 1 if the figure is to be marked

    def mark(self, scores: Mapping[str, Any]) -> str:
        """Return † if the score conditions on the words that it predicts (not a valid perplexity)."""
        return " †" if self.marked_by is not None and scores.get(self.marked_by) else ""

    def text(self, value: float) -> str:
        """Return a value as tables show it; a zero has no sign."""
        return f"{value:z.{self.digits}f}"

    def headline_text(self, value: float) -> str:
        """Return a value as it is shown by itself."""
        return f"{100 * value:.1f}\N{NO-BREAK SPACE}%" if self.share else self.text(value)


@dataclass(frozen=True)
class Need:
    """A capability of models."""

    name: str
    met_by: Callable[[Model], bool]


# WORDS is for surprisals and forecasts, LIKELIHOOD for sums over documents (not with a document vector).
WORDS = Need("probabilities of words", lambda model: _is(model, "LanguageModel"))
LIKELIHOOD = Need("likelihood of whole documents", lambda model: bool(getattr(model, "has_elbo", False)))
FRAMES = Need("inferred frames", lambda model: _is(model, "FrameModel") and len(model.frames) > 0)
ATTENTION = Need("attention over words", lambda model: _is(model, "Attentive"))


def _is(model: Any, interface: str) -> bool:
    from ssdvae.models import base  # slow to import

    return isinstance(model, getattr(base, interface))


@dataclass(frozen=True)
class Data:
    """The data that a task is measured on."""

    name: str  # the split or the file, and the way of scoring if it is not the default
    sha256: str
    path: Path


@dataclass(frozen=True)
class Result:
    """The result of a task."""

    items: int  # documents, events or questions behind the figures
    scores: dict[str, Any]
    details: list[dict[str, Any]] | None = None  # one record for each item


class Observer(Protocol):
    """Receives the posterior of every batch of the split."""

    def add(self, posterior: FramePosterior, batch: Batch) -> None: ...


def split_data(corpus: Corpus, settings: EvaluateOptions) -> Data:
    """Return the split as data; cut documents are other data than whole ones."""
    file, name = f"{settings.split}.arrow", str(settings.split)
    if settings.events and settings.events < corpus.longest(settings.split):
        name += f", first {settings.events} event{'s' if settings.events > 1 else ''}"
    return Data(name, corpus.split_fingerprint(settings.split), corpus.folder / file)


def file_data(task: str, path: Path | None, corpus: Corpus, settings: EvaluateOptions) -> Data | None:
    """Return a file of triples as data; None without one, or an error if nothing else is measured."""
    if path is None:
        if settings.task_names == (task,):
            raise UserError(f"{task} is measured on a file: name it by --{task}; `ssdvae data get` has some")
        return None
    if corpus.slots != SLOTS:
        found = f"--{task}: found a corpus with the slots {', '.join(corpus.slots)}"
        raise UserError(
            f"{found}, expected {', '.join(SLOTS)}: the set has events of subject, verb and object"
        )
    return Data(str(path), sha256(path), path)


def item_data(kind: ItemKind, corpus: Corpus, settings: EvaluateOptions) -> Data | None:
    """Return the items of the split as data; None without, or an error if nothing else is measured."""
    if not corpus.has_items(kind, settings.split) and settings.task_names != (kind,):
        return None
    path = corpus.items(kind, settings.split)
    return Data(str(settings.split), sha256(path), path)


def _nothing_to_refuse(config: ModelOptions, settings: EvaluateOptions) -> None:
    pass


@dataclass(frozen=True)
class Task:
    """An evaluation task.

    ``run(evaluation, data)`` measures: on ``evaluation.documents``, the split, or on the file ``data.path``
    if ``data`` names one; tasks on the split need no ``data``. It returns None if there is nothing to
    measure. ``data`` returns None if the corpus has nothing for the task. ``check`` refuses options that do
    not fit the model.

    Tasks share one pass over the split, ``Evaluation.split_pass``. ``observer`` makes what receives the
    posteriors of frame models, and ``scores_words`` asks that the pass scores the words too.
    """

    name: str
    title: str
    explanation: str  # how to read the figures
    figures: tuple[Figure, ...]  # those that tables show
    run: Callable[[Evaluation, Data], Result | None]
    needs: tuple[Need, ...] = ()
    settings: tuple[str, ...] = field(default=(), kw_only=True)  # options that change its figures
    default: bool = field(default=False, kw_only=True)  # measured if no task is named
    data: Callable[[Corpus, EvaluateOptions], Data | None] = field(default=split_data, kw_only=True)
    check: Callable[[ModelOptions, EvaluateOptions], None] = field(default=_nothing_to_refuse, kw_only=True)
    observer: Callable[[Model], Observer] | None = field(default=None, kw_only=True)
    scores_words: bool = field(default=False, kw_only=True)
    has_details: bool = field(default=False, kw_only=True)  # results have one record per item
    takes_cloze_files: bool = field(default=False, kw_only=True)  # measured on --cloze files, too
    reproduced: bool = field(default=False, kw_only=True)  # `reproduce` has a table for it, and names it
    single_events: bool = field(default=False, kw_only=True)  # the paper measures it on single events

    def missing(self, model: Model) -> list[str]:
        """Return the names of the capabilities that the model lacks."""
        return [need.name for need in self.needs if not need.met_by(model)]


class TaskTable(UserDict[str, Task]):
    """Tasks by name; a module stands in the place of its task until that is used."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        super().__init__()
        self.data: dict[str, Any] = dict(modules)

    def __getitem__(self, name: str) -> Task:
        if isinstance(self.data[name], str):
            module, _, attribute = self.data[name].partition(":")
            self.data[name] = getattr(import_module(f"ssdvae.evaluation.{module}"), attribute or "TASK")
        task: Task = self.data[name]
        return task


TASKS = TaskTable(
    {
        "perplexity": "perplexity",
        "frames": "frames",
        "cloze": "cloze",
        "next": "next_event",
        "time": "times",
        "mcnc": "choices:MCNC",
        "similarity": "similarity",
        "masked": "choices:MASKED",
        "order": "choices:ORDER",
        "attention": "attention",
        "scripts": "scripts",
    }
)


def find_task(name: str) -> Task:
    """Return the task of this name."""
    if name not in TASKS:
        raise UserError(f"no task {name!r}; there are: {', '.join(TASKS)}")
    return TASKS[name]


def find_tasks(names: Sequence[str] | None) -> list[Task]:
    """Return the tasks of these names, or the default ones; each once, in the order of the table."""
    if names is None:
        return [task for task in TASKS.values() if task.default]
    chosen = {find_task(name).name for name in names}
    if not chosen:
        raise UserError(f"no task is named; there are: {', '.join(TASKS)}")
    return [TASKS[name] for name in TASKS if name in chosen]


def find_figure(name: str) -> Figure | None:
    """Return a figure of any task by its name."""
    return next((f for task in TASKS.values() for f in task.figures if f.name == name), None)


def mark_of(name: str, scores: Mapping[str, Any]) -> str:
    """Return the mark that is shown beside a figure."""
    figure = find_figure(name)
    return "" if figure is None else figure.mark(scores)
