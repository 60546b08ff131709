"""The tables: the paper's figures and ours side by side, as Markdown, LaTeX and CSV with the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas

from ssdvae.data.corpus import Corpus
from ssdvae.data.options import Split
from ssdvae.evaluation.summary import PublishedFigure, Spread
from ssdvae.evaluation.task import Figure
from ssdvae.models.card import markdown_table, markdown_text
from ssdvae.reproduction.claims import SEEDS, Verdict
from ssdvae.reproduction.options import ReproduceOptions, Version
from ssdvae.reproduction.paper import (
    ABLATION,
    CITATIONS,
    CURVES,
    SOURCE,
    Configuration,
    published_figures,
    table_rows,
    table_tasks,
)
from ssdvae.reproduction.results import CONVERGED, CORPUS, CURVE_FIGURES, ResultTable, figure_named
from ssdvae.training.options import TrainOptions

NOTHING = "–"


@dataclass(frozen=True)
class Number:
    """A mean and its deviation, and how they are written."""

    mean: float
    deviation: float | None
    text: str
    mark: str = ""  # is in the text, too

    @classmethod
    def from_spread(cls, spread: Spread | None, figure: Figure) -> Number | None:
        if spread is None:
            return None
        return cls(spread.mean, spread.deviation, spread.text(figure), spread.mark)

    @classmethod
    def from_paper(cls, figure: PublishedFigure | None) -> Number | None:
        """Return a figure as printed: with the paper's digits, not ours."""
        return None if figure is None else cls(figure.mean, figure.deviation, figure.printed)


Row = tuple[tuple[str, ...], tuple[Number | None, ...]]
"""The names of a row, and its numbers."""


@dataclass(frozen=True)
class Table:
    """A table that can be written in every format."""

    name: str  # of its files
    title: str
    head: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str

    @property
    def names(self) -> int:
        """The number of columns before the numbers."""
        return len(self.rows[0][0]) if self.rows else len(self.head)

    def lines(self) -> list[list[str]]:
        """Return the rows as text."""
        return [
            [*names, *(NOTHING if number is None else number.text for number in numbers)]
            for names, numbers in self.rows
        ]


# Contents.


def paper_table(table: str) -> str | None:
    """Return the paper's number of one of our tables; None if the paper prints no figures for it."""
    if table == ABLATION:
        return "6"
    task = table_tasks()[table]
    return None if task is None else next((f.paper for f in task.figures if f.paper), None)


def _title_and_note(table: str) -> tuple[str, str]:
    task = table_tasks()[table]
    if task is None:
        within = f"within {CONVERGED - 1:.0%} of the run's own best perplexity"
        note = f"Converged is the first validation {within}. The paper draws this and prints no figures."
        return "Convergence", note
    if table == ABLATION:
        return "Addition against concatenation, perplexity", "Lower is better."
    return task.title + (" on single events" if task.single_events else ""), task.explanation


@dataclass(frozen=True)
class TableContext:
    """The options and the corpus of a sweep, which all its tables share."""

    options: ReproduceOptions
    training: TrainOptions
    corpus: Corpus

    @property
    def cloze(self) -> list[str]:
        """The names of the cloze data: the corpus, if it has items, and further files."""
        return [CORPUS] * self.corpus.has_items("cloze", self.options.split) + list(self.options.cloze_files)

    @property
    def setup(self) -> str:
        """The corpus and the options in a sentence."""
        manifest, t, model = self.corpus.manifest, self.training, self.training.model_options
        vectors = "no pretrained vectors" if t.vectors is None else f"the vectors {t.vectors.name}"
        return (
            f"Ours: {self.corpus.folder.resolve().name}, {self.options.split} split; "
            f"{manifest['splits']['train']['documents']:,} training documents, {manifest['words']:,} words, "
            f"{manifest['frames']:,} frames; for all models hidden {model.hidden}, layers {model.layers}, "
            f"{vectors}, batch {t.batch}, learning rate {t.learning_rate:g}"
            f"{' decaying to 0' if t.decay else ''}, epochs at most {t.epochs}; "
            "mean ± standard deviation over seeds."
        )


@dataclass(frozen=True)
class Column:
    """A column of numbers: a figure on some data, as measured or, with ``published`` ones, as printed."""

    figure: Figure
    heading: str
    data: str = CORPUS
    published: tuple[PublishedFigure, ...] = ()

    def printed(self, row: Configuration) -> PublishedFigure | None:
        """Return the paper's figure for a row; None where it has none."""
        options = row.train_options({}, seed=1)
        return next((p for p in self.published if p.is_of(options)), None)


def table_columns(table: str, split: Split, cloze: Sequence[str]) -> list[Column]:
    """Return the columns of a table. Figures that the paper has come first and twice, its own before ours."""
    task, paper = table_tasks()[table], published_figures()
    if task is None:
        return [Column(figure, figure.title) for figure in CURVE_FIGURES]
    figures = sorted((f for f in task.figures if f.compared), key=lambda figure: figure.paper is None)
    if table == ABLATION:
        figures = [figure for figure in figures if figure.paper]
    columns = []
    for data in cloze if task.takes_cloze_files else [CORPUS]:
        for figure in figures:
            title = f"{data}, {figure.title}" if task.takes_cloze_files else figure.title
            # The paper's corpus is Wikipedia; ours stands in its place.
            place = (paper_table(table), split, figure.name, paper.data if data == CORPUS else data)
            published = tuple(p for p in paper.figures if (p.table, p.split, p.figure, p.data) == place)
            if published:
                columns.append(Column(figure, f"{title}, paper", data, published))
            columns.append(Column(figure, f"{title}, ours" if published else title, data))
    return columns


def score_table(table: str, results: ResultTable, context: TableContext) -> Table:
    """Return the table of a task: a row for each configuration."""
    options = context.options
    columns = table_columns(table, options.split, context.cloze)
    rows: list[Row] = []
    for row in table_rows(table, options):
        spreads = [None if c.published else results.spread(row, c.figure.name, c.data) for c in columns]
        numbers = [
            Number.from_paper(column.printed(row))
            if column.published
            else Number.from_spread(spread, column.figure)
            for column, spread in zip(columns, spreads, strict=True)
        ]
        seeds = max((len(spread.values) for spread in spreads if spread is not None), default=0)
        rows.append(((row.label, _observe_text(row), str(seeds)), tuple(numbers)))
    title, note = _title_and_note(table)
    cited = CITATIONS.get(paper_table(table) or "")
    paper = f" Paper: {SOURCE}, {cited}, on its own corpus of Wikipedia with 40,000 words and 500 frames."
    return Table(
        f"{table}-{options.split}",
        title,
        ("model", "ε", "seeds", *(column.heading for column in columns)),
        tuple(rows),
        f"{note} {context.setup}{paper if cited else ''}",
    )


def _observe_text(row: Configuration) -> str:
    return NOTHING if row.observe is None else f"{row.observe:g}"


def curve_table(results: ResultTable, context: TableContext) -> Table:
    """Return the perplexity of the validation split at each validation, over the runs that came so far."""
    curves = results.curves
    rows = [row for row in table_rows(CURVES, context.options) if row.name in set(curves["configuration"])]
    curves = curves[curves["configuration"].isin([row.name for row in rows])]
    values = curves.groupby(["step", "configuration"])["value"].agg(tuple)
    best = {row: results.spread(row, "ppl_best") for row in rows}
    marks = {row.name: "" if spread is None else spread.mark for row, spread in best.items()}
    spreads = {(step, name): Spread(v, marks[name]) for (step, name), v in values.items()}
    epochs = curves.groupby("step")["epoch"].last()
    heads = [f"{row.label}{'' if row.observe is None else f', ε = {_observe_text(row)}'}" for row in rows]
    return Table(
        f"curves-by-step-{context.options.split}",
        "Validation perplexity by step",
        ("step", "epoch", *heads),
        tuple(
            (
                (f"{step:.0f}", f"{epoch:g}"),
                tuple(Number.from_spread(spreads.get((step, row.name)), figure_named("ppl")) for row in rows),
            )
            for step, epoch in epochs.items()
        ),
        "Perplexity over words, separators not counted, always of the validation split; a mean is over the "
        f"runs that came so far. {context.setup}",
    )


TITLES: dict[Version, str] = {"paper": "as the paper's text has it", "code": "as the authors' code had it"}


def claim_table(verdicts: Sequence[Verdict], context: TableContext) -> Table:
    """Return the claims, one a line; the verdicts on two versions of SSDVAE stand side by side."""
    versions = list(dict.fromkeys(v.version for v in verdicts))
    by_claim: dict[str, list[Verdict]] = {}
    for v in verdicts:
        by_claim.setdefault(f"{v.number}. {v.claim}", []).append(v)
    about = [f", {TITLES[version]}" if len(versions) > 1 else "" for version in versions]
    return Table(
        f"claims-{context.options.split}",
        "The paper's claims",
        ("claim", *(f"{what}{of}" for what in ("verdict", "evidence") for of in about)),
        tuple(
            ((claim, *(v.verdict for v in found), *(v.evidence for v in found)), ())
            for claim, found in by_claim.items()
        ),
        "Clearly: the difference of two means is larger than its standard error over seeds. A claim is "
        f"judged if all figures behind it have {SEEDS} seeds or more. {context.setup}",
    )


def all_tables(
    names: Sequence[str], results: ResultTable, verdicts: Sequence[Verdict], context: TableContext
) -> list[Table]:
    """Return the tables of these names, after that of the claims."""
    tables = [claim_table(verdicts, context)]
    for name in names:
        tables.append(score_table(name, results, context))
        if name == CURVES:
            tables.append(curve_table(results, context))
    return tables


# Formats.


def markdown(table: Table) -> str:
    body = markdown_table(table.head, table.lines())
    return f"**{markdown_text(table.title)}**\n\n{body}\n\n{markdown_text(table.note)}\n"


def csv_text(table: Table) -> str:
    """Return CSV in which a number has two columns, mean and deviation, with all digits.

    An empty one was not measured, or has no deviation. Figures of which some are marked have a third column.
    """
    names = pandas.DataFrame([row_names for row_names, _ in table.rows])
    columns: list[pandas.Series] = [names[place] for place in names]
    heads = [*table.head[: table.names]]
    numbers = zip(*(values for _, values in table.rows), strict=True)
    for head, values in zip(table.head[table.names :], numbers, strict=True):
        parts = {head: "mean", f"{head}, deviation": "deviation"}
        if any(value is not None and value.mark for value in values):
            parts[f"{head}, mark"] = "mark"
        heads += parts
        columns += [
            pandas.Series([value and getattr(value, part) for value in values]) for part in parts.values()
        ]
    frame = pandas.concat(columns, axis=1, keys=range(len(columns)))
    # A text has one line in any format; a lone carriage return would break the file.
    frame = frame.map(lambda cell: " ".join(cell.split()) if isinstance(cell, str) else cell)
    text: str = frame.to_csv(header=[" ".join(head.split()) for head in heads], index=False)
    return text


LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "[": "{[}", "*": "{*}"},
        **{"±": r"$\pm$", "†": r"\dag{}", "ε": r"$\varepsilon$", "≤": r"$\leq$", "≥": r"$\geq$"},
        **{"–": "--", "“": "``", "”": "''", '"': "''"},
    }
)
"""Characters that LaTeX would take for something else, or does not know without a package."""

WIDE = 40
"""A column with a longer text than this is broken into lines."""


def latex(table: Table) -> str:
    """Return a floating table that needs no package."""
    lines = table.lines()
    columns = [
        "p{0.35\\linewidth}"
        if any(len(line[place]) > WIDE for line in lines)
        else ("l" if place < table.names else "r")
        for place in range(len(table.head))
    ]
    head, *body = (
        " & ".join(" ".join(cell.translate(LATEX).split()) for cell in line) + r" \\"
        for line in [list(table.head), *lines]
    )
    begin = [r"\begin{table}", r"\centering", rf"\begin{{tabular}}{{{''.join(columns)}}}", r"\hline", head]
    caption = rf"\caption{{{' '.join(f'{table.title}. {table.note}'.translate(LATEX).split())}}}"
    end = [r"\hline", r"\end{tabular}", caption, rf"\label{{tab:{table.name}}}", r"\end{table}", ""]
    return "\n".join([*begin, r"\hline", *body, *end])


FORMATS: Sequence[tuple[str, Callable[[Table], str]]] = (
    (".md", markdown),
    (".tex", latex),
    (".csv", csv_text),
)
"""The files of a table."""
