"""The tables: the paper's figures and ours side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ssdvae.config import ReproduceSettings, Split, TrainSettings
from ssdvae.config.paper import Version
from ssdvae.data.corpus import Corpus
from ssdvae.evaluation.published import PublishedFigure
from ssdvae.evaluation.summary import Spread
from ssdvae.evaluation.tasks.base import Figure
from ssdvae.paper.claims import Verdict
from ssdvae.paper.evidence import SEEDS
from ssdvae.paper.figures import SOURCE, TABLES, published_figures
from ssdvae.paper.grid import CURVES, VECTORS, Configuration, rows_of, tables
from ssdvae.paper.measured import CLOSE, CORPUS, CURVE_FIGURES, Measured, figure_named
from ssdvae.paper.render import Number, Row, Table

ABLATION, ABLATION_PAPER = "ablation", "6"

CURVES_NOTE = (
    f"Converged is the first validation within {CLOSE - 1:.0%} of the run's own best perplexity. The paper "
    "draws this and prints no figures."
)


def paper_table(table: str) -> str | None:
    """Where one of our tables is in the paper; None if the paper prints no figures for it."""
    if table == ABLATION:
        return ABLATION_PAPER
    task = tables()[table]
    return None if task is None else next((f.paper for f in task.figures if f.paper), None)


def _title_and_note(table: str) -> tuple[str, str]:
    """What a table is called, and how to read it."""
    task = tables()[table]
    if task is None:
        return "Convergence", CURVES_NOTE
    if table == ABLATION:
        return "Addition against concatenation, perplexity", "Lower is better."
    return task.title + (" on single events" if task.single_events else ""), task.explanation


@dataclass(frozen=True)
class Context:
    """What all tables of a sweep have in common."""

    settings: ReproduceSettings
    training: TrainSettings
    corpus: Corpus

    @property
    def cloze(self) -> list[str]:
        """The cloze data that there are: the corpus's own, if it has items, and further files."""
        return [CORPUS] * self.corpus.has_cloze(self.settings.split) + list(self.settings.cloze_files)

    @property
    def setup(self) -> str:
        """What was trained on what, in a sentence."""
        manifest, t, model = self.corpus.manifest, self.training, self.training.model_settings
        vectors = "no pretrained vectors" if t.vectors is None else f"the vectors {t.vectors.name}"
        return (
            f"Ours: {self.corpus.folder.resolve().name}, {self.settings.split} split; "
            f"{manifest['splits']['train']['documents']:,} training documents, {manifest['words']:,} words, "
            f"{manifest['frames']:,} frames; for all models hidden {model.hidden}, layers {model.layers}, "
            f"{vectors}, batch {t.batch}, learning rate {t.learning_rate:g}"
            f"{' decaying to 0' if t.decay else ''}, epochs at most {t.epochs}; "
            "mean ± standard deviation over seeds."
        )


@dataclass(frozen=True)
class Column:
    figure: Figure
    heading: str
    data: str = CORPUS
    paper: bool = False  # whether the numbers are the paper's


def columns_of(table: str, split: Split, cloze: Sequence[str]) -> list[Column]:
    """The figures of a table, with these cloze data; those of the paper come twice, first its own."""
    result = []
    for column in _own_columns(table, cloze):
        if any(_is_papers(p, table, column, split) for p in published_figures().figures):
            result.append(replace(column, heading=f"{column.heading}, paper", paper=True))
            column = replace(column, heading=f"{column.heading}, ours")
        result.append(column)
    return result


def _own_columns(table: str, cloze: Sequence[str]) -> list[Column]:
    """What is measured for a table, first the figures that the paper has too."""
    task = tables()[table]
    if task is None:
        return [Column(figure, figure.title) for figure in CURVE_FIGURES]
    figures = sorted((f for f in task.figures if f.compared), key=lambda figure: figure.paper is None)
    if table == ABLATION:
        figures = [figure for figure in figures if figure.paper]
    if task.takes_cloze_files:
        return [Column(figure, f"{data}, {figure.title}", data) for data in cloze for figure in figures]
    return [Column(figure, figure.title) for figure in figures]


def _is_papers(p: PublishedFigure, table: str, column: Column, split: str) -> bool:
    # The paper's corpus is Wikipedia; ours stands in its place.
    data = published_figures().data if column.data == CORPUS else column.data
    return (p.table, p.figure, p.data, p.split) == (paper_table(table), column.figure.name, data, split)


def papers(
    table: str, row: Configuration, column: Column, settings: ReproduceSettings
) -> PublishedFigure | None:
    """The paper's figure for a row and a column; None where it has none."""
    for p in published_figures().figures:
        mine = (row.model, row.observe, row.attention if p.attention else "")
        if row in VECTORS:
            return None  # not in the paper
        if _is_papers(p, table, column, settings.split) and (p.model, p.observe, p.attention) == mine:
            return p
    return None


def score_table(table: str, measured: Measured, context: Context) -> Table:
    """One row for each configuration."""
    settings = context.settings
    columns = columns_of(table, settings.split, context.cloze)
    rows: list[Row] = []
    for row in rows_of(table, settings):
        found = [None if c.paper else measured.get(row, c.figure.name, c.data) for c in columns]
        numbers = [
            Number.from_paper(papers(table, row, column, settings))
            if column.paper
            else Number.from_spread(spread, column.figure)
            for column, spread in zip(columns, found, strict=True)
        ]
        seeds = max((len(spread.values) for spread in found if spread is not None), default=0)
        rows.append((_names(row, seeds), tuple(numbers)))
    title, note = _title_and_note(table)
    cited = TABLES.get(paper_table(table) or "")
    paper = (
        f" Paper: {SOURCE}, {cited}, on its own corpus of Wikipedia with 40,000 words and 500 frames."
        if cited
        else ""
    )
    return Table(
        f"{table}-{settings.split}",
        title,
        ("model", "ε", "seeds", *(column.heading for column in columns)),
        tuple(rows),
        f"{note} {context.setup}{paper}",
    )


def _names(row: Configuration, seeds: int) -> tuple[str, str, str]:
    return row.label, "–" if row.observe is None else f"{row.observe:g}", str(seeds)


def curve_table(measured: Measured, context: Context) -> Table:
    """The perplexity of the validation split at each validation, over the runs that came so far."""
    rows_with = [row for row in rows_of(CURVES, context.settings) if row in measured.curves]
    steps: dict[int, float] = {}
    values: dict[tuple[int, Configuration], list[float]] = {}
    for row in rows_with:
        for record in (record for curve in measured.curves[row] for record in curve):
            steps[record["step"]] = record["epoch"]
            values.setdefault((record["step"], row), []).append(record["ppl"])
    marks = {row: measured.marks.get((row, "ppl_best", CORPUS), "") for row in rows_with}
    rows: list[Row] = [
        (
            (str(step), f"{epoch:g}"),
            tuple(
                Number.from_spread(Spread(tuple(found), marks[row]), figure_named("ppl"))
                if (found := values.get((step, row)))
                else None
                for row in rows_with
            ),
        )
        for step, epoch in sorted(steps.items())
    ]
    heads = [
        f"{model}{'' if observe == '–' else f', ε = {observe}'}"
        for model, observe, _ in (_names(row, 0) for row in rows_with)
    ]
    return Table(
        f"curves-by-step-{context.settings.split}",
        "Validation perplexity by step",
        ("step", "epoch", *heads),
        tuple(rows),
        "Perplexity over words, separators not counted, always of the validation split; a mean is over the "
        f"runs that came so far. {context.setup}",
    )


TITLES: dict[Version, str] = {"paper": "as the paper's text has it", "code": "as the authors' code had it"}


def claim_table(verdicts: Sequence[Verdict], context: Context) -> Table:
    """A claim a line; where SSDVAE is read in two ways, the verdicts stand side by side."""
    versions = list(dict.fromkeys(v.version for v in verdicts))
    by_claim: dict[str, list[Verdict]] = {}
    for v in verdicts:
        by_claim.setdefault(f"{v.number}. {v.claim}", []).append(v)
    about = [f", {TITLES[version]}" if len(versions) > 1 else "" for version in versions]
    return Table(
        f"claims-{context.settings.split}",
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
    names: Sequence[str], measured: Measured, verdicts: Sequence[Verdict], context: Context
) -> list[Table]:
    """The tables that were asked for, first the verdicts."""
    result = [claim_table(verdicts, context)]
    for name in names:
        result.append(score_table(name, measured, context))
        if name == CURVES:
            result.append(curve_table(measured, context))
    return result
