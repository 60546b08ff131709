"""``ssdvae reproduce``: from a corpus to the paper's tables and the verdicts on its claims."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.data.corpus import Corpus
from ssdvae.data.documents import ContextWindow
from ssdvae.data.items import read_cloze
from ssdvae.data.prepare import single_events
from ssdvae.evaluation.measure import as_trained
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.task import Task, find_task
from ssdvae.io.errors import UserError
from ssdvae.io.files import check_exists, write_text
from ssdvae.io.progress import SILENT, Progress
from ssdvae.io.run import Run
from ssdvae.report.page import write_page
from ssdvae.report.render import Section, Text
from ssdvae.report.render import Table as TableBlock
from ssdvae.report.runs import data_tables, read_runs, runs_table
from ssdvae.report.scores import learning_curves
from ssdvae.reproduction.claims import Evidence, Verdict, verdicts
from ssdvae.reproduction.job import Job, TaskRequest
from ssdvae.reproduction.options import ReproduceOptions
from ssdvae.reproduction.paper import SOURCE, Trial, make_trials, parse_targets, table_tasks
from ssdvae.reproduction.results import ResultsCache, ResultTable, collect_figures, write_cells
from ssdvae.reproduction.sweep import SweepState, exclusive_lock, open_launcher, sweep
from ssdvae.reproduction.tables import FORMATS, Table, TableContext, all_tables
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import departures

if TYPE_CHECKING:
    import pandas

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reproduced:
    """The results of a sweep: the tables are in ``folder``, with the page about them."""

    folder: Path
    tables: list[Table]
    verdicts: list[Verdict]
    figures: pandas.DataFrame  # one row for each figure of each trial


def reproduce(
    what: str,
    corpus: Corpus,
    out: Path,
    options: ReproduceOptions,
    training: Mapping[str, Any],
    evaluation: EvaluateOptions,
    progress: Progress = SILENT,
    watch: Callable[[SweepState], None] | None = None,
) -> Reproduced:
    """Make the runs behind some tables, as far as they are missing, and then the tables.

    ``training`` are options for all runs, of which each model takes those that it has. ``watch`` is called
    again and again with the state of the sweep.
    """
    shared = TrainOptions.of(training)
    if corpus.manifest["splits"]["train"]["frameless_events"]:
        log.warning(
            f"{corpus.folder} has events without a frame, which the paper drops\n"
            "to compare with its figures: ssdvae prepare --drop-unlabelled"
        )
    evaluation = evaluation.changed(split=options.split, cloze=None)
    tables = _tables_with_data(parse_targets(what), corpus, options, evaluation)
    trials, names = make_trials(tables, options), options.cloze_names
    if shared.vectors is not None:
        check_exists(shared.vectors)
    for path in options.cloze_files.values():
        read_cloze(path)  # a mistake in it is better known before training
    with exclusive_lock(out) as lock:
        single = out / "single-events"
        corpora = {False: corpus}
        if any(trial.row.single for trial in trials) or single.exists():
            corpora[True] = single_events(corpus, single)

        def jobs_of(trials: Iterable[Trial]) -> dict[Trial, Job]:
            return {
                t: _job(t, corpora[t.row.single], out, options, training, evaluation)
                for t in trials
                if t.row.single in corpora
            }

        jobs = jobs_of(trials)
        cache = None if options.cells is None else ResultsCache.read(options.cells)
        for trial, job in jobs.items():
            if found := differences(job):
                raise UserError(
                    f"{job.run} was made with other options: {'; '.join(found)}\n"
                    "ask for the same, choose another --out, or remove that folder"
                )
            for request in job.requests:
                find_task(request.task).check(job.training.model_options, job.evaluation)
            if cache and (problem := cache.mismatch(trial, job, names)):
                raise UserError(f"{problem}\nask for the same, or leave out --cells")
        left = {
            trial: job
            for trial, job in jobs.items()
            if not job.finished() and not (cache and cache.covers(trial, job, names))
        }
        # Trials that an earlier sweep has left for other tables and models count in the claims, too.
        every = make_trials(parse_targets("all"), options.changed(models=None))
        known = {
            trial: job
            for trial, job in jobs_of(every).items()
            if not differences(job) and not (cache and cache.mismatch(trial, job, names))
        }
        output = _Output(tables, known, out, TableContext(options, shared, corpus), cache)
        failed: dict[Trial, str] = {}
        if left:
            with open_launcher(options, len(left), lock) as (workers, launch):
                state = SweepState(left, [trial for trial in jobs if trial not in left], len(workers))
                after = output.write_tables
                failed = sweep(left, out / "logs", workers, launch, state, after, progress, watch)
        result = output.write_tables()
        output.write_page(result)
    if failed:
        many = f"{len(failed)} of {len(jobs)} trials failed; the tables are without them"
        raise UserError("\n".join([*failed.values(), many]))
    return result


def _tables_with_data(
    tables: Sequence[str], corpus: Corpus, options: ReproduceOptions, evaluation: EvaluateOptions
) -> list[str]:
    """Return the tables that there are data for; raise an error if the only one has none."""
    possible = []
    for table in tables:
        task = table_tasks()[table]
        if task is None or list(_requests(task, corpus, options, evaluation)):
            possible.append(table)
        elif len(tables) == 1:
            task.data(corpus, evaluation.changed(tasks=task.name))  # which says what to do
            raise UserError(f"{corpus.folder} has no data for {task.name}")
        else:
            missing = f"{corpus.folder} has no {table} data for the split {options.split!r}"
            log.warning(f"{missing}: that table is left out")
    return possible


def _requests(
    task: Task, corpus: Corpus, options: ReproduceOptions, evaluation: EvaluateOptions
) -> Iterator[TaskRequest]:
    """Yield a request for the data of the corpus, and one for each cloze file if the task takes them."""
    files = options.cloze_files.values() if task.takes_cloze_files else ()
    for path in (None, *files):
        if (data := task.data(corpus, evaluation.changed(cloze=path))) is not None:
            yield TaskRequest(task.name, data.sha256, path)


def _job(
    trial: Trial,
    corpus: Corpus,
    out: Path,
    options: ReproduceOptions,
    training: Mapping[str, Any],
    evaluation: EvaluateOptions,
) -> Job:
    chosen = trial.row.train_options(training, trial.seed)
    tasks = map(find_task, sorted(trial.tasks))
    return Job(
        out / "runs" / trial.name,
        corpus.folder.resolve(),
        chosen,
        as_trained(evaluation, ContextWindow.of(chosen)),
        tuple(request for task in tasks for request in _requests(task, corpus, options, evaluation)),
    )


def differences(job: Job) -> list[str]:
    """Return in what an existing run differs from the job."""
    run = Run(job.run)
    if not run.config_path.is_file():
        return []
    corpus = Corpus(job.corpus)
    found = departures(job.training, run.config()[1], corpus.longest("train"))
    fingerprint = run.state().corpus
    if fingerprint and fingerprint != corpus.fingerprint:
        found.append("it was trained on another corpus")
    return found


@dataclass(frozen=True)
class _Output:
    """Writes the tables and the page of the trials that are finished."""

    tables: Sequence[str]
    jobs: Mapping[Trial, Job]
    out: Path
    context: TableContext
    cache: ResultsCache | None

    def write_tables(self) -> Reproduced:
        """Write all tables, and the figures behind them."""
        options = self.context.options
        figures = collect_figures(self.jobs, options.cloze_names, self.cache)
        results = ResultTable(figures, self.jobs)
        found = [
            verdict
            for version in options.versions
            for verdict in verdicts(Evidence(results, options.observed, self.context.cloze, version))
        ]
        tables = all_tables(self.tables, results, found, self.context)
        folder = self.out / "tables"
        folder.mkdir(exist_ok=True)
        write_cells(folder / "cells.csv", figures)
        for table in tables:
            for suffix, text in FORMATS:
                write_text(folder / f"{table.name}{suffix}", text(table))
        return Reproduced(self.out, tables, found, results.frame.assign(split=options.split))

    def write_page(self, result: Reproduced) -> None:
        """Write the tables as a page, with the runs and one curve for each row."""
        sections = [Section(table.name, table.title, blocks(table)) for table in result.tables]
        finished = {trial: job.run for trial, job in self.jobs.items() if Run(job.run).state().finished}
        if finished:
            first = [run for trial, run in finished.items() if trial.seed == 1 and not trial.row.single]
            runs = read_runs(list(finished.values()))
            if first:
                curves = learning_curves(read_runs(first))
                sections.append(Section("learning", "Learning curves, seed 1", [curves]))
            sections.append(Section("runs", "Runs and data", [*data_tables(runs), runs_table(runs)]))
        lead = f"The tables of {SOURCE}, and what our runs say of its claims. {self.context.setup}"
        write_page(self.out / "report.html", "The paper, run anew", lead, sections)


def blocks(table: Table) -> list[TableBlock | Text]:
    """Return a table as it stands on a page."""
    return [TableBlock(table.title, table.head, table.lines(), table.names), Text(table.note, "note")]
