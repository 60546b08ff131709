"""What was trained on what, and the scores beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ssdvae.config import SPLITS, Split, TrainSettings
from ssdvae.evaluation.summary import FIGURES, Row, differing, summarize
from ssdvae.paper.figures import SOURCE, TABLES, counterpart, paper_figures
from ssdvae.report.html import Html, absent, join, table, tag
from ssdvae.report.runs import Reported, describe_data

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
    "attention_entropy": "entropy",
    "attention_most_entropy": "entropy at most",
    "attention_verbs": "on verbs",
    "attention_own_verb": "on the verb of the event",
    "attention_own_event": "on the event",
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
    "attention": "Where the encoder looks when it infers the frame of an event: the entropy of its "
    "attention, in nats, and the shares that go to verbs, to the verb of the event itself, and to that "
    "event. Attention that is spread evenly has a quarter on verbs.",
}


def shown(value: Any) -> str:
    """A setting as a reader wants it: of a path, the name."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.name if isinstance(value, Path) else str(value)


def tiles(runs: Sequence[Reported], split: Split) -> Html:
    """The figures that one looks for first, on the data that most runs were measured on."""
    found = [("runs", f"{len(runs)}", ", ".join(dict.fromkeys(run.settings.model for run in runs)))]
    for task, figure, title, best in (
        ("perplexity", "ppl_bound", "lowest perplexity bound", min),
        ("frames", "frame_accuracy", "highest frame accuracy", max),
        ("cloze", "cloze_pmi", "highest cloze accuracy", max),
    ):
        measured = [(m, run) for run in runs if (m := run.scores(task, figure, split)) is not None]
        if measured:
            common, _ = Counter(m.sha256 for m, _ in measured).most_common(1)[0]
            m, run = best(
                (pair for pair in measured if pair[0].sha256 == common),
                key=lambda pair: pair[0].scores[figure],
            )
            value = f"{m.scores[figure]:.2f}" if task == "perplexity" else f"{m.scores[figure]:.1%}"
            found.append((title, value, f"{run.name}, {describe_data(m.data)}"))
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
                *(shown(run.settings.values().get(name)) for name in differs),
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
            cells = [shown(values[name]) if name in values else "" for values in known]
            mark = tag("mark", name) if len(set(cells)) > 1 else name
            rows.append([mark, *cells])
    caption = "All settings" + ("; marked where the runs differ" if len(runs) > 1 else "")
    return tag(
        "details",
        tag("summary", "All settings"),
        table(caption, ["setting", *(run.name for run in runs)], rows, names=len(runs) + 1),
    )


def results(runs: Sequence[Reported]) -> Iterator[Html]:
    """A table for each task and data, with the paper's figures below those that it has too."""
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
    for task in dict.fromkeys(row.task for row in rows):
        yield tag("h3", task.capitalize())
        yield tag("p", EXPLAINED[task])
        mine = [row for row in rows if row.task == task]
        for data in dict.fromkeys(row.data for row in mine):
            for digest in dict.fromkeys(row.sha256 for row in mine if row.data == data):
                caption = f"{task.capitalize()} on {describe_data(data)}{owners.get(digest, '')}"
                same = [row for row in mine if (row.data, row.sha256) == (data, digest)]
                yield _result_table(caption, FIGURES[task], data, same)
            yield _whole_paper(FIGURES[task], data)
    if rows:
        yield tag(
            "p",
            f"The paper's figures ({SOURCE}), in italics, are means and deviations of three runs on its own "
            "corpus of Wikipedia, with 40,000 words and 500 frames. A run on any other corpus cannot be held "
            "against them. A dash: not measured.",
            class_="note",
        )
    if unmeasured := [run.name for run in runs if not run.measured]:
        yield absent(f"Not measured yet: {', '.join(unmeasured)}. “ssdvae evaluate RUN” measures a run.")


def _result_table(caption: str, figures: Sequence[str], data: str, rows: Sequence[Row]) -> Html:
    papers = {(row, f): counterpart(rows[row].settings, f, data) for row in range(len(rows)) for f in figures}
    tables = {
        f: [p.table for (_, figure), p in papers.items() if p is not None and figure == f] for f in figures
    }
    head = ["model"]
    for f in figures:
        cited = "; ".join(dict.fromkeys(TABLES[table] for table in tables[f]))
        head.append(join([NAMES[f], _paper(f"paper: {cited}") if cited else None]))
    lines = [
        [_configuration(row)]
        + [join([_mean(row, f), _paper(p.printed) if (p := papers[number, f]) else None]) for f in figures]
        for number, row in enumerate(rows)
    ]
    return table(caption, head, lines)


def _configuration(row: Row) -> Html:
    """The model, and below it what sets it apart: columns of their own would push the figures off a phone."""
    apart = [f"{name} {shown(value)}" for name, value in row.differs.items()]
    runs = "1 run" if row.runs == 1 else f"{row.runs} runs"
    return join([row.settings.model, tag("small", ", ".join([*apart, runs]))])


def _mean(row: Row, figure: str) -> Html:
    """The mean over runs; pointed at, the figure of each run in full."""
    values = ", ".join(map(repr, row.values.get(figure, [])))
    return tag("span", row.cell(figure), title=values or None)


def _paper(text: str) -> Html:
    return tag("span", text, class_="paper")


def _whole_paper(figures: Sequence[str], split: str) -> Html:
    """All that the paper has for a task and split, for whoever wants the other rows."""
    mine = [p for p in paper_figures() if p.figure in figures and p.split == split]
    if not mine:
        return Html("")
    columns = list(dict.fromkeys((p.table, p.data, p.figure) for p in mine))
    rows: dict[tuple[str, str, str], dict[tuple[str, str, str], str]] = {}
    for p in mine:
        key = (p.model, p.attention or "–", "–" if p.observe is None else f"{p.observe:g}")
        rows.setdefault(key, {})[p.table, p.data, p.figure] = p.printed
    head = ["model", "attention", "ε", *(f"{NAMES[f]}, {data} ({TABLES[t]})" for t, data, f in columns)]
    lines = [[*key, *(cells.get(column, "–") for column in columns)] for key, cells in rows.items()]
    caption = f"The paper's figures, {split} split"
    return tag("details", tag("summary", caption), table(caption, head, lines, names=3))
