"""The figures of all cells that are finished, by row, name and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ssdvae.evaluation.summary import Spread
from ssdvae.evaluation.tasks import find_figure, find_task
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

    def add_curve(self, row: Configuration, curve: Curve) -> None:
        self.curves.setdefault(row, []).append(curve)
        best = best_validation(curve)
        assert best is not None, "a curve has at least one validation"
        self.add(row, "ppl_best", best["ppl"])
        self.add(row, "step_best", best["step"])
        self.add(row, "step_converged", _first_below(curve, CLOSE * best["ppl"]) or best["step"])

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


def read_measured(jobs: Mapping[Cell, Job], cloze_files: Mapping[str, Path]) -> Measured:
    """What the finished cells give."""
    names = {path: name for name, path in cloze_files.items()}
    measured = Measured()
    for cell, job in jobs.items():
        run = Run(job.run)
        if not run.state().finished:
            continue
        for wanted, m in job.measured().items():
            data = CORPUS if wanted.cloze is None else names[wanted.cloze]
            for figure in find_task(wanted.task).figures:
                if m.scores.get(figure.name) is not None:
                    measured.add(cell.row, figure.name, m.scores[figure.name], data, figure.mark(m.scores))
        if (curve := run.curve()) and not cell.row.single:
            measured.add_curve(cell.row, curve)
    measured.add_steps_to_haqae()
    return measured
