"""Recipes give defaults, each model takes what it has, and what was chosen is written down."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ssdvae import api
from ssdvae.config import MODEL_SETTINGS, RECIPES, TRAIN_DEFAULTS, ModelSettings, TrainSettings
from ssdvae.config.formats import FORMAT, upgraded
from ssdvae.config.presets import AUTO, Counts, auto
from ssdvae.config.recipes import EVERY, recipe
from ssdvae.errors import UserError
from ssdvae.models.card import model_card
from ssdvae.runs import Run
from tests.config.test_settings import from_flags, from_yaml

MODELS = list(MODEL_SETTINGS)
COUNTS = Counts(documents=3_000, events=15_000, words=300)


@pytest.mark.parametrize("name", RECIPES)
def test_every_setting_of_a_recipe_is_one_of_the_models_that_it_is_for(name: str) -> None:
    for model, settings in RECIPES[name].items():
        if model != EVERY:
            TrainSettings(model=model, **settings)
        for setting, value in settings.items():
            assert TrainSettings.table()[setting].check(value) == value


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", RECIPES)
def test_a_model_takes_from_a_recipe_what_it_has(name: str, model: str) -> None:
    settings = TrainSettings.chosen({"recipe": name, "model": model})
    values, asked = settings.values(), recipe(name, model)
    assert {s: v for s, v in asked.items() if s in values}.items() <= values.items()
    others = values.keys() - asked.keys() - {"recipe"}
    assert all(values[s] == TrainSettings(model=model).values()[s] for s in others)
    assert settings == from_flags(["--recipe", name, "--model", model])
    assert settings == TrainSettings.exactly(settings.to_dict())


@pytest.mark.parametrize("model", MODELS)
def test_the_recipe_of_the_paper_changes_nothing_but_how_much_is_read(model: str) -> None:
    """So that a setting by itself, which is what old runs have, is the paper's."""
    settings = TrainSettings.chosen({"recipe": "paper", "model": model})
    assert settings.events == 5
    assert settings.changed(events=None) == TrainSettings(model=model)


def test_guided_is_what_train_does_unless_told_otherwise() -> None:
    shown = inspect.signature(api.train).parameters
    values = TrainSettings.chosen(TRAIN_DEFAULTS, COUNTS).values()
    assert (values["recipe"], values["preset"]) == ("guided", "auto")
    for name, value in values.items():
        assert repr(shown[name].default) == "auto" if name in AUTO else shown[name].default == value
    assert {name: values[name] for name in AUTO} == auto(COUNTS)


@given(events=st.integers(1, 10**9), more=st.integers(0, 10**9), words=st.integers(3, 10**7))
def test_a_larger_corpus_is_read_less_often_by_no_smaller_network(events: int, more: int, words: int) -> None:
    small, large = (auto(Counts(1 + count // 5, count, words)) for count in (events, events + more))
    assert small["epochs"] >= large["epochs"] >= 1
    assert small["hidden"] <= large["hidden"]
    for size in (small, large):
        assert TrainSettings.chosen({"recipe": "guided", **size}).values().items() >= size.items()


def test_a_recipe_is_changed_by_the_file_and_that_by_flags(tmp_path: Path) -> None:
    asked = {"tied": False, "foresight": 0.1}
    found = from_yaml({"recipe": "guided", **asked}, tmp_path)
    assert found == TrainSettings.chosen({"recipe": "guided", **asked})
    words = ["--recipe", "guided", "--config", str(tmp_path / "c.yaml"), "--foresight", "0.2", "--no-decay"]
    changed = {"tied": False, "foresight": 0.2, "decay": False}
    assert from_flags(words) == TrainSettings.chosen({"recipe": "guided", **changed})


def test_a_recipe_that_there_is_not_is_told() -> None:
    with pytest.raises(UserError, match="--recipe: found 'best', expected one of guided, paper"):
        from_flags(["--recipe", "best"])
    with pytest.raises(UserError, match="no recipe 'best'; there are: guided, paper"):
        TrainSettings.chosen({"recipe": "best"})


def test_help_shows_the_defaults_of_the_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    for name, default in (("guided", "local"), ("paper", "attention")):
        with pytest.raises(SystemExit):
            from_flags(["--recipe", name, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert f"for documents of any length (default: {default})" in shown


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"recipe": "guided"}, "by the recipe `guided`."),
        ({"recipe": "guided", "tied": False}, "by the recipe `guided`, but for `tied: False`."),
        ({"recipe": "paper", "prior": "markov"}, "by the recipe `paper`, but for `prior: markov`."),
        ({"recipe": "paper", "hidden": 7}, "by the recipe `paper`."),
        ({"recipe": "guided", "model": "rnnlm-classifier"}, "by the recipe `guided`."),
        ({"recipe": None}, "before there were recipes"),
    ],
)
def test_the_card_says_the_recipe_and_what_was_done_otherwise(given: dict[str, Any], said: str) -> None:
    assert said in str(model_card(TrainSettings.chosen(given).model_settings, 9, 3, None))


OLD: dict[str, Any] = {"model": "ssdvae", "hidden": 7, "prior": "history", "tied": True}


def test_settings_from_before_recipes_mean_what_they_meant() -> None:
    """Nobody knows by which recipe they were chosen, and none is put to use."""
    for number in (1, 2):
        values = upgraded({"format": number, **OLD} if number > 1 else OLD)
        assert TrainSettings.exactly(values) == TrainSettings(**OLD, recipe=None)
        assert ModelSettings.exactly(values) == ModelSettings.of({**OLD, "recipe": None})


def test_a_setting_that_a_recipe_has_learned_since_does_not_change_an_old_run() -> None:
    """A run is loaded as it was written, whatever its recipe says today."""
    values = upgraded({"format": FORMAT, "recipe": "guided", "preset": "auto", **OLD})
    settings = TrainSettings.exactly(values)
    assert settings.model_settings.values()["foresight"] == 0
    assert settings == TrainSettings(**OLD, recipe="guided", preset="auto")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recipes")
    api.world(folder / "events.jsonl", documents=60, progress=False)
    api.prepare(folder / "events.jsonl", folder / "corpus", valid_share=0.2, progress=False)
    return folder / "corpus"


SMALL: dict[str, Any] = {"hidden": 5, "embedding": 4, "epochs": 1, "progress": False}


def test_the_run_says_what_it_was_made_by(corpus: Path, tmp_path: Path) -> None:
    run = api.train(corpus, tmp_path / "run", **SMALL)
    written = yaml.safe_load((run.folder / "config.yaml").read_text())
    counts = api.Corpus(corpus).counts
    # The name, and the numbers that it stands for here.
    expected = {**TRAIN_DEFAULTS, **auto(counts), **recipe("guided", "ssdvae"), "hidden": 5}
    assert {name: written[name] for name in expected} == {**expected, "embedding": 4, "epochs": 1}
    assert json.loads((run.folder / "config.json").read_text())["recipe"] == "guided"
    assert "by the recipe `guided`" in (run.folder / "README.md").read_text()


def test_a_run_from_before_recipes_goes_on(corpus: Path, tmp_path: Path) -> None:
    run = api.train(corpus, tmp_path / "run", recipe="paper", **SMALL)
    (run.folder / "checkpoint" / "state.safetensors").unlink()
    written = yaml.safe_load((run.folder / "config.yaml").read_text())
    del written["recipe"], written["preset"]
    (run.folder / "config.yaml").write_text(yaml.safe_dump({**written, "format": 2}))
    _, settings = Run(run.folder).config()
    assert (settings.model_settings.recipe, settings.preset) == (None, None)
    before = run.metrics()
    again = api.resume(run.folder, progress=False)
    assert [{**r, "seconds": 0} for r in again.metrics()] == [{**r, "seconds": 0} for r in before]
    assert "before there were recipes" in (run.folder / "README.md").read_text()
