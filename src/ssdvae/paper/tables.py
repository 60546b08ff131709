"""The tables: the paper's figures and ours side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ssdvae.config import ReproduceSettings, Split, TrainSettings
from ssdvae.data.corpus import Corpus
from ssdvae.evaluation.summary import Spread, digits
from ssdvae.paper.claims import Verdict
from ssdvae.paper.figures import SOURCE, TABLES, PaperFigure, paper_figures
from ssdvae.paper.grid import Configuration, rows_of
from ssdvae.paper.measured import CLOSE, CORPUS, Measured
from ssdvae.paper.render import Figure, Row, Table
from ssdvae.report.overview import NAMES

PAPER = {"perplexity": "1a", "ablation": "6", "cloze": "1b", "frames": "3"}
"""Where each of our tables is in the paper."""

TITLES = {
    "perplexity": "Perplexity",
    "ablation": "Addition against concatenation, perplexity",
    "cloze": "Inverse narrative cloze",
    "frames": "Frame prediction on single events",
    "attention": "Where the encoder looks when it infers a frame",
    "curves": "Convergence",
}

READ = {
    "perplexity": "Lower is better. The paper's perplexity counts separators. Only the bound, which pays for "
    "the latent variables, compares models with and without them.",
    "ablation": "Lower is better.",
    "cloze": "Shares of the items that are answered right. Higher is better. The paper chooses by "
    "likelihood.",
    "frames": "Higher is better; precision and F1 are macro. The classifiers learn from all frames.",
    "attention": "Entropy in nats. Attention that is spread evenly has 0.25 on verbs. The paper prints no "
    "figures for this: it says that entropy is low and attention on the verb where ε is high.",
    "curves": f"Converged is the first validation within {CLOSE - 1:.0%} of the run's own best perplexity. "
    "The paper draws this and prints no figures.",
}

STEPS = {
    "ppl_best": "best validation ppl",
    "step_best": "step of the best",
    "step_converged": "step converged",
    "step_haqae": "step at HAQAE's best",
}


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
    figure: str
    heading: str
    data: str = CORPUS
    paper: bool = False  # whether the paper has it


def columns_of(table: str, split: Split, cloze: Sequence[str]) -> list[Column]:
    """The figures of a table, with these cloze data; those of the paper come twice, first its own."""
    if table == "perplexity":
        columns = [Column("ppl_official", NAMES["ppl_official"]), *_plain("ppl", "ppl_bound")]
    elif table == "ablation":
        columns = [Column("ppl_official", NAMES["ppl_official"])]
    elif table == "cloze":
        columns = [
            Column(figure, f"{data}, {NAMES[figure].removeprefix('accuracy ')}", data)
            for data in cloze
            for figure in ("cloze_nll", "cloze_pmi")
        ]
    elif table == "frames":
        columns = _plain("frame_accuracy", "frame_precision", "frame_f1")
    elif table == "attention":
        columns = _plain(
            *(f"attention_{x}" for x in ("entropy", "most_entropy", "verbs", "own_verb", "own_event"))
        )
    else:
        columns = [Column(figure, heading) for figure, heading in STEPS.items()]
    result = []
    for column in columns:
        if any(_is_papers(p, table, column, split) for p in paper_figures()):
            result.append(Column(column.figure, f"{column.heading}, paper", column.data, paper=True))
            column = Column(column.figure, f"{column.heading}, ours", column.data)
        result.append(column)
    return result


def _plain(*figures: str) -> list[Column]:
    return [Column(figure, NAMES[figure]) for figure in figures]


def _is_papers(p: PaperFigure, table: str, column: Column, split: str) -> bool:
    # The paper's corpus is Wikipedia; ours stands in its place.
    data = "wiki" if column.data == CORPUS else column.data
    return (p.table, p.figure, p.data, p.split) == (PAPER.get(table), column.figure, data, split)


def papers(table: str, row: Configuration, column: Column, settings: ReproduceSettings) -> PaperFigure | None:
    """The paper's figure for a row and a column; None where it has none."""
    for p in paper_figures():
        mine = (row.model, row.observe, row.attention if p.attention else "")
        if _is_papers(p, table, column, settings.split) and (p.model, p.observe, p.attention) == mine:
            return p
    return None


def score_table(table: str, measured: Measured, context: Context) -> Table:
    """One row for each configuration."""
    settings = context.settings
    columns = columns_of(table, settings.split, context.cloze)
    rows: list[Row] = []
    for row in rows_of(table, settings):
        found = [None if c.paper else measured.get(row, c.figure, c.data) for c in columns]
        figures = [
            Figure.from_paper(papers(table, row, column, settings))
            if column.paper
            else Figure.from_spread(spread, digits(column.figure))
            for column, spread in zip(columns, found, strict=True)
        ]
        seeds = max((len(spread.values) for spread in found if spread is not None), default=0)
        rows.append((_names(row, seeds), tuple(figures)))
    cited = TABLES.get(PAPER.get(table, ""))
    paper = (
        f" Paper: {SOURCE}, {cited}, on its own corpus of Wikipedia with 40,000 words and 500 frames."
        if cited
        else ""
    )
    return Table(
        f"{table}-{settings.split}",
        TITLES[table],
        ("model", "ε", "seeds", *(column.heading for column in columns)),
        tuple(rows),
        f"{READ[table]} {context.setup}{paper}",
    )


def _names(row: Configuration, seeds: int) -> tuple[str, str, str]:
    return row.label, "–" if row.observe is None else f"{row.observe:g}", str(seeds)


def curve_table(measured: Measured, context: Context) -> Table:
    """The perplexity of the validation split at each validation, over the runs that came so far."""
    rows_with = [row for row in rows_of("curves", context.settings) if row in measured.curves]
    steps: dict[int, float] = {}
    values: dict[tuple[int, Configuration], list[float]] = {}
    for row in rows_with:
        for record in (record for curve in measured.curves[row] for record in curve):
            steps[record["step"]] = record["epoch"]
            values.setdefault((record["step"], row), []).append(record["ppl"])
    rows: list[Row] = [
        (
            (str(step), f"{epoch:g}"),
            tuple(
                Figure.from_spread(Spread(tuple(found)), digits("ppl"))
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


def claim_table(verdicts: Sequence[Verdict], context: Context) -> Table:
    return Table(
        f"claims-{context.settings.split}",
        "The paper's claims",
        ("claim", "verdict", "evidence"),
        tuple(((f"{v.number}. {v.claim}", v.verdict, v.evidence), ()) for v in verdicts),
        "Clearly: the difference of two means is larger than its standard error over seeds; a single run has "
        f"none, and any difference counts. {context.setup}",
    )


def all_tables(
    names: Sequence[str], measured: Measured, verdicts: Sequence[Verdict], context: Context
) -> list[Table]:
    """The tables that were asked for, first the verdicts."""
    tables = [claim_table(verdicts, context)]
    for name in names:
        tables.append(score_table(name, measured, context))
        if name == "curves":
            tables.append(curve_table(measured, context))
    return tables
