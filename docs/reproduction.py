"""The tables and pictures of reproduction.md, from the figures in docs/cells.

`python docs/reproduction.py` draws the pictures anew, and prints the tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scipy.stats import ttest_ind

from ssdvae.evaluation.summary import Spread
from ssdvae.evaluation.task import find_figure
from ssdvae.models.card import markdown_table
from ssdvae.report.charts import Axis, Curves, Drawing, Mark, Series, padded_range
from ssdvae.report.pictures import Picture
from ssdvae.reproduction.paper import (
    HAQAE,
    RNNLM,
    RNNLM_CONTEXT,
    RNNLM_DOCUMENT,
    RNNLM_ROLE,
    RNNLMS_WITH_VECTOR,
    Configuration,
    Trial,
    published_figures,
    ssdvae_row,
    with_version,
)
from ssdvae.reproduction.results import ResultsCache, ResultTable

HERE = Path(__file__).parent


def code_row(observe: float) -> Configuration:
    return with_version(ssdvae_row(observe), "code")


OBSERVED, SEEDS = (0.0, 0.4, 0.9), (1, 2, 3)

ROWS = {
    **{row.label: row for row in (RNNLM, RNNLM_DOCUMENT, RNNLM_CONTEXT, RNNLM_ROLE, HAQAE)},
    **{f"SSDVAE, text, ε = {e:g}": ssdvae_row(e) for e in OBSERVED},
    **{f"SSDVAE, code, ε = {e:g}": code_row(e) for e in OBSERVED},
}


CODE_ROWS = [code_row(e) for e in OBSERVED]


@cache
def results(sweep: str) -> ResultTable:
    """Return the figures of a sweep in docs/cells."""
    figures = ResultsCache.read(HERE / "cells" / f"{sweep}.csv").figures
    return ResultTable(figures, [Trial(row, seed) for row in ROWS.values() for seed in SEEDS])


def text(found: Spread | None, name: str, unit: float) -> str:
    """Mean ± deviation, with one digit after the point."""
    figure = find_figure(name)
    assert figure is not None, name
    if found is None:
        return "–"
    return Spread(tuple(unit * value for value in found.values), found.mark).text(figure, "{:.1f}".format)


# What scale does: a figure against the training documents, with a curve for each model.

DOCUMENTS = {"wiki3": 3_000, "wiki12": 12_000, "wiki24": 24_000, "wiki46": 46_135}


@dataclass(frozen=True)
class Model:
    name: str
    row: Configuration
    sweep: str = ""  # how the names of its sweeps go on


MODELS = (
    Model("RNNLM", RNNLM),
    Model("RNNLM, tied", RNNLM, "-tied"),
    Model("SSDVAE, ε = 0.4", ssdvae_row(0.4)),
    Model("SSDVAE, authors' code", code_row(0.4)),
)


def by_documents(model: Model, figure: str) -> dict[int, Spread]:
    """At the sizes that were run."""
    sweeps = {n: f"{corpus}{model.sweep}" for corpus, n in DOCUMENTS.items()}
    run = {n: sweep for n, sweep in sweeps.items() if (HERE / "cells" / f"{sweep}.csv").exists()}
    found = ((n, results(sweep).spread(model.row, figure)) for n, sweep in run.items())
    return {n: one for n, one in found if one is not None}


def picture(title: str, figure: str) -> Drawing:
    series = []
    for colour, model in enumerate(MODELS):
        found = by_documents(model, figure)
        name = model.name + next(iter(found.values())).mark
        marks = [Mark(n, s.mean, f"{name}, {n:,} documents: {s.mean:.3g}") for n, s in found.items()]
        series.append(Series(name, colour, marks))
    points = [mark for one in series for mark in one.marks]
    across = Axis("training documents", 0, max(mark.x for mark in points))
    up = Axis(title, *padded_range([mark.y for mark in points]))
    return Curves(f"{title}, by training documents", across, up, series)


PICTURES = {
    "scale-ppl.svg": ("ppl", "ppl"),
    "scale-likelihood.svg": ("cloze by likelihood", "cloze_nll"),
    "scale-pmi.svg": ("cloze by PMI", "cloze_pmi"),
}


# With 24,000 documents: all rows, and what makes a difference between them.

CLOZE = {
    "Wikipedia, likelihood": ("cloze_nll", "corpus"),
    "New York Times, likelihood": ("cloze_nll", "nyt"),
    "Wikipedia, PMI": ("cloze_pmi", "corpus"),
    "New York Times, PMI": ("cloze_pmi", "nyt"),
}


def perplexities() -> str:
    """As the paper counts, without separators, and what compares all models."""
    figures = {
        "`ppl_with_separators`": "ppl_with_separators",
        "`ppl`, ours": "ppl",
        "`ppl_bound`, ours": "ppl_bound",
    }
    return _table({title: (figure, "corpus") for title, figure in figures.items()}, 1)


def clozes() -> str:
    """In per cent."""
    return _table(CLOZE, 100)


PAPER = {
    ("ppl_with_separators", "corpus"): "wiki",
    ("cloze_nll", "corpus"): "wiki",
    ("cloze_nll", "nyt"): "nyt",
}
"""Figures that the paper has too, and its name for the data."""


def _table(columns: dict[str, tuple[str, str]], unit: float) -> str:
    head, lines = [""], [[name] for name in ROWS]
    for title, (figure, data) in columns.items():
        in_paper = PAPER.get((figure, data))
        head += [f"{title}, paper", f"{title}, ours"] if in_paper else [title]
        for line, row in zip(lines, ROWS.values(), strict=True):
            if in_paper:
                line.append(_papers(row, figure, in_paper, unit))
            line.append(text(results("wiki24").spread(row, figure, data), figure, unit))
    return markdown_table(head, lines)


def _papers(row: Configuration, figure: str, data: str, unit: float) -> str:
    if row in CODE_ROWS:
        return "(as text)"
    wanted = (row.model, row.observe, figure, data, "valid")
    for p in published_figures().figures:
        if row not in RNNLMS_WITH_VECTOR and (p.model, p.observe, p.figure, p.data, p.split) == wanted:
            return f"{unit * p.mean:.1f} ± {unit * p.deviation:.1f}"
    return "–"


DIFFERENCES = {
    **{f"SSDVAE, ε = {e:g}: code against text": (code_row(e), ssdvae_row(e)) for e in OBSERVED},
    "RNNLM: with a document vector against without": (RNNLM_DOCUMENT, RNNLM),
    "RNNLM: with a context vector against without": (RNNLM_CONTEXT, RNNLM),
    **{f"SSDVAE, text, ε = {e:g}, against RNNLM": (ssdvae_row(e), RNNLM) for e in OBSERVED},
    **{f"SSDVAE, text, ε = {e:g} against ε = 0": (ssdvae_row(e), ssdvae_row(0.0)) for e in OBSERVED[1:]},
    **{f"SSDVAE, code, ε = {e:g} against ε = 0": (code_row(e), code_row(0.0)) for e in OBSERVED[1:]},
    **{f"SSDVAE, code, ε = {e:g}, against HAQAE": (code_row(e), HAQAE) for e in OBSERVED},
}


def differences() -> str:
    """In points, with 95 % intervals by Welch's t over the seeds."""
    lines = [[name, *_differences(one, other)] for name, (one, other) in DIFFERENCES.items()]
    return markdown_table(["", *CLOZE], lines)


def _differences(one: Configuration, other: Configuration) -> Iterator[str]:
    for figure, data in CLOZE.values():
        a, b = (results("wiki24").spread(row, figure, data) for row in (one, other))
        assert a is not None, one.name
        assert b is not None, other.name
        low, high = ttest_ind(a.values, b.values, equal_var=False).confidence_interval()
        yield f"{100 * (a.mean - b.mean):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


# What parts of a trained model do: docs/cells/swaps.json has what `explain --swap … --json` printed of each.

PARTS = {"document-vector": "document vector", "frames": "frames", "state": "first state of the decoder"}


def swapped_clozes() -> str:
    """By likelihood / by PMI, per cent, with a part replaced by its mean or by another document's."""
    columns = {"cloze_nll": 100, "cloze_pmi": 100}
    runs = json.loads((HERE / "cells" / "swaps.json").read_text(encoding="utf-8"))
    found = {(run, row["part"], row["way"]): row["figures"] for run, rows in runs.items() for row in rows}
    whats = [(None, None), *((part, way) for part in PARTS for way in ("mean", "other"))]
    lines = []
    for part, way in whats:
        by = {None: "", "mean": "the mean", "other": "another's"}[way]
        cells = []
        for run in runs:
            figures = found.get((run, part, way))
            shown = (
                "–" if figures is None else " / ".join(f"{u * figures[n]:.1f}" for n, u in columns.items())
            )
            cells.append(shown)
        lines.append([PARTS.get(part, "nothing"), by, *cells])
    return markdown_table(["what is replaced", "by", *runs], lines)


TABLES = (perplexities, clozes, differences, swapped_clozes)

if __name__ == "__main__":
    for name, (title, figure) in PICTURES.items():
        Picture(picture(title, figure)).save(HERE / "pictures" / name)
    for table in TABLES:
        print(table(), end="\n\n")
