"""What was trained on what, and the scores beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ssdvae.config import SPLITS, TrainSettings
from ssdvae.evaluation.summary import FIGURES, Row, differing, summarize
from ssdvae.report.html import Html, join, table, tag
from ssdvae.report.paper import SOURCE, TABLES, PaperFigure, counterpart, paper_figures
from ssdvae.report.runs import Reported

NAMES = {
    "ppl": "ppl",
    "ppl_official": "ppl with separators",
    "ppl_bound": "ppl bound",
    "latent_used": "values in use",
    "frame_accuracy": "accuracy",
    "frame_precision": "macro precision",
    "frame_f1": "macro F1",
    "frame_ece": "calibration error",
    "cloze_nll": "accuracy by likelihood",
    "cloze_pmi": "accuracy by PMI",
}
"""The figures in words, where there is little room."""

EXPLAINED = {
    "perplexity": "Lower is better. “ppl” conditions on frames that were read off the very words to be "
    "predicted; only the bound, which pays for them, can be compared between models with and without latent "
    "variables. The paper's perplexity counts separators.",
    "frames": "Higher is better, except for the calibration error. No frame was observed. The paper "
    "classifies single events: only a corpus of one event a document can be held against it.",
    "cloze": "Higher is better: how often the true continuation of a seed event is chosen. The paper "
    "chooses by likelihood; PMI takes away how likely the words are anyway.",
}


def shown(value: Any) -> str:
    """A setting as a reader wants it: of a path, the name."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.name if isinstance(value, Path) else str(value)


def tiles(runs: Sequence[Reported]) -> Html:
    """The figures that one looks for first, on the data that most runs were measured on."""
    found = [("runs", f"{len(runs)}", ", ".join(dict.fromkeys(run.settings.model for run in runs)))]
    for task, name, title, best in (
        ("perplexity", "ppl_bound", "lowest perplexity bound", min),
        ("frames", "frame_accuracy", "highest frame accuracy", max),
        ("cloze", "cloze_pmi", "highest cloze accuracy", max),
    ):
        measured = [(m, run) for run in runs for m in run.scores(task) if m.scores.get(name) is not None]
        if measured:
            data, _ = Counter((m.data, m.sha256) for m, _ in measured).most_common(1)[0]
            m, run = best(
                ((m, run) for m, run in measured if (m.data, m.sha256) == data),
                key=lambda pair: float(pair[0].scores[name]),
            )
            value = f"{m.scores[name]:.2f}" if name == "ppl_bound" else f"{m.scores[name]:.1%}"
            found.append((title, value, f"{run.name}, {_data(m.data)}"))
    items = (
        tag("div", tag("dt", title), tag("dd", tag("strong", value), tag("span", where)))
        for title, value, where in found
    )
    return tag("dl", *items, class_="tiles")


def data_table(runs: Sequence[Reported]) -> Html:
    corpora = {r.corpus.fingerprint: r.corpus for r in runs if r.corpus is not None}
    gone = [tag("p", f"{r.name}: {r.corpus_missing}.", class_="absent") for r in runs if r.corpus is None]
    head = ["corpus", "sources", "words", "frames", "events a document", *(f"{s} documents" for s in SPLITS)]
    rows = [
        [
            corpus.folder.name,
            ", ".join(Path(source["path"]).name for source in corpus.manifest["sources"]),
            f"{corpus.manifest['words']:,}",
            f"{corpus.manifest['frames']:,}",
            str(corpus.events),
            *(f"{corpus.manifest['splits'][split]['documents']:,}" for split in SPLITS),
        ]
        for corpus in corpora.values()
    ]
    return join([table("Data", head, rows, names=2) if rows else None, *gone])


def runs_table(runs: Sequence[Reported]) -> Html:
    """One row for each run: what it is, what sets it apart, and how far it came."""
    differs = differing([run.settings for run in runs])
    head = ["run", "model", *differs, "seed", "epochs", "minutes", "best valid ppl"]
    rows = []
    for run in runs:
        last = run.curve[-1] if run.curve else None
        rows.append(
            [
                run.name,
                run.settings.model,
                *(shown(getattr(run.settings, name)) for name in differs),
                str(run.settings.seed),
                f"{last['epoch']:g}" if last else "–",
                f"{last['seconds'] / 60:.1f}" if last else "–",
                f"{run.best['ppl']:.2f}" if run.best else "–",
            ]
        )
    return table("Runs, and the settings in which they differ", head, rows, names=2)


def settings_table(runs: Sequence[Reported]) -> Html:
    """Every setting of every run; those that differ are marked."""
    rows = []
    for name in TrainSettings.names():
        values = [shown(getattr(run.settings, name)) for run in runs]
        mark = tag("mark", name) if len(set(values)) > 1 else name
        rows.append([mark, *values])
    caption = "All settings" + ("; marked where the runs differ" if len(runs) > 1 else "")
    return tag(
        "details",
        tag("summary", "All settings"),
        table(caption, ["setting", *(run.name for run in runs)], rows, names=len(runs) + 1),
    )


def _data(name: str) -> str:
    """A split, or the name of a file."""
    return name if name in SPLITS else Path(name).name


def results(runs: Sequence[Reported]) -> Iterator[Html]:
    """A table for each task and data, with the paper's figures beside those that it has too."""
    measured = [run for run in runs if run.measured]
    absent = [run.name for run in runs if not run.measured]
    rows = summarize([run.folder for run in measured])
    for task, data in dict.fromkeys((row.task, row.data) for row in rows):
        mine = [row for row in rows if (row.task, row.data) == (task, data)]
        yield tag("h3", f"{task.capitalize()}, {_data(data)}")
        yield tag("p", EXPLAINED[task])
        yield _result_table(task, data, mine)
    if rows:
        yield tag(
            "p",
            f"The paper's figures ({SOURCE}) are means and deviations of three runs on its own corpus of "
            "Wikipedia, with 40,000 words and 500 frames. A run on any other corpus cannot be held against "
            "them. A dash: not measured, or not in the paper.",
            class_="note",
        )
    if absent:
        yield tag(
            "p",
            f"Not measured yet: {', '.join(absent)}. “ssdvae evaluate RUN” measures a run.",
            class_="absent",
        )


def _result_table(task: str, data: str, rows: Sequence[Row]) -> Html:
    papers = {figure: [counterpart(row.settings, figure, data) for row in rows] for figure in FIGURES[task]}
    head = ["model", *rows[0].differs, "runs"]
    lines = [[row.settings.model, *map(shown, row.differs.values()), str(row.runs)] for row in rows]
    for figure in FIGURES[task]:
        head.append(NAMES[figure])
        for line, row in zip(lines, rows, strict=True):
            line.append(_measured(row, figure))
        if found := [p for p in papers[figure] if p is not None]:
            cited = "; ".join(dict.fromkeys(TABLES[p.table] for p in found))
            head.append(f"paper ({cited})")
            for line, paper in zip(lines, papers[figure], strict=True):
                line.append(_printed(paper))
    return join(
        [
            table(f"{task.capitalize()} on {_data(data)}", head, lines, names=1 + len(rows[0].differs)),
            _whole_paper(FIGURES[task], data),
        ]
    )


def _measured(row: Row, figure: str) -> str:
    """The mean over runs; pointed at, the figures of each run in full."""
    values = row.values.get(figure, [])
    return tag("span", row.cell(figure), title=", ".join(map(repr, values))) if values else row.cell(figure)


def _printed(paper: PaperFigure | None) -> str:
    """With no more digits than the paper prints."""
    return "–" if paper is None else tag("span", f"{paper.mean:g} ± {paper.deviation:g}", class_="paper")


def _whole_paper(figures: Sequence[str], split: str) -> Html | None:
    """All that the paper has for a task, for whoever wants the other rows."""
    mine = [p for p in paper_figures() if p.figure in figures and p.split == split]
    if not mine:
        return None
    columns = list(dict.fromkeys((p.table, p.data, p.figure) for p in mine))
    keys = list(dict.fromkeys((p.model, p.attention, p.observe) for p in mine))
    cells = {((p.model, p.attention, p.observe), (p.table, p.data, p.figure)): p for p in mine}
    head = ["model", "attention", "ε", *(f"{NAMES[f]}, {data} ({TABLES[t]})" for t, data, f in columns)]
    rows = [
        [
            key[0],
            key[1] or "–",
            "–" if key[2] is None else f"{key[2]:g}",
            *(_printed(cells.get((key, c))) for c in columns),
        ]
        for key in keys
    ]
    caption = f"The paper's figures, {split} split"
    return tag("details", tag("summary", caption), table(caption, head, rows, names=3))
