"""Runs side by side: mean and deviation over those that differ in nothing but the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from ssdvae.config import TrainSettings
from ssdvae.errors import UserError
from ssdvae.evaluation.tasks import TASKS
from ssdvae.evaluation.tasks.base import Figure
from ssdvae.measurements import read_scores
from ssdvae.runs import Run, distinct


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
        """That of a sample; a single run has none."""
        return stdev(self.values) if len(self.values) > 1 else None

    def text(self, figure: Figure, shown: Callable[[float], str] | None = None) -> str:
        """As a table shows it, or as ``shown`` does."""
        shown = shown or figure.text
        spread = "" if self.deviation is None else f" ± {shown(self.deviation)}"
        return f"{shown(self.mean)}{spread}{self.mark}"


@dataclass(frozen=True)
class Row:
    """One configuration on one set of data."""

    settings: TrainSettings  # of one of its runs
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
    """A row for each configuration, task and data; runs of the same configuration are averaged.

    What another version has measured, under the name of a task that this one does not have, is left out.
    """
    folders = distinct(folders)
    runs = [(folder, *Run(folder).config(), read_scores(folder)) for folder in folders]
    for folder, _, _, measured in runs:
        if not measured:
            raise UserError(f"{folder} was not measured yet: ssdvae evaluate {folder}")
    names = differing([settings for _, _, settings, _ in runs])
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


def differing(settings: Sequence[TrainSettings]) -> list[str]:
    """The settings that are not the same in all runs, other than the seed and the model."""
    names = [name for name in TrainSettings.names() if name not in ("seed", "model")]
    # One that only some of the models have differs among those that have it.
    values = [s.values() for s in settings]
    return [name for name in names if len({str(v[name]) for v in values if name in v}) > 1]


def score_tables(rows: Sequence[Row]) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    """A table for each task and data: its title, its head and its lines."""
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
