"""The figures of all cells that are finished, by row, name and data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ssdvae.evaluation.summary import FIGURES, Spread
from ssdvae.paper.grid import HAQAE, Cell, Configuration
from ssdvae.paper.job import Job
from ssdvae.runs import Run

CORPUS = "corpus"
"""The data that is not a cloze file of its own."""

CLOSE = 1.05
"""A run has converged when its perplexity is within this factor of its own best."""

Curve = list[dict[str, Any]]
"""The validations of a run."""


@dataclass
class Measured:
    values: dict[tuple[Configuration, str, str], list[float]] = field(default_factory=dict)
    curves: dict[Configuration, list[Curve]] = field(default_factory=dict)

    def add(self, row: Configuration, figure: str, value: float, data: str = CORPUS) -> None:
        self.values.setdefault((row, figure, data), []).append(value)

    def get(self, row: Configuration, figure: str, data: str = CORPUS) -> Spread | None:
        """The figure over seeds; None if no run has it."""
        values = self.values.get((row, figure, data))
        return Spread(tuple(values)) if values else None

    def add_curve(self, row: Configuration, curve: Curve) -> None:
        self.curves.setdefault(row, []).append(curve)
        best = min(curve, key=lambda record: float(record["ppl"]))
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
            for figure in FIGURES[wanted.task]:
                if m.scores.get(figure) is not None:
                    measured.add(cell.row, figure, m.scores[figure], data)
        curve = [r for r in run.metrics() if r["split"] == "valid" and r.get("ppl") is not None]
        if curve and not cell.row.single:
            measured.add_curve(cell.row, curve)
    measured.add_steps_to_haqae()
    return measured
