"""The tables and pictures of reproduction.md, from the figures in docs/cells.

`python docs/reproduction.py` draws the pictures anew, and prints the tables.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from scipy.stats import ttest_ind

from ssdvae.markdown import markdown_table
from ssdvae.paper.figures import published_figures
from ssdvae.report.charts import Axis, Drawing, Mark, Series, curves, padded_range
from ssdvae.report.pictures import Picture

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Seeds:
    """One figure of runs that differ in their seed; no values if there is none."""

    values: list[float]
    mark: str  # what stands beside the figure wherever it is shown

    @classmethod
    def read(cls, sweep: str, row: str, figure: str, data: str = "corpus") -> Seeds:
        """``row`` is the name of the cells without the seed."""
        path = HERE / "cells" / f"{sweep}.csv"
        lines = csv.DictReader(path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
        found = [
            line
            for line in lines
            if (line["cell"].rpartition("-seed")[0], line["figure"], line["data"]) == (row, figure, data)
        ]
        return cls([float(line["value"]) for line in found], found[0]["mark"] if found else "")

    def text(self, unit: float) -> str:
        values = [unit * value for value in self.values]
        spread = f" ± {stdev(values):.1f}" if len(values) > 1 else ""
        return f"{mean(values):.1f}{spread}{self.mark}" if values else "–"


# What scale does: a figure against the training documents, with a curve for each model.

DOCUMENTS = {"wiki3": 3_000, "wiki12": 12_000, "wiki24": 24_000, "wiki46": 46_135}


@dataclass(frozen=True)
class Model:
    name: str
    row: str
    sweep: str = ""  # how the names of its sweeps go on


MODELS = (
    Model("RNNLM", "rnnlm"),
    Model("RNNLM, tied", "rnnlm", "-tied"),
    Model("SSDVAE, ε = 0.4", "ssdvae-0.4"),
    Model("SSDVAE, authors' code", "ssdvae-code-0.4"),
)


def by_documents(model: Model, figure: str) -> dict[int, Seeds]:
    """At the sizes that were run."""
    found = {n: Seeds.read(f"{corpus}{model.sweep}", model.row, figure) for corpus, n in DOCUMENTS.items()}
    return {n: seeds for n, seeds in found.items() if seeds.values}


def picture(title: str, figure: str) -> Drawing:
    series = []
    for colour, model in enumerate(MODELS):
        found = by_documents(model, figure)
        name = model.name + next(iter(found.values())).mark
        notes = {n: f"{name}, {n:,} documents: {mean(seeds.values):.3g}" for n, seeds in found.items()}
        marks = [Mark(n, mean(found[n].values), note) for n, note in notes.items()]
        series.append(Series(name, colour, marks))
    points = [mark for one in series for mark in one.marks]
    across = Axis("training documents", 0, max(mark.x for mark in points))
    up = Axis(title, *padded_range([mark.y for mark in points]))
    return curves(f"{title}, by training documents", across, up, series)


PICTURES = {
    "scale-ppl.svg": ("ppl", "ppl"),
    "scale-likelihood.svg": ("cloze by likelihood", "cloze_nll"),
    "scale-pmi.svg": ("cloze by PMI", "cloze_pmi"),
}


def scale() -> str:
    """What the pictures show."""
    lines = []
    for model in MODELS:
        figures = [(by_documents(model, "ppl"), 1)]
        figures += [(by_documents(model, figure), 100) for figure in ("cloze_nll", "cloze_pmi")]
        for n, seeds in figures[0][0].items():
            texts = [found[n].text(unit) for found, unit in figures]
            lines.append([model.name, f"{n:,}", str(len(seeds.values)), *texts])
    return markdown_table(["", "documents", "seeds", "`ppl`", "cloze, likelihood", "cloze, PMI"], lines)


# With 24,000 documents: all rows, and what makes a difference between them.

OBSERVED = (0.0, 0.4, 0.9)


@dataclass(frozen=True)
class Row:
    name: str
    cells: str  # their name without the seed
    model: str = ""  # in the paper, where it has the row
    observe: float | None = None


ROWS = (
    Row("RNNLM", "rnnlm", "rnnlm"),
    Row("RNNLM + document vector", "rnnlm-document"),
    Row("RNNLM + past vector", "rnnlm-past"),
    Row("RNNLM+ROLE", "rnnlm-role", "rnnlm-role"),
    Row("HAQAE", "haqae", "haqae"),
    *(Row(f"SSDVAE, text, ε = {e:g}", f"ssdvae-{e}", "ssdvae", e) for e in OBSERVED),
    *(Row(f"SSDVAE, code, ε = {e:g}", f"ssdvae-code-{e}", "ssdvae", e) for e in OBSERVED),
)
CLOZE = {
    "Wikipedia, likelihood": ("cloze_nll", "corpus"),
    "New York Times, likelihood": ("cloze_nll", "nyt"),
    "Wikipedia, PMI": ("cloze_pmi", "corpus"),
    "New York Times, PMI": ("cloze_pmi", "nyt"),
}


def perplexities() -> str:
    """As the paper counts, without separators, and what compares all models."""
    figures = {"with separators": "ppl_official", "`ppl`": "ppl", "`ppl_bound`": "ppl_bound"}
    return _table({title: (figure, "corpus") for title, figure in figures.items()}, 1)


def clozes() -> str:
    """In per cent."""
    return _table(CLOZE, 100)


PAPER = {("ppl_official", "corpus"): "wiki", ("cloze_nll", "corpus"): "wiki", ("cloze_nll", "nyt"): "nyt"}
"""Figures that the paper has too, and its name for the data."""


def _table(columns: dict[str, tuple[str, str]], unit: float) -> str:
    head, lines = [""], [[row.name] for row in ROWS]
    for title, (figure, data) in columns.items():
        in_paper = PAPER.get((figure, data))
        head += [f"{title}: paper", "ours"] if in_paper else [title]
        for line, row in zip(lines, ROWS, strict=True):
            if in_paper:
                line.append(_papers(row, figure, in_paper, unit))
            line.append(Seeds.read("wiki24", row.cells, figure, data).text(unit))
    return markdown_table(head, lines)


def _papers(row: Row, figure: str, data: str, unit: float) -> str:
    wanted = (row.model, row.observe, figure, data, "valid")
    for p in published_figures().figures:
        if (p.model, p.observe, p.figure, p.data, p.split) == wanted:
            return f"{unit * p.mean:.1f} ± {unit * p.deviation:.1f}"
    return "–"


DIFFERENCES = {
    **{f"SSDVAE, ε = {e:g}: code against text": (f"ssdvae-code-{e}", f"ssdvae-{e}") for e in OBSERVED},
    "RNNLM: with a document vector against without": ("rnnlm-document", "rnnlm"),
    "RNNLM: with a past vector against without": ("rnnlm-past", "rnnlm"),
    **{f"SSDVAE, text, ε = {e:g}, against RNNLM": (f"ssdvae-{e}", "rnnlm") for e in OBSERVED},
    **{
        f"SSDVAE, code, ε = {e:g} against ε = 0": (f"ssdvae-code-{e}", "ssdvae-code-0.0")
        for e in OBSERVED[1:]
    },
    **{
        f"SSDVAE, code, ε = {e:g}, against RNNLM + document vector": (f"ssdvae-code-{e}", "rnnlm-document")
        for e in OBSERVED
    },
}


def differences() -> str:
    """In points, with 95 % intervals by Welch's t over the seeds."""
    lines = [[name, *_differences(one, other)] for name, (one, other) in DIFFERENCES.items()]
    return markdown_table(["", *CLOZE], lines)


def _differences(one: str, other: str) -> Iterator[str]:
    for figure, data in CLOZE.values():
        a, b = (Seeds.read("wiki24", row, figure, data).values for row in (one, other))
        low, high = ttest_ind(a, b, equal_var=False).confidence_interval()
        yield f"{100 * (mean(a) - mean(b)):+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


TABLES = (perplexities, clozes, differences, scale)

if __name__ == "__main__":
    for name, (title, figure) in PICTURES.items():
        Picture(picture(title, figure)).save(HERE / name)
    for table in TABLES:
        print(table(), end="\n\n")
