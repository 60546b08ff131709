"""``ssdvae reproduce``: from a corpus to the paper's tables and what becomes of its claims."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae.config import EvaluateSettings, ReproduceSettings, TrainSettings
from ssdvae.data.cloze import read_cloze
from ssdvae.data.corpus import Corpus
from ssdvae.data.reading import Reading
from ssdvae.data.single import single_events
from ssdvae.errors import UserError
from ssdvae.evaluation.measure import as_trained
from ssdvae.evaluation.tasks import find_task
from ssdvae.evaluation.tasks.base import Task
from ssdvae.files import atomic_write, check_exists
from ssdvae.paper.cells import Cells
from ssdvae.paper.claims import Verdict, verdicts
from ssdvae.paper.evidence import Evidence
from ssdvae.paper.figures import SOURCE
from ssdvae.paper.grid import Cell, asked_for, grid, tables
from ssdvae.paper.job import Job, Wanted
from ssdvae.paper.kept import Kept, all_lines, write_cells
from ssdvae.paper.measured import Measured
from ssdvae.paper.places import open_places
from ssdvae.paper.render import FORMATS, Table, html
from ssdvae.paper.sweep import exclusive_lock, sweep
from ssdvae.paper.tables import Context, all_tables
from ssdvae.progress import SILENT, Progress
from ssdvae.report.figures import learning_curves
from ssdvae.report.html import Section, join
from ssdvae.report.page import write_page
from ssdvae.report.runs import read_runs
from ssdvae.report.setup import data_table, runs_table
from ssdvae.runs import Run
from ssdvae.training.train import differing

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reproduced:
    """What a sweep leaves: the tables are in ``folder``, with the page about them."""

    folder: Path
    tables: list[Table]
    verdicts: list[Verdict]


def reproduce(
    what: str,
    corpus: Corpus,
    out: Path,
    settings: ReproduceSettings,
    training: Mapping[str, Any],
    measuring: EvaluateSettings,
    progress: Progress = SILENT,
    watch: Callable[[Cells], None] | None = None,
) -> Reproduced:
    """Make the runs behind some tables, as far as they are not there, and then the tables.

    ``training`` are settings for all runs, of which each model takes those that it has. ``watch`` is shown
    the state of the sweep again and again.
    """
    shared = TrainSettings.of(training)
    if corpus.manifest["splits"]["train"]["frameless_events"]:
        log.warning(
            f"{corpus.folder} has events without a frame, which the paper drops\n"
            "to compare with its figures: ssdvae prepare --drop-unlabelled"
        )
    asked = asked_for(what)
    measuring = dataclasses.replace(measuring, split=settings.split, cloze=None)
    names = _possible(asked, corpus, settings, measuring)
    cells = grid(names, settings)
    if shared.vectors is not None:
        check_exists(shared.vectors)
    for path in settings.cloze_files.values():
        read_cloze(path)  # a mistake in it is better known before training
    with exclusive_lock(out) as lock:
        single = out / "single-events"
        corpora = {False: corpus}
        if any(cell.row.single for cell in cells) or single.exists():
            corpora[True] = single_events(corpus, single)
        prepared = _Prepared(corpora, out, settings, training, measuring)
        jobs = prepared.jobs(cells)
        for job in jobs.values():
            refuse_if_other(job)
            for wanted in job.wanted:
                find_task(wanted.task).check(job.training.model_settings, job.measuring)
        kept = None if settings.cells is None else Kept.read(settings.cells)
        for cell, job in jobs.items():
            if kept and (other := kept.made_otherwise(cell, job, settings.cloze_names)):
                raise UserError(f"{other}\nask for the same, or leave out --cells")
        left = {
            cell: job
            for cell, job in jobs.items()
            if not job.finished() and not (kept and kept.covers(cell, job, settings.cloze_names))
        }
        # What an earlier sweep has left for other tables and models speaks for or against the claims, too.
        every = grid(asked_for("all"), dataclasses.replace(settings, models=None))
        known = prepared.jobs(cell for cell in every if cell.row.single in corpora)
        known = {
            cell: job
            for cell, job in known.items()
            if not differences(job) and not (kept and kept.made_otherwise(cell, job, settings.cloze_names))
        }
        outcome = _Outcome(names, known, out, Context(settings, shared, corpus), kept)
        failed: dict[Cell, str] = {}
        if left:
            with open_places(settings, len(left), lock) as (places, start):
                state = Cells(left, [cell for cell in jobs if cell not in left], len(places))
                after = outcome.write_tables
                failed = sweep(left, out / "logs", places, start, state, after, progress, watch)
        result = outcome.write_tables()
        outcome.write_page(result)
    if failed:
        many = f"{len(failed)} of {len(jobs)} cells failed; the tables are without them"
        raise UserError("\n".join([*failed.values(), many]))
    return result


def _possible(
    names: Sequence[str], corpus: Corpus, settings: ReproduceSettings, measuring: EvaluateSettings
) -> list[str]:
    """The tables without those that there are no data for; if it is the only one, an error."""
    possible = []
    for name in names:
        task = tables()[name]
        if task is None or list(wanted_data(task, corpus, settings, measuring)):
            possible.append(name)
        elif len(names) == 1:
            task.data(corpus, dataclasses.replace(measuring, tasks=task.name))  # which says what to do
            raise UserError(f"{corpus.folder} has no data for {task.name}")
        else:
            missing = f"{corpus.folder} has no {name} data for the split {settings.split!r}"
            log.warning(f"{missing}: that table is left out")
    return possible


def wanted_data(
    task: Task, corpus: Corpus, settings: ReproduceSettings, measuring: EvaluateSettings
) -> Iterator[Wanted]:
    """What a task is to be measured on: the data of the corpus, and cloze files if it takes them."""
    files = settings.cloze_files.values() if task.takes_cloze_files else ()
    for path in (None, *files):
        if (data := task.data(corpus, dataclasses.replace(measuring, cloze=path))) is not None:
            yield Wanted(task.name, data.sha256, path)


@dataclass(frozen=True)
class _Prepared:
    """What it takes to make a job of a cell."""

    corpora: Mapping[bool, Corpus]  # that of documents and, where it is needed, that of single events
    out: Path
    settings: ReproduceSettings
    training: Mapping[str, Any]
    measuring: EvaluateSettings

    def jobs(self, cells: Iterable[Cell]) -> dict[Cell, Job]:
        return {cell: self._job(cell) for cell in cells}

    def _job(self, cell: Cell) -> Job:
        training = cell.row.settings(self.training, cell.seed)
        return Job(
            self.out / "runs" / cell.name,
            self.corpora[cell.row.single].folder.resolve(),
            training,
            as_trained(self.measuring, Reading.of(training)),
            tuple(self._wanted(cell)),
        )

    def _wanted(self, cell: Cell) -> Iterator[Wanted]:
        for name in sorted(cell.tasks):
            corpus = self.corpora[cell.row.single]
            yield from wanted_data(find_task(name), corpus, self.settings, self.measuring)


def differences(job: Job) -> list[str]:
    """In what a run that is there is not the cell that is asked for."""
    run = Run(job.run)
    if not run.config_path.is_file():
        return []
    corpus = Corpus(job.corpus)
    found = differing(job.training, run.config()[1], corpus.longest("train"))
    fingerprint = run.state().corpus
    if fingerprint and fingerprint != corpus.fingerprint:
        found.append("it was trained on another corpus")
    return found


def refuse_if_other(job: Job) -> None:
    """A run that was made with other settings, or on another corpus, is never taken for the cell."""
    if found := differences(job):
        raise UserError(
            f"{job.run} was made with other settings: {'; '.join(found)}\n"
            "ask for the same, choose another --out, or remove that folder"
        )


@dataclass(frozen=True)
class _Outcome:
    """What is made of the cells that are finished."""

    names: Sequence[str]
    jobs: Mapping[Cell, Job]
    out: Path
    context: Context
    kept: Kept | None = None

    def write_tables(self) -> Reproduced:
        """Write all tables, of whatever is finished."""
        settings = self.context.settings
        measured = self._measured()
        found = [
            verdict
            for version in settings.versions
            for verdict in verdicts(Evidence(measured, settings.observed, self.context.cloze, version))
        ]
        tables = all_tables(self.names, measured, found, self.context)
        folder = self.out / "tables"
        folder.mkdir(exist_ok=True)
        write_cells(folder / "cells.csv", self.jobs, self.context.settings.cloze_names, self.kept)
        for table in tables:
            for suffix, text in FORMATS:
                with atomic_write(folder / f"{table.name}{suffix}") as path:
                    path.write_text(text(table), encoding="utf-8")
        return Reproduced(self.out, tables, found)

    def _measured(self) -> Measured:
        """What the finished cells give."""
        measured = Measured()
        for cell, job in self.jobs.items():
            lines = all_lines(cell, job, self.context.settings.cloze_names, self.kept)
            measured.add_cell(cell.row, (line.figure for line in lines))
        measured.add_steps_to_haqae()
        return measured

    def write_page(self, result: Reproduced) -> None:
        """The same tables as a page, with the runs and one curve for each row."""
        sections = [Section(table.name, table.title, html(table)) for table in result.tables]
        made = {cell: job.run for cell, job in self.jobs.items() if Run(job.run).state().finished}
        if made:
            first = [run for cell, run in made.items() if cell.seed == 1 and not cell.row.single]
            runs = read_runs(list(made.values()))
            if first:
                curves = learning_curves(read_runs(first))
                sections.append(Section("learning", "Learning curves, seed 1", curves))
            sections.append(Section("runs", "Runs and data", join([data_table(runs), runs_table(runs)])))
        lead = f"The tables of {SOURCE}, and what our runs say of its claims. {self.context.setup}"
        write_page(self.out / "report.html", "The paper, run anew", lead, sections)
