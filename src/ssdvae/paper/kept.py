"""The figures of finished cells as one small file, so that a sweep can go on without their run folders.

``tables/cells.csv`` has a line for each figure of each cell. With `--cells FILE`, what such a file has is not
run again. A fingerprint says what each cell was made with: one that was made otherwise is refused.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae.config.settings import Settings
from ssdvae.data.corpus import Corpus
from ssdvae.errors import DataError, UserError
from ssdvae.evaluation.tasks import find_task
from ssdvae.files import atomic_write, check_exists, translate_os_errors
from ssdvae.paper.grid import Cell
from ssdvae.paper.job import Job
from ssdvae.paper.measured import CORPUS, VALIDATION, CellFigure, cell_figures
from ssdvae.training.train import HARMLESS

HEAD = ("cell", "made_with", "data", "figure", "value", "mark")

WHAT = ("split", "tasks", "cloze", "events")
"""Settings of a measurement that say what is measured, and not how."""


def made_with(job: Job) -> str:
    """A fingerprint of all that the figures of a cell depend on.

    Settings at their defaults are left out: one that a later version adds changes nothing.
    """
    parts = {
        "training": _departures(job.training, HARMLESS),
        "model": _departures(job.training.model_settings, HARMLESS),
        "measuring": _departures(job.measuring, WHAT),
        "split": job.measuring.split,
        "corpus": Corpus(job.corpus).fingerprint,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _departures(settings: Settings, left_out: Iterable[str]) -> dict[str, Any]:
    """Settings that are not the default; of a path, the name."""
    found = {}
    for name, definition in settings.table().items():
        value = getattr(settings, name, None)
        if name not in left_out and value != definition.default:
            found[name] = value.name if isinstance(value, Path) else value
    return found


@dataclass(frozen=True)
class Kept:
    """What a file has of cells that were made elsewhere."""

    path: Path
    cells: Mapping[str, tuple[str, tuple[CellFigure, ...]]]  # by name: what it was made with, and its figures

    @classmethod
    def read(cls, path: Path) -> Kept:
        check_exists(path)
        cells: dict[str, tuple[str, tuple[CellFigure, ...]]] = {}
        with translate_os_errors(path, "read"), path.open(encoding="utf-8", newline="") as file:
            for number, row in enumerate(csv.reader(file), start=1):
                if number == 1:
                    if tuple(row) != HEAD:
                        raise DataError(path, 1, ",".join(row), ",".join(HEAD))
                    continue
                try:
                    name, made, data, figure, value, mark = row
                    found = CellFigure(figure, data, float(value), mark)
                    if figure == VALIDATION:
                        found.validation()  # which says whether it can be read
                except ValueError:
                    expected = f"{len(HEAD)} columns, a number; of {VALIDATION} its step:epoch as data"
                    raise DataError(path, number, ",".join(row), expected) from None
                before = cells.get(name, (made, ()))
                if before[0] != made:
                    raise DataError(path, number, f"{name} made with {made}", before[0])
                cells[name] = (made, (*before[1], found))
        return cls(path, cells)

    def figures(self, cell: Cell, job: Job) -> tuple[CellFigure, ...]:
        """Those of a cell; none if the file does not have it."""
        if cell.name not in self.cells:
            return ()
        made, figures = self.cells[cell.name]
        if made != made_with(job):
            raise UserError(
                f"{self.path}: {cell.name} was made with other settings or another corpus\n"
                "ask for the same, or leave out --cells"
            )
        return figures

    def covers(self, cell: Cell, job: Job, names: Mapping[Path, str]) -> bool:
        """Whether all that is wanted of a cell is there; ``names`` are those of cloze files."""
        there = {(figure.figure, figure.data) for figure in self.figures(cell, job)}
        return bool(there) and all(
            any(
                (figure.name, CORPUS if wanted.cloze is None else names[wanted.cloze]) in there
                for figure in find_task(wanted.task).figures
            )
            for wanted in job.wanted
        )


def write_cells(path: Path, jobs: Mapping[Cell, Job], names: Mapping[Path, str], kept: Kept | None) -> None:
    """The figures of all cells that are finished, here or elsewhere; those that were not asked for, too."""
    cells = dict(kept.cells) if kept is not None else {}
    for cell, job in jobs.items():
        if figures := all_figures(cell, job, names, kept):
            cells[cell.name] = made_with(job), figures
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for name, (made, figures) in sorted(cells.items()):
            for f in figures:
                writer.writerow([name, made, f.data, f.figure, repr(float(f.value)), f.mark])


def all_figures(cell: Cell, job: Job, names: Mapping[Path, str], kept: Kept | None) -> tuple[CellFigure, ...]:
    """What is known of a cell: from its run, and what only the file has."""
    own = tuple(cell_figures(cell, job, names))
    there = {(f.figure, f.data) for f in own}
    return (*own, *(f for f in _kept(cell, job, kept) if (f.figure, f.data) not in there))


def _kept(cell: Cell, job: Job, kept: Kept | None) -> Iterator[CellFigure]:
    if kept is not None:
        yield from kept.figures(cell, job)
