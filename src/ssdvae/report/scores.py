"""How good the models are: their scores, beside the best possible ones and published ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ssdvae.config import Split
from ssdvae.evaluation.published import Published, PublishedFigure
from ssdvae.evaluation.summary import Row, summarize
from ssdvae.evaluation.tasks import TASKS
from ssdvae.evaluation.tasks.base import Figure, Task
from ssdvae.report.html import Html, absent, join, table, tag
from ssdvae.report.runs import Reported, describe_data, setting_text

Best = Mapping[str, float]
"""By the name of a figure, the best that any model could have."""


def tiles(runs: Sequence[Reported], split: Split, best: Best) -> Html | None:
    """The figures that one looks for first, on the data that most runs were measured on."""
    headlines = [(name, f) for name, task in TASKS.items() for f in task.figures if f.headline]
    found = [tile for name, figure in headlines if (tile := _tile(runs, split, name, figure, best))]
    return tag("dl", *found, class_="tiles") if found else None


def _tile(runs: Sequence[Reported], split: Split, task: str, figure: Figure, best: Best) -> Html | None:
    measured = [(m, run) for run in runs if (m := run.scores(figure.name, split, task)) is not None]
    if not measured:
        return None
    common, _ = Counter(m.sha256 for m, _ in measured).most_common(1)[0]
    choose, word = (min, "lowest") if figure.better == "lower" else (max, "highest")
    m, run = choose(
        (pair for pair in measured if pair[0].sha256 == common),
        key=lambda pair: pair[0].scores[figure.name],
    )
    several = len(runs) > 1
    beside = []
    if figure.name in best:
        beside.append(f"best possible: {figure.headline_text(best[figure.name])}")
    if figure.floor is not None and (floor := m.scores.get(figure.floor.score)) is not None:
        beside.append(f"{figure.floor.title}: {figure.headline_text(floor)}")
    beside.append(f"{run.name} on {describe_data(m.data)}" if several else f"on {describe_data(m.data)}")
    return tag(
        "div",
        tag("dt", f"{word} {figure.headline}" if several else str(figure.headline)),
        tag("dd", tag("strong", figure.headline_text(m.scores[figure.name]))),
        *(tag("dd", line) for line in beside),
    )


def results(runs: Sequence[Reported], published: Published | None, best: Best) -> Iterator[Html]:
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
        mine = [row for row in rows if row.task == name]
        for data in dict.fromkeys(row.data for row in mine):
            for digest in dict.fromkeys(row.sha256 for row in mine if row.data == data):
                caption = f"{task.title} on {describe_data(data)}{owners.get(digest, '')}"
                same = [row for row in mine if (row.data, row.sha256) == (data, digest)]
                yield _result_table(caption, task.figures, data, same, published, best)
            if published is not None:
                yield _published_table(task, data, published)
        yield tag("p", task.explanation, class_="note")
    if rows and published is not None:
        yield tag("p", published.note, class_="note")
    if unmeasured := [run.name for run in runs if not run.measured]:
        yield absent(f"Not measured yet: {', '.join(unmeasured)}. “ssdvae evaluate RUN” measures a run.")


def _result_table(
    caption: str,
    figures: Sequence[Figure],
    data: str,
    rows: Sequence[Row],
    published: Published | None,
    best: Best,
) -> Html:
    """One line for each configuration, and one for the best possible; figures that none has are left out."""
    figures = [figure for figure in figures if any(row.values.get(figure.name) for row in rows)]
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
    lines: list[Sequence[str]] = [
        [_configuration(row)]
        + [
            join(
                [
                    _mean(row, figure),
                    _published(_in_units(p, figure)) if (p := theirs.get((place, figure))) else None,
                ]
            )
            for figure in figures
        ]
        for place, row in enumerate(rows)
    ]
    if any(figure.name in best for figure in figures):
        shown = (figure.headline_text(best[figure.name]) if figure.name in best else "" for figure in figures)
        lines.append([tag("em", "best possible"), *shown])
    return table(caption, head, lines)


def _configuration(row: Row) -> Html:
    """The model, and below it what sets it apart: columns of their own would push the figures off a phone."""
    apart = [f"{name} {setting_text(value)}" for name, value in row.differs.items()]
    runs = "1 run" if row.runs == 1 else f"{row.runs} runs"
    return join([row.settings.model, tag("small", ", ".join([*apart, runs]))])


def _mean(row: Row, figure: Figure) -> Html:
    """The mean over runs, in the units of the tiles; pointed at, the figure of each run in full."""
    values = ", ".join(map(repr, row.values.get(figure.name, [])))
    return tag("span", row.cell(figure, figure.headline_text), title=values or None)


def _published(text: str) -> Html:
    return tag("span", text, class_="paper")


def _in_units(published: PublishedFigure, figure: Figure) -> str:
    """As printed, but a share in per cent, as ours are."""
    if not figure.share:
        return published.printed
    return f"{figure.headline_text(published.mean)} ± {figure.headline_text(published.deviation)}"


def _published_table(task: Task, split: str, published: Published) -> Html:
    """All published figures for a task and split, for whoever wants the other rows."""
    figures = {figure.name: figure for figure in task.figures}
    mine = [p for p in published.figures if p.figure in figures and p.split == split]
    if not mine:
        return Html("")
    columns = list(dict.fromkeys((p.table, p.data, p.figure) for p in mine))
    rows: dict[tuple[str, str, str], dict[tuple[str, str, str], str]] = {}
    for p in mine:
        key = (p.model, p.attention or "–", "–" if p.observe is None else f"{p.observe:g}")
        rows.setdefault(key, {})[p.table, p.data, p.figure] = _in_units(p, figures[p.figure])
    heads = (f"{figures[f].title}, {data} ({published.tables[t]})" for t, data, f in columns)
    lines = [[*key, *(cells.get(column, "–") for column in columns)] for key, cells in rows.items()]
    caption = f"The paper's figures, {split} split"
    names = ["model", "attention", "ε"]
    return tag("details", tag("summary", caption), table(caption, [*names, *heads], lines, names=len(names)))
