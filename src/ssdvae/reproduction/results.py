"""The figures of trials: one tidy table, kept in the file ``tables/cells.csv``.

The table has a row for each figure of each trial, with the columns of ``FigureRecord``. A point of a learning
curve is a row too (``validation_ppl``). With `--cells FILE`, trials whose figures such a file has are not run
again. Each row has a fingerprint of all that the figure depends on: figures of other options are refused.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from pydantic.fields import FieldInfo

from ssdvae.data.corpus import Corpus
from ssdvae.evaluation.summary import Spread
from ssdvae.evaluation.task import Figure, find_figure, find_task, mark_of
from ssdvae.io.errors import DataError, not_installed, shorten
from ssdvae.io.files import atomic_write, check_exists, text_lines
from ssdvae.io.run import Run, best_validation
from ssdvae.options import Options
from ssdvae.reproduction.job import Job
from ssdvae.reproduction.paper import HAQAE, Configuration, Trial
from ssdvae.training.train import NEUTRAL_OPTIONS

try:
    import pandas
except ImportError as error:
    raise not_installed("pandas", "pandas", "reproducing the paper") from error

CORPUS = "corpus"
"""The name of the corpus as data; further cloze files have names of their own."""

VALIDATION = "validation_ppl"
"""The figure of a point of a learning curve."""

CONVERGED = 1.05
"""A run has converged when its perplexity is within this factor of its own best."""

CURVE_FIGURES = (
    Figure("ppl_best", "best validation ppl", "lower", digits=2),
    Figure("step_best", "step of the best", "lower", digits=0),
    Figure("step_converged", "step converged", "lower", digits=0),
    Figure("step_haqae", "step at HAQAE's best", "lower", digits=0),
)
"""Figures of learning curves."""


def figure_named(name: str) -> Figure:
    """Return a figure of a task, or of the learning curves."""
    found = find_figure(name) or next((f for f in CURVE_FIGURES if f.name == name), None)
    assert found is not None, name
    return found


class FigureRecord(NamedTuple):
    """A row of the table: one figure of one trial."""

    trial: str
    fingerprint: str
    data: str
    figure: str
    value: float
    mark: str = ""
    step: float = math.nan  # of a validation
    epoch: float = math.nan


TYPES = dict.fromkeys(FigureRecord._fields, "str") | dict.fromkeys(("value", "step", "epoch"), "float64")


def figure_frame(records: Iterable[FigureRecord]) -> pandas.DataFrame:
    """Return a table of figures."""
    return pandas.DataFrame(list(records), columns=list(FigureRecord._fields)).astype(TYPES)


class ResultTable:
    """The figures of some trials, with a column for each property of their configurations."""

    def __init__(self, figures: pandas.DataFrame, trials: Iterable[Trial]) -> None:
        properties = [(t.name, t.row.name, *asdict(t.row).values(), t.seed) for t in trials]
        columns = ["trial", "configuration", *(field.name for field in fields(Configuration)), "seed"]
        # The order is that of the trials, and within one that of its figures.
        self.frame = pandas.DataFrame(properties, columns=columns).merge(figures, on="trial")
        self._spreads = _spreads(self.frame)
        if (best := self.spread(HAQAE, "ppl_best")) is not None:
            steps = _steps_to(self.curves, best.mean)
            self._spreads |= _spreads(steps)
            self.frame = pandas.concat([self.frame, steps], ignore_index=True)

    @property
    def curves(self) -> pandas.DataFrame:
        """The points of the learning curves."""
        return self.frame[self.frame["figure"] == VALIDATION]

    def spread(self, row: Configuration, figure: str, data: str = CORPUS) -> Spread | None:
        """Return a figure over seeds; None if no trial has it."""
        return self._spreads.get((row.name, figure, data))


def _spreads(frame: pandas.DataFrame) -> dict[tuple[str, str, str], Spread]:
    """Return every figure over seeds, by configuration, figure and data."""
    groups = frame[frame["figure"] != VALIDATION].groupby(["configuration", "figure", "data"], sort=False)
    found = groups.agg(values=("value", tuple), mark=("mark", "last"))
    return {key: Spread(values, mark) for key, values, mark in found.itertuples(name=None)}


def _steps_to(curves: pandas.DataFrame, perplexity: float) -> pandas.DataFrame:
    """Return the first step at which each run is as good as HAQAE's best; a run that never is has no row."""
    reached = curves[curves["value"] <= perplexity].drop_duplicates("trial")
    return reached.assign(figure="step_haqae", value=reached["step"], mark="")


# Figures of runs, and what they depend on.

ClozeNames = Mapping[Path, str]
"""The names of further cloze files."""

SUBJECT_OPTIONS = ("split", "tasks", "cloze", "events")
"""Options of an evaluation that say what is measured, and not how."""


def fingerprint(job: Job, names: ClozeNames, data: str = CORPUS) -> str:
    """Return a fingerprint of all that the figures of a trial on some data depend on.

    Options at their defaults are left out: one that a later version adds changes no fingerprint.
    """
    training, model, evaluation = job.training, job.training.model_options, job.evaluation
    parts = {
        "kind": training.model,
        "training": _departures(training, training.training_fields(), NEUTRAL_OPTIONS),
        "model": _departures(model, model.fields(), NEUTRAL_OPTIONS),
        "measuring": _departures(evaluation, evaluation.fields(), SUBJECT_OPTIONS),
        "split": evaluation.split,
        "corpus": Corpus(job.corpus).fingerprint,
    }
    if (digest := _cloze_digests(job, names).get(data)) is not None:
        parts["cloze"] = digest
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def _departures(
    options: Options, defined: Mapping[str, FieldInfo], left_out: Iterable[str]
) -> dict[str, Any]:
    """Return the options that are not at their defaults; of a path, the name."""
    departures = {}
    for name, field in defined.items():
        value = getattr(options, name)
        if name not in left_out and value != field.default:
            departures[name] = value.name if isinstance(value, Path) else value
    return departures


def _cloze_digests(job: Job, names: ClozeNames) -> dict[str, str]:
    """Return the checksums of the further cloze files, by name."""
    return {names[request.cloze]: request.sha256 for request in job.requests if request.cloze is not None}


def run_figures(trial: Trial, job: Job, names: ClozeNames) -> Iterator[FigureRecord]:
    """Yield the figures of the run of a trial, if it is finished."""
    run = Run(job.run)
    if not run.state().finished:
        return
    prints = {data: fingerprint(job, names, data) for data in (CORPUS, *_cloze_digests(job, names))}

    def record(figure: str, value: float, mark: str = "", data: str = CORPUS, **when: float) -> FigureRecord:
        return FigureRecord(trial.name, prints[data], data, figure, value, mark, **when)

    for request, m in job.measurements().items():
        data = CORPUS if request.cloze is None else names[request.cloze]
        for figure in find_task(request.task).figures:
            if m.scores.get(figure.name) is not None:
                yield record(figure.name, m.scores[figure.name], figure.mark(m.scores), data)
    # Learning curves on single events are not compared.
    curve = [] if trial.row.single else run.curve()
    if (best := best_validation(curve)) is not None:
        close = (point["step"] for point in curve if point["ppl"] <= CONVERGED * best["ppl"])
        yield record("ppl_best", best["ppl"], mark_of("ppl", best))
        yield record("step_best", best["step"])
        yield record("step_converged", next(close, best["step"]))
    for point in curve:
        yield record(
            VALIDATION, point["ppl"], mark_of("ppl", point), step=point["step"], epoch=point["epoch"]
        )


# The file.

HEAD = ("trial", "fingerprint", "data", "figure", "value", "mark")
"""The columns of cells.csv; the data of a validation is ``step:epoch``."""

NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"


def _parse_number(figure: str, text: str) -> float:
    """Return the value of a figure; a ValueError says what was expected."""
    found = find_figure(figure)
    number = float(text) if re.fullmatch(NUMBER, text) else math.nan
    if not math.isfinite(number):
        raise ValueError("a finite decimal number as value")
    if "ppl" in figure.split("_") and number <= 0:
        raise ValueError("a perplexity above 0 as value")
    if found is not None and found.share and not 0 <= number <= 1:
        raise ValueError("a share from 0 to 1 as value")
    return number


def _parse_line(line: list[str]) -> FigureRecord:
    """Return the figure in a line of cells.csv; a ValueError says what was expected."""
    if len(line) != len(HEAD):
        raise ValueError(f"{len(HEAD)} columns")
    trial, digest, data, figure, value, mark = line
    number = _parse_number(figure, value)
    if figure != VALIDATION:
        return FigureRecord(trial, digest, data, figure, number, mark)
    when = re.fullmatch(rf"([0-9]{{1,15}}):({NUMBER})", data)
    if when is None or not math.isfinite(float(when[2])):
        raise ValueError(f"step:epoch as the data of {VALIDATION}")
    return FigureRecord(trial, digest, CORPUS, figure, number, mark, float(when[1]), float(when[2]))


@dataclass(frozen=True)
class ResultsCache:
    """The figures of a file: those of trials that were made elsewhere."""

    path: Path
    figures: pandas.DataFrame

    @classmethod
    def read(cls, path: Path) -> ResultsCache:
        """Read a file; a line that is not as ``write_cells`` writes it is refused."""
        check_exists(path)
        return cls(path, figure_frame(_read_cells(path)))

    def mismatch(self, trial: Trial, job: Job, names: ClozeNames) -> str | None:
        """Return why the figures of a trial are not those that are asked for; None if they are."""
        figures, files = self.of(trial), _cloze_digests(job, names)
        # Data that is not asked for is not compared, and not shown.
        for data in (CORPUS, *files):
            if set(figures["fingerprint"][figures["data"] == data]) - {fingerprint(job, names, data)}:
                other = f"another file {data}, or other options" if data in files else "other options"
                return f"{self.path}: {trial.name} was made with {other} or another corpus"
        return None

    def covers(self, trial: Trial, job: Job, names: ClozeNames) -> bool:
        """Tell whether a trial has a figure of every task that is asked for."""
        found = self.of(trial)
        there = set(zip(found["figure"], found["data"], strict=True))
        return bool(there) and all(
            any(
                (figure.name, CORPUS if request.cloze is None else names[request.cloze]) in there
                for figure in find_task(request.task).figures
            )
            for request in job.requests
        )

    def of(self, trial: Trial) -> pandas.DataFrame:
        """Return the figures of a trial."""
        return self.figures[self.figures["trial"] == trial.name]


def _read_cells(path: Path) -> Iterator[FigureRecord]:
    lines = csv.reader((text for _, text in text_lines(path)), strict=True)
    seen: set[FigureRecord] = set()
    try:
        if (head := tuple(next(lines, ()))) != HEAD:
            raise DataError(path, 1, shorten(",".join(head)), ",".join(HEAD))
        for line in lines:
            try:
                record = _parse_line(line)
                key = record._replace(fingerprint="", value=0.0, mark="")
                if key in seen:
                    raise ValueError("one line for each figure of a trial")
            except ValueError as error:
                raise DataError(path, lines.line_num, shorten(",".join(line)), str(error)) from None
            seen.add(key)
            yield record
    except csv.Error as error:
        raise DataError(path, lines.line_num, str(error), "a line of CSV") from error


def collect_figures(
    jobs: Mapping[Trial, Job], names: ClozeNames, cache: ResultsCache | None
) -> pandas.DataFrame:
    """Return the figures of all finished runs, and those that only the cache has.

    Two runs of a trial may have stopped at different steps: a learning curve is that of one run.
    """
    figures = figure_frame(record for trial, job in jobs.items() for record in run_figures(trial, job, names))
    if cache is None:
        return figures
    key = ["trial", "figure", "data"]
    known = pandas.MultiIndex.from_frame(figures[key])
    others = cache.figures[~pandas.MultiIndex.from_frame(cache.figures[key]).isin(known)]
    return pandas.concat([figures, others], ignore_index=True)


def write_cells(path: Path, figures: pandas.DataFrame) -> None:
    """Write figures to a file that `--cells` takes."""
    with atomic_write(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEAD)
        for row in figures.sort_values("trial", kind="stable").itertuples(index=False):
            data = f"{row.step:.0f}:{row.epoch:g}" if row.figure == VALIDATION else row.data
            writer.writerow([row.trial, row.fingerprint, data, row.figure, repr(row.value), row.mark])
