"""What an evaluation task is.

A task is a file beside this one and a line in ``TASKS``: its figures, what it needs of a model, the data that
it is measured on, and a function that measures. All that shows tasks reads that table.

``ssdvae --help`` reads it too. So a task's file imports nothing heavy at its top: what computes the figures
is imported where it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from ssdvae.config import SLOTS, EvaluateSettings, ModelSettings
from ssdvae.errors import UserError
from ssdvae.files import sha256

if TYPE_CHECKING:
    from ssdvae.data.batches import Batch
    from ssdvae.data.corpus import Corpus, ItemKind
    from ssdvae.evaluation.measure import Evaluation
    from ssdvae.models.base import FramePosterior, Model


@dataclass(frozen=True)
class Floor:
    """Another score of the same measurement, that a figure is to be held against."""

    score: str
    title: str


@dataclass(frozen=True)
class Figure:
    """One number that a task gives, and how it is shown."""

    name: str  # its key in scores.json
    title: str  # the head of a column
    better: Literal["lower", "higher"] | None = None
    digits: int = 3  # after the point
    share: bool = False  # from 0 to 1: shown in per cent where it stands alone
    paper: str | None = None  # the paper's table that has it
    compared: bool = True  # whether `reproduce` has a column for it
    headline: str | None = None  # its name at the top of the page; None for a figure that is not shown there
    floor: Floor | None = None  # what no model is needed for
    note: str | None = None  # what it says, in a few words
    marked_by: str | None = None  # the score that tells, by 1, that the figure is to be marked

    def mark(self, scores: Mapping[str, Any]) -> str:
        """† where the model has read the words that it predicts, and nothing pays for that."""
        return " †" if self.marked_by is not None and scores.get(self.marked_by) else ""

    def text(self, value: float) -> str:
        """As a table shows it; a zero has no sign."""
        return f"{value:z.{self.digits}f}"

    def headline_text(self, value: float) -> str:
        """As it is shown by itself."""
        return f"{100 * value:.1f}\N{NO-BREAK SPACE}%" if self.share else self.text(value)


@dataclass(frozen=True)
class Need:
    """Something that a model has or does not have."""

    name: str
    met_by: Callable[[Model], bool]


WORDS = Need("probabilities of words", lambda model: _is(model, "LanguageModel"))
LIKELIHOOD = Need("likelihood of whole documents", lambda model: bool(getattr(model, "has_elbo", False)))
FRAMES = Need("inferred frames", lambda model: _is(model, "FrameModel") and len(model.frames) > 0)
ATTENTION = Need("attention over words", lambda model: _is(model, "Attentive"))


def _is(model: Any, interface: str) -> bool:
    from ssdvae.models import base  # slow to import, and `ssdvae --help` reads the table of tasks

    return isinstance(model, getattr(base, interface))


@dataclass(frozen=True)
class Data:
    """What a task is measured on."""

    name: str  # the split, or the file; and how it was scored, if not as usual
    sha256: str
    path: Path


@dataclass(frozen=True)
class Result:
    """What a task found."""

    items: int  # documents, events or questions behind the figures
    scores: dict[str, Any]
    details: list[dict[str, Any]] | None = None  # one record for each item


class Observer(Protocol):
    """Sees what the model infers of every batch of the split."""

    def add(self, beliefs: FramePosterior, batch: Batch) -> None: ...


def split_data(corpus: Corpus, settings: EvaluateSettings) -> Data:
    """The documents of the split; those that are cut are other data than whole ones."""
    file, name = f"{settings.split}.arrow", str(settings.split)
    if settings.events and settings.events < corpus.longest(settings.split):
        name += f", first {settings.events} event{'s' if settings.events > 1 else ''}"
    return Data(name, corpus.split_fingerprint(settings.split), corpus.folder / file)


def file_data(task: str, path: Path | None, corpus: Corpus, settings: EvaluateSettings) -> Data | None:
    """A file of triples that a setting names; None without one, or an error if nothing else is measured."""
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


def item_data(kind: ItemKind, corpus: Corpus, settings: EvaluateSettings) -> Data | None:
    """The items that `prepare` made of the split; None without, or an error if nothing else is measured."""
    if not corpus.has_items(kind, settings.split) and settings.task_names != (kind,):
        return None
    path = corpus.items(kind, settings.split)
    return Data(str(settings.split), sha256(path), path)


def _nothing_to_refuse(config: ModelSettings, settings: EvaluateSettings) -> None:
    pass


@dataclass(frozen=True)
class Task:
    """One thing that is measured of a model.

    ``data`` says what it is measured on; None if the corpus has nothing for it. ``check`` refuses settings
    that such a model cannot be measured with. ``run`` measures; None if there was nothing to measure.

    Several tasks share one pass over the split, ``Evaluation.split_pass``. ``observer`` makes what is to see
    the batches of that pass, and ``scores_words`` asks it to score the words too.
    """

    name: str
    title: str
    explanation: str  # how to read the figures
    figures: tuple[Figure, ...]  # those that tables show
    run: Callable[[Evaluation, Data], Result | None]
    needs: tuple[Need, ...] = ()
    settings: tuple[str, ...] = field(default=(), kw_only=True)  # of `evaluate`, that change the figures
    default: bool = field(default=True, kw_only=True)  # measured if no task is named
    data: Callable[[Corpus, EvaluateSettings], Data | None] = field(default=split_data, kw_only=True)
    check: Callable[[ModelSettings, EvaluateSettings], None] = field(default=_nothing_to_refuse, kw_only=True)
    observer: Callable[[Model], Observer] | None = field(default=None, kw_only=True)
    scores_words: bool = field(default=False, kw_only=True)
    has_details: bool = field(default=False, kw_only=True)  # whether its results have one record an item
    takes_cloze_files: bool = field(default=False, kw_only=True)  # measured on --cloze files, too
    reproduced: bool = field(default=True, kw_only=True)  # whether `reproduce` has a table for it
    single_events: bool = field(default=False, kw_only=True)  # the paper measures it on single events

    def can(self, model: Model) -> bool:
        """Whether the model has all that the task needs."""
        return not self.missing(model)

    def missing(self, model: Model) -> list[str]:
        """What the task needs and the model does not have."""
        return [need.name for need in self.needs if not need.met_by(model)]
