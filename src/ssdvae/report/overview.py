"""What was trained on what, and the scores beside published ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ssdvae.config import SPLITS, Split, TrainSettings
from ssdvae.evaluation.published import Published
from ssdvae.evaluation.summary import Row, differing, summarize
from ssdvae.evaluation.tasks import TASKS
from ssdvae.evaluation.tasks.base import Figure, Task
from ssdvae.report.html import Html, absent, join, table, tag
from ssdvae.report.runs import Reported, describe_data


def setting_text(value: Any) -> str:
    """A setting as a reader wants it: of a path, the name."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.name if isinstance(value, Path) else str(value)


def tiles(runs: Sequence[Reported], split: Split) -> Html:
    """The figures that one looks for first, on the data that most runs were measured on."""
    found = [("runs", f"{len(runs)}", ", ".join(dict.fromkeys(run.settings.model for run in runs)))]
    headlines = [(name, f) for name, task in TASKS.items() for f in task.figures if f.headline]
    for name, figure in headlines:
        measured = [(m, run) for run in runs if (m := run.scores(figure.name, split, name)) is not None]
        if measured:
            common, _ = Counter(m.sha256 for m, _ in measured).most_common(1)[0]
            best, word = (min, "lowest") if figure.better == "lower" else (max, "highest")
            m, run = best(
                (pair for pair in measured if pair[0].sha256 == common),
                key=lambda pair: pair[0].scores[figure.name],
            )
            value = figure.headline_text(m.scores[figure.name])
            found.append((f"{word} {figure.headline}", value, f"{run.name}, {describe_data(m.data)}"))
    items = (
        tag("div", tag("dt", title), tag("dd", tag("strong", value), tag("span", place)))
        for title, value, place in found
    )
    return tag("dl", *items, class_="tiles")


def data_table(runs: Sequence[Reported]) -> Html:
    corpora = {r.corpus.fingerprint: r.corpus for r in runs if r.corpus is not None}
    gone = [absent(f"The corpus of {r.name} cannot be opened any more.") for r in runs if r.corpus is None]
    head = ["corpus", "sources", "words", "frames", "events a document", *(f"{s} documents" for s in SPLITS)]
    rows = [
        [
            corpus.folder.name,
            ", ".join(Path(source["path"]).name for source in corpus.manifest["sources"]),
            f"{corpus.manifest['words']:,}",
            f"{corpus.manifest['frames']:,}",
            str(corpus.events or "all"),
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
                *(setting_text(run.settings.values().get(name)) for name in differs),
                str(run.settings.seed),
                f"{last['epoch']:g}" if last else "–",
                f"{last['seconds'] / 60:.1f}" if last else "–",
                f"{run.best['ppl']:.2f}" if run.best else "–",
            ]
        )
    return table("Runs, and the settings in which they differ", head, rows, names=2)


def settings_table(runs: Sequence[Reported]) -> Html:
    """Every setting of every run, empty where its model has none; those that differ are marked."""
    rows = []
    for name in TrainSettings.names():
        known = [run.settings.values() for run in runs]
        if any(name in values for values in known):
            cells = [setting_text(values[name]) if name in values else "" for values in known]
            mark = tag("mark", name) if len(set(cells)) > 1 else name
            rows.append([mark, *cells])
    caption = "All settings" + ("; marked where the runs differ" if len(runs) > 1 else "")
    return tag(
        "details",
        tag("summary", "All settings"),
        table(caption, ["setting", *(run.name for run in runs)], rows, names=len(runs) + 1),
    )


def results(runs: Sequence[Reported], published: Published | None = None) -> Iterator[Html]:
    """A table for each task and data; each figure has the published one below it, if there is one."""
    measured = [run for run in runs if run.measured]
    rows = summarize([run.folder for run in measured])
    # Which corpus a split is of needs saying only where there are several.
    several = len({run.corpus.fingerprint for run in measured if run.corpus is not None}) > 1
    owners = {
        m.sha256: f" of {run.corpus.folder.name}"
        for run in measured
        for m in run.measured
        if run.corpus is not None and several
    }
    for name in dict.fromkeys(row.task for row in rows):
        task = TASKS[name]
        yield tag("h3", task.title)
        yield tag("p", task.explanation)
        mine = [row for row in rows if row.task == name]
        for data in dict.fromkeys(row.data for row in mine):
            for digest in dict.fromkeys(row.sha256 for row in mine if row.data == data):
                caption = f"{task.title} on {describe_data(data)}{owners.get(digest, '')}"
                same = [row for row in mine if (row.data, row.sha256) == (data, digest)]
                yield _result_table(caption, task.figures, data, same, published)
            if published is not None:
                yield _published_table(task, data, published)
    if rows:
        note = "A dash: not measured." if published is None else f"{published.note} A dash: not measured."
        yield tag("p", note, class_="note")
    if unmeasured := [run.name for run in runs if not run.measured]:
        yield absent(f"Not measured yet: {', '.join(unmeasured)}. “ssdvae evaluate RUN” measures a run.")


def _result_table(
    caption: str, figures: Sequence[Figure], data: str, rows: Sequence[Row], published: Published | None
) -> Html:
    """One line for each configuration."""
    theirs = {
        (place, figure): p
        for place, row in enumerate(rows)
        for figure in figures
        if published is not None and (p := published.counterpart(row.settings, figure.name, data))
    }
    head = ["model"]
    for figure in figures:
        tables = dict.fromkeys(p.table for (_, f), p in theirs.items() if f == figure)
        cited = "; ".join(published.tables[name] for name in tables) if published else ""
        head.append(join([figure.title, _published(f"paper: {cited}") if cited else None]))
    lines = [
        [_configuration(row)]
        + [
            join([_mean(row, figure), _published(p.printed) if (p := theirs.get((place, figure))) else None])
            for figure in figures
        ]
        for place, row in enumerate(rows)
    ]
    return table(caption, head, lines)


def _configuration(row: Row) -> Html:
    """The model, and below it what sets it apart: columns of their own would push the figures off a phone."""
    apart = [f"{name} {setting_text(value)}" for name, value in row.differs.items()]
    runs = "1 run" if row.runs == 1 else f"{row.runs} runs"
    return join([row.settings.model, tag("small", ", ".join([*apart, runs]))])


def _mean(row: Row, figure: Figure) -> Html:
    """The mean over runs; pointed at, the figure of each run in full."""
    values = ", ".join(map(repr, row.values.get(figure.name, [])))
    return tag("span", row.cell(figure), title=values or None)


def _published(text: str) -> Html:
    return tag("span", text, class_="paper")


def _published_table(task: Task, split: str, published: Published) -> Html:
    """All published figures for a task and split, for whoever wants the other rows."""
    titles = {figure.name: figure.title for figure in task.figures}
    mine = [p for p in published.figures if p.figure in titles and p.split == split]
    if not mine:
        return Html("")
    columns = list(dict.fromkeys((p.table, p.data, p.figure) for p in mine))
    rows: dict[tuple[str, str, str], dict[tuple[str, str, str], str]] = {}
    for p in mine:
        key = (p.model, p.attention or "–", "–" if p.observe is None else f"{p.observe:g}")
        rows.setdefault(key, {})[p.table, p.data, p.figure] = p.printed
    heads = (f"{titles[f]}, {data} ({published.tables[t]})" for t, data, f in columns)
    lines = [[*key, *(cells.get(column, "–") for column in columns)] for key, cells in rows.items()]
    caption = f"The paper's figures, {split} split"
    names = ["model", "attention", "ε"]
    return tag("details", tag("summary", caption), table(caption, [*names, *heads], lines, names=len(names)))
