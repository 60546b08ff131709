"""The figures of finished cells as one small file, so that a sweep can go on without their run folders.

``tables/cells.csv`` has a line for each figure of each cell. With `--cells FILE`, what such a file has is not
run again. A fingerprint says what each cell was made with: one that was made otherwise is refused.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae.config.settings import Setting, Settings
from ssdvae.data.corpus import Corpus
from ssdvae.errors import DataError
from ssdvae.evaluation.tasks import find_task
from ssdvae.files import atomic_write, check_exists, translate_os_errors
from ssdvae.paper.grid import Cell
from ssdvae.paper.job import Job
from ssdvae.paper.measured import CORPUS, VALIDATION, CellFigure, cell_figures
from ssdvae.training.train import HARMLESS

HEAD = ("cell", "made_with", "data", "figure", "value", "mark")

WHAT = ("split", "tasks", "cloze", "events")
"""Settings of a measurement that say what is measured, and not how."""


Names = Mapping[Path, str]
"""What cloze files are called."""


def made_with(job: Job, names: Names, data: str = CORPUS) -> str:
    """A fingerprint of all that the figures of a cell on some data depend on.

    Settings at their defaults are left out: one that a later version adds changes nothing.
    """
    training, model, measuring = job.training, job.training.model_settings, job.measuring
    parts = {
        "kind": training.model,
        "training": _departures(training, training.training_table(), HARMLESS),
        "model": _departures(model, model.table(), HARMLESS),
        "measuring": _departures(measuring, measuring.table(), WHAT),
        "split": measuring.split,
        "corpus": Corpus(job.corpus).fingerprint,
    }
    if (file := _cloze_files(job, names).get(data)) is not None:
        parts["cloze"] = file
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _departures(settings: Settings, table: Mapping[str, Setting], left_out: Iterable[str]) -> dict[str, Any]:
    """Settings that are not the default; of a path, the name."""
    found = {}
    for name, definition in table.items():
        value = getattr(settings, name)
        if name not in left_out and value != definition.default:
            found[name] = value.name if isinstance(value, Path) else value
    return found


def _cloze_files(job: Job, names: Names) -> dict[str, str]:
    """The fingerprints of the cloze files that are asked for, by name."""
    return {names[w.cloze]: w.sha256 for w in job.wanted if w.cloze is not None}


@dataclass(frozen=True)
class Line:
    """A figure, and what it was made with."""

    figure: CellFigure
    made_with: str


@dataclass(frozen=True)
class Kept:
    """What a file has of cells that were made elsewhere."""

    path: Path
    cells: Mapping[str, tuple[Line, ...]]  # by name

    @classmethod
    def read(cls, path: Path) -> Kept:
        check_exists(path)
        cells: dict[str, list[Line]] = {}
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
                cells.setdefault(name, []).append(Line(found, made))
        return cls(path, {name: tuple(lines) for name, lines in cells.items()})

    def made_otherwise(self, cell: Cell, job: Job, names: Names) -> str | None:
        """In what a cell of the file is not the one that is asked for, if it is not."""
        files = _cloze_files(job, names)
        asked = {data: made_with(job, names, data) for data in (CORPUS, *files)}
        for line in self.cells.get(cell.name, ()):
            data = CORPUS if line.figure.figure == VALIDATION else line.figure.data
            # What is not asked for cannot be told, and is not shown.
            if data in asked and line.made_with != asked[data]:
                other = f"another file {data}, or other settings" if data in files else "other settings"
                return f"{self.path}: {cell.name} was made with {other} or another corpus"
        return None

    def covers(self, cell: Cell, job: Job, names: Names) -> bool:
        """Whether all that is wanted of a cell is there."""
        there = {(line.figure.figure, line.figure.data) for line in self.cells.get(cell.name, ())}
        return bool(there) and all(
            any(
                (figure.name, CORPUS if wanted.cloze is None else names[wanted.cloze]) in there
                for figure in find_task(wanted.task).figures
            )
            for wanted in job.wanted
        )


def write_cells(path: Path, jobs: Mapping[Cell, Job], names: Names, kept: Kept | None) -> None:
    """The figures of all cells that are finished, here or elsewhere; those that were not asked for, too."""
    cells = dict(kept.cells) if kept is not None else {}
    cells |= {cell.name: all_lines(cell, job, names, kept) for cell, job in jobs.items()}
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for name, lines in sorted(cells.items()):
            for line in lines:
                f = line.figure
                writer.writerow([name, line.made_with, f.data, f.figure, repr(float(f.value)), f.mark])


def all_lines(cell: Cell, job: Job, names: Names, kept: Kept | None) -> tuple[Line, ...]:
    """What is known of a cell: from its run, and what only the file has."""
    figures = list(cell_figures(cell, job, names))
    made = {data: made_with(job, names, data) for data in {CORPUS, *_cloze_files(job, names)} if figures}
    own = [Line(f, made.get(f.data, made[CORPUS])) for f in figures]
    there = {(f.figure, f.data) for f in figures}
    validated = any(f.figure == VALIDATION for f in figures)
    return (
        *own,
        *(
            line
            for line in (kept.cells.get(cell.name, ()) if kept is not None else ())
            if (line.figure.figure, line.figure.data) not in there
            # Two runs of a cell may have stopped at different steps: one learning curve is one run's.
            and not (validated and line.figure.figure == VALIDATION)
        ),
    )
