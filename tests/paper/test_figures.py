"""The paper's figures: whole, in the package's units, and found by the settings of a run."""

from __future__ import annotations

from collections import Counter

import pytest

from ssdvae.config import TrainSettings
from ssdvae.evaluation.published import PublishedFigure
from ssdvae.evaluation.tasks import TASKS
from ssdvae.models import MODELS
from ssdvae.paper.figures import TABLES, published_figures

OBSERVED = (0.0, 0.2, 0.4, 0.5, 0.7, 0.8, 0.9)


def paper_figures() -> tuple[PublishedFigure, ...]:
    return published_figures().figures


def test_every_table_is_whole() -> None:
    """Rows times columns: 3 baselines or 2, and seven values of ε."""
    expected = {"1a": (3 + 7) * 2, "1b": (3 + 7) * 4, "3": (2 + 7) * 6, "6": 7 * 4}
    assert Counter(p.table for p in paper_figures()) == expected
    assert set(TABLES) == set(expected)
    keys = [(p.table, p.model, p.attention, p.observe, p.data, p.split, p.figure) for p in paper_figures()]
    assert len(set(keys)) == len(keys)
    assert {p.observe for p in paper_figures()} == {None, *OBSERVED}


def test_every_figure_has_a_name_and_a_unit_of_this_package() -> None:
    known = {figure.name for task in TASKS.values() for figure in task.figures}
    for p in paper_figures():
        assert p.figure in known
        assert p.model in MODELS
        assert p.mean > 1 if p.figure == "ppl_with_separators" else 0 <= p.mean < 1
        assert 0 <= p.deviation < max(p.mean, 0.01)


def test_a_task_names_the_table_of_each_figure_that_the_paper_has() -> None:
    """But for Table 6, which has the perplexities of Table 1a on other rows."""
    named = {(f.name, f.paper) for task in TASKS.values() for f in task.figures if f.paper}
    assert named == {(p.figure, p.table) for p in paper_figures() if p.table != "6"}


def test_what_the_paper_prints_twice_is_the_same() -> None:
    """Table 6 repeats Table 1a in its columns for addition."""

    def of(table: str) -> set[tuple[object, ...]]:
        rows = (p for p in paper_figures() if p.table == table and p.attention == "addition")
        return {(p.observe, p.split, p.printed) for p in rows}

    assert of("1a") == of("6")
    assert len(of("6")) == 14


@pytest.mark.parametrize(
    ("settings", "figure", "data", "split", "table", "mean"),
    [
        ({"observe": 0.9}, "ppl_with_separators", "wiki", "valid", "1a", 22.52),
        ({"model": "haqae", "observe": 0.3}, "ppl_with_separators", "wiki", "test", "1a", 21.38),
        ({"observe": 0.4}, "cloze_nll", "nyt", "test", "1b", 0.3061),
        ({"model": "rnnlm-classifier"}, "frame_f1", "wiki", "valid", "3", 0.66),
        ({"observe": 0.7, "attention": "concatenation"}, "ppl_with_separators", "wiki", "valid", "6", 52.41),
    ],
)
def test_a_run_finds_its_counterpart(
    settings: dict[str, str | float], figure: str, data: str, split: str, table: str, mean: float
) -> None:
    asked = TrainSettings.of({"model": "ssdvae", **settings})
    found = published_figures().counterpart(asked, figure, split, data)
    assert found is not None
    assert (found.table, found.mean) == (table, mean)


def test_what_the_paper_does_not_have_has_no_counterpart() -> None:
    counterpart = published_figures().counterpart
    assert counterpart(TrainSettings(model="ssdvae", observe=0.85), "ppl_with_separators", "valid") is None
    assert counterpart(TrainSettings(model="ssdvae", observe=0.9), "ppl_bound", "valid") is None
    # That of the paper has no vector; SSDVAE may have had one.
    for vector in ("document_vector", "context_vector"):
        rnnlm = TrainSettings.of({"model": "rnnlm", vector: 20})
        assert counterpart(rnnlm, "ppl_with_separators", "valid") is None
    code = TrainSettings(model="ssdvae", observe=0.9, variant="code")
    assert counterpart(code, "ppl_with_separators", "valid") is not None
    exact = TrainSettings(observe=0.9)
    assert exact.model == "ssdvae-exact"
    for figure in ("ppl_with_separators", "cloze_nll", "frame_accuracy"):
        assert counterpart(exact, figure, "valid") is None
    assert (
        counterpart(
            TrainSettings(model="ssdvae", observe=0.9, attention="concatenation"), "cloze_nll", "valid"
        )
        is None
    )
