"""Scores of runs: tiles, tables beside published and best possible scores, and pictures that compare runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ssdvae.data.options import Split
from ssdvae.evaluation.summary import Published, PublishedFigure, Row, summarize
from ssdvae.evaluation.task import TASKS, Task, mark_of
from ssdvae.evaluation.task import Figure as Score
from ssdvae.io.scores import Measurement
from ssdvae.report.charts import Axis, Bars, Curves, Mark, Series
from ssdvae.report.pictures import of_curves
from ssdvae.report.render import Cell, Details, Figure, Heading, Table, Text, Tile, Tiles, absent
from ssdvae.report.runs import ReportedRun, describe_data, option_text, ppl_text

Best = Mapping[str, float]
"""By the name of a score, the best that any model could have."""


def score_blocks(
    runs: Sequence[ReportedRun], split: Split, published: Published | None, best: Best
) -> Iterator[Any]:
    """Yield all that is said of how good the models are."""
    if tiles := list(_tiles(runs, split, best)):
        yield Tiles(tiles)
    yield from _results(runs, published, best)
    yield Heading("Calibration")
    yield _calibration(runs, split)
    yield Heading("Use of the latent variables")
    yield from _latent_use(runs, split)


def _tiles(runs: Sequence[ReportedRun], split: Split, best: Best) -> Iterator[Tile]:
    for name, task in TASKS.items():
        for score in task.figures:
            if score.headline and (tile := _tile(runs, split, name, score, best)):
                yield tile


def _tile(runs: Sequence[ReportedRun], split: Split, task: str, score: Score, best: Best) -> Tile | None:
    """Return the best score of all runs on the data that most of them were measured on."""
    measured = [(m, run) for run in runs if (m := run.measurement(score.name, split, task)) is not None]
    if not measured:
        return None
    common, _ = Counter(m.sha256 for m, _ in measured).most_common(1)[0]
    choose, word = (min, "lowest") if score.better == "lower" else (max, "highest")
    m, run = choose(
        (pair for pair in measured if pair[0].sha256 == common),
        key=lambda pair: pair[0].scores[score.name],
    )
    several = len(runs) > 1
    lines = []
    if score.name in best:
        lines.append(f"best possible: {score.headline_text(best[score.name])}")
    if score.floor is not None and (floor := m.scores.get(score.floor.score)) is not None:
        lines.append(f"{score.floor.title}: {score.headline_text(floor)}")
    lines.append(f"{run.name} on {describe_data(m.data)}" if several else f"on {describe_data(m.data)}")
    title = f"{word} {score.headline}" if several else str(score.headline)
    return Tile(title, score.headline_text(m.scores[score.name]), lines)


def _results(runs: Sequence[ReportedRun], published: Published | None, best: Best) -> Iterator[Any]:
    """Yield a table for each task and data; each score has the published one below it, if there is one."""
    measured = [run for run in runs if run.measurements and run.trained_here]
    rows = summarize([run.folder for run in measured])
    # Which corpus a split is of needs saying only where there are several.
    several = len({run.corpus.fingerprint for run in measured if run.corpus is not None}) > 1
    owners = {
        m.sha256: f" of {run.corpus.folder.name}"
        for run in measured
        for m in run.measurements
        if run.corpus is not None and several
    }
    for name in dict.fromkeys(row.task for row in rows):
        task = TASKS[name]
        yield Heading(task.title)
        of_task = [row for row in rows if row.task == name]
        for data in dict.fromkeys(row.data for row in of_task):
            for digest in dict.fromkeys(row.sha256 for row in of_task if row.data == data):
                caption = f"{task.title} on {describe_data(data)}{owners.get(digest, '')}"
                same = [row for row in of_task if (row.data, row.sha256) == (data, digest)]
                yield _result_table(caption, task.figures, data, same, published, best)
            if published is not None:
                yield from _published_table(task, data, published)
        yield Text(task.explanation, "note")
    if rows and published is not None:
        yield Text(published.note, "note")
    if unmeasured := [run.name for run in runs if not run.measurements]:
        yield absent(f"Not measured yet: {', '.join(unmeasured)}. “ssdvae evaluate RUN” measures a run.")


def _result_table(
    caption: str,
    scores: Sequence[Score],
    data: str,
    rows: Sequence[Row],
    published: Published | None,
    best: Best,
) -> Table:
    """Return a line for each configuration and for the best possible; scores that none has are left out."""
    scores = [score for score in scores if any(row.values.get(score.name) for row in rows)]
    counterparts = {
        (place, score): p
        for place, row in enumerate(rows)
        for score in scores
        if published is not None and (p := published.counterpart(row.settings, score.name, data))
    }
    head = [Cell("model")]
    for score in scores:
        tables = dict.fromkeys(p.table for (_, s), p in counterparts.items() if s == score)
        cited = "; ".join(published.tables[name] for name in tables) if published else ""
        head.append(Cell(score.title, paper=f"paper: {cited}" if cited else ""))
    lines = [
        [
            _configuration(row),
            *(_mean(row, score, counterparts.get((place, score))) for score in scores),
        ]
        for place, row in enumerate(rows)
    ]
    if any(score.name in best for score in scores):
        shown = (score.headline_text(best[score.name]) if score.name in best else "" for score in scores)
        lines.append([Cell("best possible", "em"), *map(Cell, shown)])
    return Table(caption, head, lines)


def _configuration(row: Row) -> Cell:
    """Return the model, and below it what sets it apart: more columns would push the scores off a phone."""
    apart = [f"{name} {option_text(value)}" for name, value in row.differs.items()]
    runs = "1 run" if row.runs == 1 else f"{row.runs} runs"
    return Cell(row.settings.model, small=", ".join([*apart, runs]))


def _mean(row: Row, score: Score, published: PublishedFigure | None) -> Cell:
    """Return the mean over runs, in the units of the tiles; pointed at, the score of each run in full."""
    values = ", ".join(map(repr, row.values.get(score.name, [])))
    paper = _published_text(published, score) if published else ""
    return Cell(row.cell(score, score.headline_text), title=values, paper=paper)


def _published_text(published: PublishedFigure, score: Score) -> str:
    """Return a published score as printed, but a share in per cent, as ours are."""
    if not score.share:
        return published.printed
    return f"{score.headline_text(published.mean)} ± {score.headline_text(published.deviation)}"


def _published_table(task: Task, split: str, published: Published) -> Iterator[Details]:
    """Yield all published scores of a task and a split, if there are any."""
    scores = {score.name: score for score in task.figures}
    found = [p for p in published.figures if p.figure in scores and p.split == split]
    if not found:
        return
    columns = list(dict.fromkeys((p.table, p.data, p.figure) for p in found))
    rows: dict[tuple[str, str, str], dict[tuple[str, str, str], str]] = {}
    for p in found:
        key = (p.model, p.attention or "–", "–" if p.observe is None else f"{p.observe:g}")
        rows.setdefault(key, {})[p.table, p.data, p.figure] = _published_text(p, scores[p.figure])
    heads = (f"{scores[s].title}, {data} ({published.tables[t]})" for t, data, s in columns)
    lines = [[*key, *(cells.get(column, "–") for column in columns)] for key, cells in rows.items()]
    caption, names = f"The paper's figures, {split} split", ["model", "attention", "ε"]
    yield Details(caption, [Table(caption, [*names, *heads], lines, names=len(names))])


def learning_curves(runs: Sequence[ReportedRun]) -> Figure | Text:
    """Return validation NLL against epochs on a square-root axis, as in the paper's figure."""
    drawn = [run for run in runs if run.curve]
    if not drawn:
        return absent("Left out: no run has been validated yet, or none of the models predicts words.")
    lowest, run = min(((r, run) for run in drawn for r in run.curve), key=lambda pair: float(pair[0]["ppl"]))
    corpora = {run.corpus.fingerprint for run in drawn if run.corpus is not None}
    apart = " The runs are on different corpora, so their curves do not compare." if len(corpora) > 1 else ""
    ahead = ""
    if any(mark_of("ppl", r) for run in drawn for r in run.curve):
        ahead = "† marks models that have read the words they predict: here they compare with no others. "
    rows = [
        [run.name, f"{r['epoch']:g}", f"{r['step']:,}", f"{math.log(r['ppl']):.3f}", ppl_text(r)]
        for run in drawn
        for r in run.curve
    ]
    return Figure(
        "Validation NLL while training.",
        f"The lowest point is {math.log(lowest['ppl']):.3f} nats a word (ppl {ppl_text(lowest)}), by "
        f"{run.name} after epoch {lowest['epoch']:g}; a curve that still falls at its end could go on. "
        f"{ahead}Epochs are on a square-root scale, as in the paper.{apart}",
        of_curves(drawn),
        "buttons",
        Table("Validations", ["run", "epoch", "step", "NLL", "ppl"], rows),
    )


def _measured(runs: Sequence[ReportedRun], score: str, split: Split) -> list[tuple[ReportedRun, Measurement]]:
    """Return the runs that have a score, with the measurement that it is from."""
    return [(run, m) for run in runs if (m := run.measurement(score, split)) is not None]


def _calibration(runs: Sequence[ReportedRun], split: Split) -> Figure | Text:
    """Return the reliability diagram: how often frames are right, against the model's confidence in them."""
    found = _measured(runs, "frame_reliability", split)
    if not found:
        return absent("Left out: no run has been measured on frames (“ssdvae evaluate RUN”).")
    series, rows = [], []
    for run, m in found:
        bins = m.scores["frame_reliability"]
        most = max(b["events"] for b in bins)
        marks = [
            Mark(
                b["confidence"],
                b["accuracy"],
                f"{run.name}: confidence {b['confidence']:.2f}, "
                f"right {b['accuracy']:.1%} of {b['events']:,} events",
                3 + 6 * math.sqrt(b["events"] / most),
            )
            for b in bins
        ]
        series.append(Series(run.name, run.colour, marks))
        rows += [
            [run.name, f"{b['confidence']:.3f}", f"{b['accuracy']:.3f}", f"{b['events']:,}"] for b in bins
        ]
    errors = "; ".join(
        f"{run.name} {_score_text(m, 'frame_ece', '.3f')} ({describe_data(m.data)})" for run, m in found
    )
    return Figure(
        "Confidence against accuracy of the inferred frames.",
        "On the dashed line a model is right as often as it expects to be; below it, it is too sure. "
        f"Larger dots have more events. Expected calibration error: {errors}.",
        Curves("Reliability", Axis("confidence", 0, 1), Axis("accuracy", 0, 1), series, diagonal=True),
        "buttons",
        Table("Reliability", ["run", "confidence", "accuracy", "events"], rows),
    )


def _score_text(m: Measurement, score: str, form: str) -> str:
    """Return a score; a dash where it was not finite, or is not there."""
    value = m.scores.get(score)
    return "–" if value is None else f"{value:{form}}"


PARTS = ("mutual information", "entropy", "unused")


def _latent_use(runs: Sequence[ReportedRun], split: Split) -> Iterator[Any]:
    """Yield what the latent variables say about documents; nothing, if they have collapsed."""
    found = _measured(runs, "latent_kl", split)
    if not found:
        yield absent("Left out: no run with latent variables has been measured (“ssdvae evaluate RUN”).")
        return
    rows, shown = [], []
    for run, m in found:
        name = f"{run.name}, {describe_data(m.data)}"
        rows.append(
            [
                name,
                *(_score_text(m, f"latent_{key}", ".2f") for key in ("kl", "entropy", "information")),
                _score_text(m, "latent_used", ","),
                _score_text(m, "latent_perplexity", ".1f"),
            ]
        )
        known, unsure, kl = (m.scores.get(f"latent_{key}") or 0.0 for key in ("information", "entropy", "kl"))
        shown.append((name, list(zip(PARTS, (known, unsure, kl - known), strict=True))))
    head = ["run", "KL", "entropy", "mutual information", "values in use", "values, effectively"]
    yield Figure(
        "What a latent variable says.",
        "A bar is the logarithm of the number of values. The first part is what the variable says "
        "about the document: a collapsed one has none of it. The second is what stays uncertain, the "
        "third the room of values that are rarely or never used.",
        Bars("What a latent variable says, in nats", shown, "nats"),
        "keys",
    )
    yield Table("Collapse diagnostics, in nats for each latent variable", head, rows)
    yield Text(
        "KL is from the uniform prior; under that prior it is what the bound pays for each variable.", "note"
    )
