"""Scores of runs side by side: mean and deviation over seeds, and published figures to compare with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from ssdvae.evaluation.task import TASKS, Figure
from ssdvae.io.errors import UserError
from ssdvae.io.run import Run, unique_folders
from ssdvae.io.scores import read_scores
from ssdvae.options import differences
from ssdvae.training.options import TrainOptions


@dataclass(frozen=True)
class Spread:
    """One figure of runs that differ in their seed."""

    values: tuple[float, ...]
    mark: str = ""  # stands beside it, wherever it is shown

    @property
    def mean(self) -> float:
        return mean(self.values)

    @property
    def deviation(self) -> float | None:
        """The sample standard deviation; None for a single run."""
        return stdev(self.values) if len(self.values) > 1 else None

    def text(self, figure: Figure, shown: Callable[[float], str] | None = None) -> str:
        """Return mean ± deviation as a table shows it, or as ``shown`` does."""
        shown = shown or figure.text
        spread = "" if self.deviation is None else f" ± {shown(self.deviation)}"
        return f"{shown(self.mean)}{spread}{self.mark}"


@dataclass(frozen=True)
class Row:
    """One configuration on one set of data."""

    settings: TrainOptions  # of one of its runs
    differs: dict[str, Any]  # the settings in which the configurations differ
    task: str
    data: str
    sha256: str  # of the data: two corpora have splits of the same name
    values: dict[str, list[float]]  # by figure, one for each run
    marks: dict[str, str]  # by figure

    @property
    def runs(self) -> int:
        return max(map(len, self.values.values()), default=0)

    def cell(self, figure: Figure, shown: Callable[[float], str] | None = None) -> str:
        values = self.values.get(figure.name, [])
        return Spread(tuple(values), self.marks[figure.name]).text(figure, shown) if values else "–"


def summarize(folders: Sequence[Path]) -> list[Row]:
    """Return a row per configuration, task and data; runs of the same configuration are averaged.

    Scores of tasks that this version does not have are left out.
    """
    folders = unique_folders(folders)
    runs = [(folder, *Run(folder).config(), read_scores(folder)) for folder in folders]
    for folder, _, _, measured in runs:
        if not measured:
            raise UserError(f"{folder} was not measured yet: ssdvae evaluate {folder}")
    names = differences([settings.values() for _, _, settings, _ in runs], ("model", "seed"))
    rows: dict[tuple[Any, ...], Row] = {}
    for _, corpus, settings, measured in runs:
        differs = {name: settings.values().get(name) for name in names}
        for m in (m for m in measured if m.task in TASKS):
            key = (settings.model, corpus, *map(str, differs.values()), m.task, m.data, m.sha256)
            row = rows.setdefault(key, Row(settings, differs, m.task, m.data, m.sha256, {}, {}))
            for figure in TASKS[m.task].figures:
                if m.scores.get(figure.name) is not None:
                    row.values.setdefault(figure.name, []).append(m.scores[figure.name])
                    row.marks[figure.name] = figure.mark(m.scores)
    return list(rows.values())


def score_tables(rows: Sequence[Row]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """Yield the title, head and lines of a table per task and data."""
    for task, data, digest in dict.fromkeys((row.task, row.data, row.sha256) for row in rows):
        mine = [row for row in rows if (row.task, row.data, row.sha256) == (task, data, digest)]
        figures = TASKS[task].figures
        head = ["model", *mine[0].differs, "runs", *(figure.name for figure in figures)]
        lines = [
            [
                row.settings.model,
                *map(str, row.differs.values()),
                str(row.runs),
                *(row.cell(figure) for figure in figures),
            ]
            for row in mine
        ]
        yield f"{task}, {data}", head, lines


@dataclass(frozen=True)
class PublishedFigure:
    """A published figure: the mean over some runs and their standard deviation."""

    table: str
    model: str
    attention: str  # empty for a model that has only one kind
    observe: float | None  # ε; None for a model that observes no frames, or all
    data: str
    split: str
    figure: str
    mean: float
    deviation: float
    printed: str

    def is_of(self, settings: TrainOptions) -> bool:
        """Tell whether a run with these options reproduces this figure."""
        values = settings.values()
        # SSDVAE may have had a vector of the document, but no language model had any.
        vectors = (values.get("document_vector"), values.get("context_vector"))
        added = settings.model != "ssdvae" and any(vectors)
        return (
            not added
            and self.model == settings.model
            and self.attention in ("", values.get("attention"))
            and self.observe in (None, settings.observe)
        )


@dataclass(frozen=True)
class Published:
    """The figures of one publication."""

    source: str
    tables: Mapping[str, str]  # how each table is cited
    data: str  # the data on which runs are compared: the others are read beside it
    note: str  # what the figures are, and what cannot be compared with them
    figures: tuple[PublishedFigure, ...]

    def counterpart(
        self, settings: TrainOptions, figure: str, split: str, data: str | None = None
    ) -> PublishedFigure | None:
        """Return the figure for such a run; None where there is none."""
        wanted = (figure, data or self.data, split)
        found = (p for p in self.figures if (p.figure, p.data, p.split) == wanted and p.is_of(settings))
        return next(found, None)
