"""The runs behind the tables: all that the paper has, none twice, and the same care for each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.config import PRESETS, REPRODUCED, EvaluateSettings, ReproduceSettings, TrainSettings
from ssdvae.config.paper import PRESCRIBED
from ssdvae.errors import UserError
from ssdvae.evaluation.tasks import TASKS
from ssdvae.evaluation.tasks.base import Task
from ssdvae.models import MODELS
from ssdvae.paper.figures import published_figures
from ssdvae.paper.grid import Configuration, asked_for, grid, rows_of, tables, targets
from ssdvae.paper.measured import CORPUS
from ssdvae.paper.tables import columns_of, paper_table, papers
from tests.toys import toy_model

PAPERS = ReproduceSettings()
PRINTED = [table for table in tables() if paper_table(table)]


@pytest.mark.parametrize("table", PRINTED)
def test_a_table_has_the_rows_of_the_paper_and_no_other(table: str) -> None:
    theirs = {
        (p.model, p.attention, p.observe)
        for p in published_figures().figures
        if p.table == paper_table(table)
    }
    rows = rows_of(table, PAPERS)
    assert {(r.model, "" if r.observe is None else r.attention, r.observe) for r in rows} == theirs
    assert len(rows) == len(theirs)
    assert {row.single for row in rows} == {table == "frames"}


@pytest.mark.parametrize("table", PRINTED)
@pytest.mark.parametrize("split", ["valid", "test"])
def test_every_figure_of_the_paper_stands_in_one_place(table: str, split: str) -> None:
    """With the cloze of the New York Times, which is one more file here."""
    settings = ReproduceSettings(split=split, cloze="nyt=some.txt")  # type: ignore[arg-type]
    columns = [column for column in columns_of(table, settings.split, [CORPUS, "nyt"]) if column.paper]
    shown = [p for row in rows_of(table, settings) for c in columns if (p := papers(table, row, c, settings))]
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
    for row in rows_of(task.name, PAPERS):
        assert task.can(toy_model(row.model)), row.name


def test_tables_without_figures_in_the_paper() -> None:
    chain = [Configuration("ssdvae", observe) for observe in PAPERS.observed]
    assert rows_of("attention", PAPERS) == chain
    assert rows_of("curves", PAPERS) == [Configuration("haqae"), *chain]


@given(
    st.sampled_from(sorted(targets())),
    st.lists(st.floats(0, 1), min_size=1, max_size=8),
    st.integers(1, 4),
)
def test_no_cell_is_made_twice(target: str, observed: list[float], seeds: int) -> None:
    settings = ReproduceSettings(observe=",".join(map(repr, observed)), seeds=seeds)
    cells = grid(targets()[target], settings)
    assert len({cell.name for cell in cells}) == len({(cell.row, cell.seed) for cell in cells}) == len(cells)
    rows = {row for table in targets()[target] for row in rows_of(table, settings)}
    assert {cell.row for cell in cells} == rows
    assert len(cells) == seeds * len(rows)


@given(st.lists(st.sampled_from(sorted(targets())), min_size=1))
def test_several_tables_are_asked_for_at_once_and_each_is_made_once(names: list[str]) -> None:
    asked = asked_for(", ".join(names))
    assert len(asked) == len(set(asked))
    assert set(asked) == {table for name in names for table in targets()[name]}


def test_a_cell_is_measured_for_all_tables_that_it_is_in() -> None:
    cells = grid(targets()["all"], PAPERS)
    assert len(cells) == 3 * (3 + 7 + 7 + 2 + 7)
    for cell in cells:
        inside = {task.name for name, task in tables().items() if task and cell.row in rows_of(name, PAPERS)}
        assert cell.tasks == inside


def test_after_one_seed_every_row_has_a_run() -> None:
    cells = grid(targets()["all"], PAPERS)
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)


def test_all_models_get_the_same_care() -> None:
    """Nothing differs but the model, what it observes, its attention and its seed."""
    given = {"epochs": 7, "learning_rate": 0.01, "vectors": Path("v.txt"), "temperature": 0.7, "codes": 9}
    common = {**PRESETS["small"], **PRESCRIBED, **given}
    varied = {"model", "observe", "attention", "seed"}
    for cell in grid(targets()["all"], PAPERS):
        settings = cell.row.settings(common, cell.seed)
        defaults = TrainSettings(model=settings.model).values()
        for name, value in settings.values().items():
            assert name in varied or value == common.get(name, defaults[name])
        assert ("temperature" in settings.values()) is (settings.model == "ssdvae")
        # What the paper prescribes, though `train` would do otherwise.
        values = settings.values()
        assert (values["events"], values["decay"], values.get("tied", False)) == (5, False, False)
        assert settings.model in MODELS
        assert settings.seed == cell.seed
        # Classifiers are fully supervised; language models see no frame at all.
        expected = 1.0 if "classifier" in cell.row.model else 0.0
        assert settings.observe == (expected if cell.row.observe is None else cell.row.observe)
        assert settings.changed(seed=0) == cell.row.settings(common, 1).changed(seed=0)


def test_the_code_is_the_paper_with_what_only_the_code_has() -> None:
    """Row by row they differ in the variant alone; the baselines have vectors, too."""
    both, code = ReproduceSettings(as_="both"), ReproduceSettings(as_="code")
    for table in tables():
        mine, theirs = rows_of(table, PAPERS), rows_of(table, code)
        assert set(rows_of(table, both)) == {*mine, *theirs}
        chain = [row for row in theirs if row.variant == "code"]
        assert [replace(row, variant=None) for row in chain] == [row for row in mine if row.model == "ssdvae"]
        for row in chain:
            one, other = (r.settings({}, 1).values() for r in (row, replace(row, variant=None)))
            differs = {name: one[name] for name in one if one[name] != other[name]}
            assert differs == {"variant": "code"}
    vectors = [row.name for row in rows_of("cloze", code) if row.model == "rnnlm"]
    assert vectors == ["rnnlm", "rnnlm-document", "rnnlm-context"]


def test_models_restrict_the_rows() -> None:
    both = ReproduceSettings(as_="both")
    assert {row.kind for table in tables() for row in rows_of(table, both)} == set(REPRODUCED)
    settings = ReproduceSettings(models="haqae, ssdvae-concatenation", observe="0.9,0.9,0.5")
    assert [row.kind for row in rows_of("perplexity", settings)] == ["haqae"]
    assert [row.observe for row in rows_of("ablation", settings)] == [0.5, 0.9]
    with pytest.raises(UserError, match=r"of the models rnnlm-document\nlanguage models .* --as code"):
        grid(["perplexity"], ReproduceSettings(models="rnnlm-document"))
    with pytest.raises(UserError, match="no row of these tables is of the models haqae"):
        grid(targets()["frames"], settings)


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
    ],
)
def test_a_mistake_in_the_settings_names_the_flag(setting: str, value: object) -> None:
    with pytest.raises(UserError, match=f"--{setting}"):
        ReproduceSettings(**{setting: value})  # type: ignore[arg-type]


def test_cloze_files_have_names() -> None:
    settings = ReproduceSettings(cloze="nyt=data/val.txt, other/mine.txt")
    assert settings.cloze_files == {"nyt": Path("data/val.txt"), "mine": Path("other/mine.txt")}


def test_a_measurement_answers_only_if_all_settings_of_its_task_are_the_same() -> None:
    """Those that carry its name; a cloze with other frames is another cloze."""
    for prefix, task in (("cloze_", "cloze"), ("bound_", "perplexity")):
        mine = {name for name in EvaluateSettings.names() if name.startswith(prefix)}
        assert mine
        assert mine <= set(TASKS[task].settings)
