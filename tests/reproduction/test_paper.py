"""The runs behind the tables: all that the paper has, none twice, and the same care for each."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.summary import PublishedFigure
from ssdvae.evaluation.task import TASKS, Task
from ssdvae.io.errors import UserError
from ssdvae.models.registry import MODELS
from ssdvae.options import PRESETS
from ssdvae.reproduction.options import PRESCRIBED, REPRODUCED, ReproduceOptions
from ssdvae.reproduction.paper import (
    CITATIONS,
    Configuration,
    make_trials,
    parse_targets,
    published_figures,
    table_rows,
    table_tasks,
    targets,
)
from ssdvae.reproduction.results import CORPUS
from ssdvae.reproduction.tables import paper_table, table_columns
from ssdvae.training.options import TrainOptions
from tests.toys import toy_model

PAPERS = ReproduceOptions()
PRINTED = [table for table in table_tasks() if paper_table(table)]


@pytest.mark.parametrize("table", PRINTED)
def test_a_table_has_the_rows_of_the_paper_and_no_other(table: str) -> None:
    theirs = {
        (p.model, p.attention, p.observe)
        for p in published_figures().figures
        if p.table == paper_table(table)
    }
    rows = table_rows(table, PAPERS)
    assert {(r.model, "" if r.observe is None else r.attention, r.observe) for r in rows} == theirs
    assert len(rows) == len(theirs)
    assert {row.single for row in rows} == {table == "frames"}


@pytest.mark.parametrize("table", PRINTED)
@pytest.mark.parametrize("split", ["valid", "test"])
def test_every_figure_of_the_paper_stands_in_one_place(table: str, split: str) -> None:
    """The cloze of the New York Times is one more file here."""
    settings = ReproduceOptions(split=split, cloze="nyt=some.txt")  # type: ignore[arg-type]
    columns = [column for column in table_columns(table, settings.split, [CORPUS, "nyt"]) if column.published]
    shown = [p for row in table_rows(table, settings) for c in columns if (p := c.printed(row))]
    theirs = [p for p in published_figures().figures if (p.table, p.split) == (paper_table(table), split)]
    assert len(shown) == len(theirs)
    assert set(shown) == set(theirs)


def test_the_tables_that_the_paper_prints() -> None:
    assert {table: paper_table(table) for table in PRINTED} == {
        "perplexity": "1a",
        "ablation": "6",
        "cloze": "1b",
        "frames": "3",
    }


WITH_TABLES = {name: task for name, task in TASKS.items() if task.reproduced}


@pytest.mark.parametrize("task", WITH_TABLES.values(), ids=list(WITH_TABLES))
def test_every_row_of_a_task_is_of_a_model_that_can_do_it(task: Task) -> None:
    for row in table_rows(task.name, PAPERS):
        assert not task.missing(toy_model(row.model)), row.name


def test_tables_without_figures_in_the_paper() -> None:
    chain = [Configuration("ssdvae", observe) for observe in PAPERS.observed]
    assert table_rows("attention", PAPERS) == chain
    assert table_rows("curves", PAPERS) == [Configuration("haqae"), *chain]


@given(
    st.sampled_from(sorted(targets())),
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    st.integers(1, 4),
)
def test_no_trial_is_made_twice(target: str, observed: list[float], seeds: int) -> None:
    settings = ReproduceOptions(observe=",".join(map(repr, observed)), seeds=seeds)
    trials = make_trials(targets()[target], settings)
    assert (
        len({trial.name for trial in trials})
        == len({(trial.row, trial.seed) for trial in trials})
        == len(trials)
    )
    rows = {row for table in targets()[target] for row in table_rows(table, settings)}
    assert {trial.row for trial in trials} == rows
    assert len(trials) == seeds * len(rows)


@given(st.lists(st.sampled_from(sorted(targets())), min_size=1))
def test_several_tables_are_asked_for_at_once_and_each_is_made_once(names: list[str]) -> None:
    asked = parse_targets(", ".join(names))
    assert len(asked) == len(set(asked))
    assert set(asked) == {table for name in names for table in targets()[name]}


def test_a_trial_is_measured_for_all_tables_that_it_is_in() -> None:
    trials = make_trials(targets()["all"], PAPERS)
    assert len(trials) == 3 * (3 + 7 + 7 + 2 + 7)
    for trial in trials:
        inside = {
            task.name
            for name, task in table_tasks().items()
            if task and trial.row in table_rows(name, PAPERS)
        }
        assert trial.tasks == inside


def test_after_one_seed_every_row_has_a_run() -> None:
    trials = make_trials(targets()["all"], PAPERS)
    assert [trial.seed for trial in trials] == sorted(trial.seed for trial in trials)


def test_all_models_get_the_same_care() -> None:
    """Nothing differs but the model, what it observes, its attention and its seed."""
    given = {"epochs": 7, "learning_rate": 0.01, "vectors": Path("v.txt"), "temperature": 0.7, "codes": 9}
    common = {**PRESETS["small"], **PRESCRIBED, **given}
    varied = {"model", "observe", "attention", "seed"}
    for trial in make_trials(targets()["all"], PAPERS):
        settings = trial.row.train_options(common, trial.seed)
        defaults = TrainOptions(model=settings.model).values()
        for name, value in settings.values().items():
            assert name in varied or value == common.get(name, defaults[name])
        assert ("temperature" in settings.values()) is (settings.model == "ssdvae")
        # What the paper prescribes, though `train` would do otherwise.
        values = settings.values()
        assert (values["events"], values["decay"], values.get("tied", False)) == (5, False, False)
        assert settings.model in MODELS
        assert settings.seed == trial.seed
        # Classifiers are fully supervised; language models see no frame at all.
        expected = 1.0 if "classifier" in trial.row.model else 0.0
        assert settings.observe == (expected if trial.row.observe is None else trial.row.observe)
        assert settings.changed(seed=0) == trial.row.train_options(common, 1).changed(seed=0)


def test_the_code_is_the_paper_with_what_only_the_code_has() -> None:
    """Row by row they differ in the variant alone; the baselines have vectors, too."""
    both, code = ReproduceOptions(as_="both"), ReproduceOptions(as_="code")
    for table in table_tasks():
        mine, theirs = table_rows(table, PAPERS), table_rows(table, code)
        assert set(table_rows(table, both)) == {*mine, *theirs}
        chain = [row for row in theirs if row.variant == "code"]
        assert [replace(row, variant=None) for row in chain] == [row for row in mine if row.model == "ssdvae"]
        for row in chain:
            one, other = (r.train_options({}, 1).values() for r in (row, replace(row, variant=None)))
            differs = {name: one[name] for name in one if one[name] != other[name]}
            assert differs == {"variant": "code"}
    vectors = [row.name for row in table_rows("cloze", code) if row.model == "rnnlm"]
    assert vectors == ["rnnlm", "rnnlm-document", "rnnlm-context"]


def test_models_restrict_the_rows() -> None:
    both = ReproduceOptions(as_="both")
    assert {row.kind for table in table_tasks() for row in table_rows(table, both)} == set(REPRODUCED)
    settings = ReproduceOptions(models="haqae, ssdvae-concatenation", observe="0.9,0.9,0.5")
    assert [row.kind for row in table_rows("perplexity", settings)] == ["haqae"]
    assert [row.observe for row in table_rows("ablation", settings)] == [0.5, 0.9]
    with pytest.raises(UserError, match=r"of the models rnnlm-document\nlanguage models .* --as code"):
        make_trials(["perplexity"], ReproduceOptions(models="rnnlm-document"))
    with pytest.raises(UserError, match="no row of these tables is of the models haqae"):
        make_trials(targets()["frames"], settings)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("observe", "0,half"),
        ("observe", "1.5"),
        ("observe", ""),
        ("models", "ssdvae,gpt"),
        ("models", ","),
        ("scale", "huge"),
        ("seeds", 0),
        ("jobs", -1),
        ("split", "train"),
        ("cloze", "a=x.txt,a=y.txt"),
        ("cloze", "x/a.txt,y/a.txt"),
        ("cloze", "two\nlines=x.txt"),
    ],
)
def test_a_mistake_in_the_settings_names_the_flag(setting: str, value: object) -> None:
    with pytest.raises(UserError, match=f"--{setting}"):
        ReproduceOptions(**{setting: value})  # type: ignore[arg-type]


def test_cloze_files_have_names() -> None:
    settings = ReproduceOptions(cloze="nyt=data/val.txt, other/mine.txt")
    assert settings.cloze_files == {"nyt": Path("data/val.txt"), "mine": Path("other/mine.txt")}


def test_a_measurement_answers_only_if_all_settings_of_its_task_are_the_same() -> None:
    """A cloze with other frames is another cloze."""
    for prefix, task in (("cloze_", "cloze"), ("bound_", "perplexity")):
        mine = {name for name in EvaluateOptions.names() if name.startswith(prefix)}
        assert mine
        assert mine <= set(TASKS[task].settings)


# The paper's figures: whole, in the package's units, and found by the options of a run.

OBSERVED = (0.0, 0.2, 0.4, 0.5, 0.7, 0.8, 0.9)


def paper_figures() -> tuple[PublishedFigure, ...]:
    return published_figures().figures


def test_every_table_is_whole() -> None:
    """Rows times columns: 3 baselines or 2, and seven values of ε."""
    expected = {"1a": (3 + 7) * 2, "1b": (3 + 7) * 4, "3": (2 + 7) * 6, "6": 7 * 4}
    assert Counter(p.table for p in paper_figures()) == expected
    assert set(CITATIONS) == set(expected)
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
    asked = TrainOptions.of({"model": "ssdvae", **settings})
    found = published_figures().counterpart(asked, figure, split, data)
    assert found is not None
    assert (found.table, found.mean) == (table, mean)


def test_what_the_paper_does_not_have_has_no_counterpart() -> None:
    counterpart = published_figures().counterpart
    assert counterpart(TrainOptions(model="ssdvae", observe=0.85), "ppl_with_separators", "valid") is None
    assert counterpart(TrainOptions(model="ssdvae", observe=0.9), "ppl_bound", "valid") is None
    # That of the paper has no vector; SSDVAE may have had one.
    for vector in ("document_vector", "context_vector"):
        rnnlm = TrainOptions.of({"model": "rnnlm", vector: 20})
        assert counterpart(rnnlm, "ppl_with_separators", "valid") is None
    code = TrainOptions(model="ssdvae", observe=0.9, variant="code")
    assert counterpart(code, "ppl_with_separators", "valid") is not None
    exact = TrainOptions(observe=0.9)
    assert exact.model == "ssdvae-exact"
    for figure in ("ppl_with_separators", "cloze_nll", "frame_accuracy"):
        assert counterpart(exact, figure, "valid") is None
    assert (
        counterpart(
            TrainOptions(model="ssdvae", observe=0.9, attention="concatenation"), "cloze_nll", "valid"
        )
        is None
    )
