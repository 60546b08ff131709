"""Each model has one set of defaults, flags and files change them, and what was chosen is written down."""

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
from ssdvae.cli.flags import read_config
from ssdvae.config import MODEL_SETTINGS, PRESETS, BenchmarkSettings, TrainSettings
from ssdvae.config.formats import FORMAT, read_model_settings, read_train_settings, versioned
from ssdvae.config.models import DEFAULT_MODEL
from ssdvae.config.presets import AUTO, Counts, auto
from ssdvae.config.training import BEST_DEFAULTS, PAPER_DEFAULTS
from ssdvae.errors import UserError
from ssdvae.runs import Run
from tests.config.test_settings import COUNTS, from_flags, from_yaml

MODELS = list(MODEL_SETTINGS)
OTHERS = [model for model in MODELS if model != "ssdvae"]
LARGE = Counts(documents=100_000, events=1_000_000, words=30_000)


@pytest.mark.parametrize("defaults", [PAPER_DEFAULTS, BEST_DEFAULTS])
def test_every_model_has_every_setting_of_the_defaults(defaults: dict[str, Any]) -> None:
    for name, value in defaults.items():
        assert TrainSettings.training_table()[name].check(value) == value


def test_ssdvae_is_trained_as_the_paper_does() -> None:
    """So that a setting by itself is the paper's, but for how much is read."""
    settings = TrainSettings.chosen({"model": "ssdvae"}, COUNTS)
    values = settings.values()
    assert (settings.preset, settings.events, settings.decay) == ("paper", 5, False)
    assert {
        name: value for name, value in PRESETS["paper"].items() if name in values
    }.items() <= values.items()
    assert settings.changed(events=None, preset=None, embedding=None) == TrainSettings(model="ssdvae")
    assert settings == TrainSettings.chosen({"model": "ssdvae"}, LARGE)


@pytest.mark.parametrize("model", OTHERS)
@pytest.mark.parametrize("counts", [COUNTS, LARGE])
def test_all_others_are_trained_as_we_know_best(model: str, counts: Counts) -> None:
    """With the size that fits the corpus, the whole documents, and a learning rate that decays."""
    settings = TrainSettings.chosen({"model": model}, counts)
    values = settings.values()
    expected = {**auto(counts), "preset": "auto", "decay": True, "events": None, "tied": True}
    assert {name: value for name, value in expected.items() if name in values}.items() <= values.items()
    others = values.keys() - expected.keys()
    assert all(values[name] == TrainSettings(model=model).values()[name] for name in others)
    assert settings == TrainSettings.exactly(settings.to_dict())


@pytest.mark.parametrize("model", MODELS)
def test_flags_and_files_and_python_have_the_same_defaults(model: str, tmp_path: Path) -> None:
    expected = TrainSettings.chosen({"model": model}, COUNTS)
    assert from_flags(["--model", model]) == expected
    assert from_yaml({"model": model}, tmp_path) == expected


def test_ssdvae_exact_is_what_train_does_unless_told_otherwise() -> None:
    assert DEFAULT_MODEL == "ssdvae-exact"
    assert TrainSettings.chosen({}, COUNTS) == TrainSettings.chosen({"model": "ssdvae-exact"}, COUNTS)
    assert TrainSettings().model == BenchmarkSettings().model == "ssdvae-exact"


def test_the_signature_shows_the_defaults_of_the_default_model() -> None:
    shown = inspect.signature(api.train).parameters
    values = TrainSettings.chosen({}, COUNTS).values()
    for name, value in values.items():
        assert repr(shown[name].default) == "auto" if name in AUTO else shown[name].default == value
    assert {name: values[name] for name in AUTO if name in values} == {
        name: value for name, value in auto(COUNTS).items() if name in values
    }


def test_help_shows_the_defaults_of_the_model(capsys: pytest.CaptureFixture[str]) -> None:
    for words, hidden, decay in (
        ([], "auto", "true"),
        (["--model=rnnlm"], "auto", "true"),
        (["--model", "ssdvae"], "512", "false"),
        (["--model", "ssdvae", "--preset", "tiny"], "32", "false"),
        (["--preset=small"], "256", "true"),
    ):
        with pytest.raises(SystemExit):
            from_flags([*words, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert f"also the dimension of the frame vectors (default: {hidden})" in shown
        assert f"to 0 at the end of the last epoch (default: {decay})" in shown


def test_the_benchmark_times_what_is_given_and_no_defaults_of_training() -> None:
    """It has no corpus that ``auto`` could fit."""
    assert BenchmarkSettings.chosen({"model": "rnnlm"}) == BenchmarkSettings(model="rnnlm")


@given(events=st.integers(1, 10**9), more=st.integers(0, 10**9), words=st.integers(3, 10**7))
def test_a_larger_corpus_is_read_less_often_by_no_smaller_network(events: int, more: int, words: int) -> None:
    small, large = (Counts(1 + count // 5, count, words) for count in (events, events + more))
    assert auto(small)["epochs"] >= auto(large)["epochs"] >= 1
    assert auto(small)["hidden"] <= auto(large)["hidden"]
    for counts in (small, large):
        fitted = {name: value for name, value in auto(counts).items() if name != "role_embedding"}
        assert TrainSettings.chosen({}, counts).values().items() >= fitted.items()


def test_given_vectors_decide_their_width() -> None:
    given = {"vectors": Path("vectors.txt")}
    assert TrainSettings.chosen(given, COUNTS).model_settings.embedding is None
    assert TrainSettings.chosen({**given, "embedding": 9}, COUNTS).model_settings.embedding == 9


def test_defaults_are_changed_by_the_file_and_that_by_flags(tmp_path: Path) -> None:
    asked = {"tied": False, "clip": 2.0, "epochs": 7}
    assert from_yaml(asked, tmp_path) == TrainSettings.chosen(asked, COUNTS)
    words = ["--config", str(tmp_path / "c.yaml"), "--clip", "3", "--no-decay"]
    expected = {"tied": False, "clip": 3.0, "epochs": 7, "decay": False}
    assert from_flags(words) == TrainSettings.chosen(expected, COUNTS)
    assert TrainSettings.chosen(expected, COUNTS).values().items() >= expected.items()


def test_a_file_may_name_the_model_and_its_defaults_follow(tmp_path: Path) -> None:
    assert from_yaml({"model": "ssdvae", "hidden": 7}, tmp_path) == TrainSettings.chosen(
        {"model": "ssdvae", "hidden": 7}
    )


@pytest.mark.parametrize("number", [None, 0, FORMAT + 1, 6, "1"])
def test_settings_of_another_format_are_refused(number: Any, tmp_path: Path) -> None:
    values = {**TrainSettings(hidden=7).to_dict(), "format": number}
    if number is None:
        del values["format"]
    model = {**TrainSettings(hidden=7).model_settings.to_dict(), "format": number}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({**values, "corpus": "corpus"}))
    for read in (
        lambda: read_train_settings(values),
        lambda: read_model_settings(model),
        lambda: read_config(tmp_path / "config.yaml", TrainSettings.table()),
        lambda: Run(tmp_path).config(),
    ):
        with pytest.raises(UserError, match=f"found settings in format {number!r}, expected {FORMAT}\n"):
            read()


@pytest.mark.parametrize("model", MODELS)
def test_written_settings_are_read_as_they_were_chosen(model: str) -> None:
    """Whatever the defaults of the model are when they are read."""
    settings = TrainSettings.chosen({"model": model, "clip": 2.0, "decay": False}, COUNTS)
    assert read_train_settings(versioned(settings.to_dict())) == settings
    assert read_model_settings(versioned(settings.model_settings.to_dict())) == settings.model_settings


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("defaults")
    api.world(folder / "events.jsonl", documents=60, progress=False)
    api.prepare(folder / "events.jsonl", folder / "corpus", valid_share=0.2, progress=False)
    return folder / "corpus"


SMALL: dict[str, Any] = {"hidden": 5, "embedding": 4, "epochs": 1}


def test_the_run_says_what_it_was_made_by(corpus: Path, tmp_path: Path) -> None:
    run = api.train(corpus, tmp_path / "run", **SMALL, progress=False)
    written = yaml.safe_load((run.folder / "config.yaml").read_text())
    counts = api.Corpus(corpus).counts
    # The name, and the numbers that it stands for here.
    expected = {"format": FORMAT, "model": "ssdvae-exact", **BEST_DEFAULTS, **auto(counts), **SMALL}
    del expected["role_embedding"]
    assert {name: written[name] for name in expected} == expected
    kept = json.loads((run.folder / "config.json").read_text())
    assert {name: kept[name] for name in ("model", "hidden", "layers", "embedding")} == {
        "model": "ssdvae-exact",
        "hidden": 5,
        "layers": auto(counts)["layers"],
        "embedding": 4,
    }
    assert "# ssdvae-exact: a model of event sequences" in (run.folder / "README.md").read_text()


def test_the_settings_of_a_run_make_the_same_run(corpus: Path, tmp_path: Path) -> None:
    first = api.train(corpus, tmp_path / "first", **SMALL, progress=False)
    given = read_config(first.config_path, TrainSettings.table())
    second = api.train(corpus, tmp_path / "second", **given, progress=False)
    assert [{**r, "seconds": 0} for r in first.metrics()] == [{**r, "seconds": 0} for r in second.metrics()]
