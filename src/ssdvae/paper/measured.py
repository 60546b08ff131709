"""The figures of all cells that are finished, by row, name and data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ssdvae.evaluation.summary import Spread
from ssdvae.evaluation.tasks import find_figure, find_task, mark_of
from ssdvae.evaluation.tasks.base import Figure
from ssdvae.paper.grid import HAQAE, Cell, Configuration
from ssdvae.paper.job import Job
from ssdvae.runs import Record, Run, best_validation

CORPUS = "corpus"
"""The data that is not a cloze file of its own."""

CLOSE = 1.05
"""A run has converged when its perplexity is within this factor of its own best."""

Curve = list[Record]
"""The validations of a run."""

CURVE_FIGURES = (
    Figure("ppl_best", "best validation ppl", "lower", digits=2),
    Figure("step_best", "step of the best", "lower", digits=0),
    Figure("step_converged", "step converged", "lower", digits=0),
    Figure("step_haqae", "step at HAQAE's best", "lower", digits=0),
)
"""What is read off learning curves."""


def figure_named(name: str) -> Figure:
    """A figure of a task, or of the learning curves."""
    found = find_figure(name) or next((f for f in CURVE_FIGURES if f.name == name), None)
    assert found is not None, name
    return found


VALIDATION = "validation_ppl"
"""A point of a learning curve, as a figure of its cell."""


@dataclass(frozen=True)
class CellFigure:
    """One figure of one cell; ``data`` of a validation is when it was, as ``step:epoch``."""

    figure: str
    data: str
    value: float
    mark: str = ""

    @classmethod
    def of_validation(cls, record: Record) -> CellFigure:
        when = f"{record['step']}:{record['epoch']:g}"
        return cls(VALIDATION, when, record["ppl"], mark_of("ppl", record))

    def validation(self) -> Record:
        step, _, epoch = self.data.partition(":")
        return {"step": int(step), "epoch": float(epoch), "ppl": self.value}


@dataclass
class Measured:
    values: dict[tuple[Configuration, str, str], list[float]] = field(default_factory=dict)
    marks: dict[tuple[Configuration, str, str], str] = field(default_factory=dict)
    curves: dict[Configuration, list[Curve]] = field(default_factory=dict)

    def add(self, row: Configuration, figure: str, value: float, data: str = CORPUS, mark: str = "") -> None:
        self.values.setdefault((row, figure, data), []).append(value)
        self.marks[row, figure, data] = mark

    def get(self, row: Configuration, figure: str, data: str = CORPUS) -> Spread | None:
        """The figure over seeds; None if no run has it."""
        values = self.values.get((row, figure, data))
        return Spread(tuple(values), self.marks[row, figure, data]) if values else None

    def add_cell(self, row: Configuration, figures: Iterable[CellFigure]) -> None:
        curve = []
        for f in figures:
            if f.figure == VALIDATION:
                curve.append(f.validation())
            else:
                self.add(row, f.figure, f.value, f.data, f.mark)
        if curve:
            self.curves.setdefault(row, []).append(curve)

    def add_steps_to_haqae(self) -> None:
        """When each run was first as good as HAQAE ever was; a run that never was has no such figure."""
        if (goal := self.get(HAQAE, "ppl_best")) is None:
            return
        for row, curves in self.curves.items():
            for curve in curves:
                if (step := _first_below(curve, goal.mean)) is not None:
                    self.add(row, "step_haqae", step)


def _first_below(curve: Curve, perplexity: float) -> int | None:
    return next((record["step"] for record in curve if record["ppl"] <= perplexity), None)


def cell_figures(cell: Cell, job: Job, names: Mapping[Path, str]) -> Iterator[CellFigure]:
    """What the run of a cell gives, if it is finished; ``names`` are those of cloze files."""
    if not Run(job.run).state().finished:
        return
    for wanted, m in job.measured().items():
        data = CORPUS if wanted.cloze is None else names[wanted.cloze]
        for figure in find_task(wanted.task).figures:
            if m.scores.get(figure.name) is not None:
                yield CellFigure(figure.name, data, m.scores[figure.name], figure.mark(m.scores))
    # Those of single events are not compared.
    curve = [] if cell.row.single else list(Run(job.run).curve())
    yield from curve_figures(curve)
    yield from map(CellFigure.of_validation, curve)


def curve_figures(curve: Curve) -> Iterator[CellFigure]:
    """What a learning curve says by itself."""
    if (best := best_validation(curve)) is not None:
        converged = _first_below(curve, CLOSE * best["ppl"]) or best["step"]
        yield CellFigure("ppl_best", CORPUS, best["ppl"], mark_of("ppl", best))
        yield CellFigure("step_best", CORPUS, best["step"])
        yield CellFigure("step_converged", CORPUS, converged)
