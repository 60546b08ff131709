"""Each model has one set of defaults; flags and files change them, and a run records what was chosen."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import ssdvae
from ssdvae.cli import main
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.io.errors import UserError
from ssdvae.io.run import Run
from ssdvae.models.options import DEFAULT_MODEL, MODEL_OPTIONS, ModelOptions
from ssdvae.options import FORMAT, PRESETS, SET_BY_AUTO, Counts, auto, read_config, unversioned, versioned
from ssdvae.storyworld.world import World
from ssdvae.training.options import BEST_DEFAULTS, PAPER_DEFAULTS, TrainOptions
from tests.flags import shown_help
from tests.test_options import COUNTS, train_flags, train_yaml

MODELS = list(MODEL_OPTIONS)
OTHERS = [model for model in MODELS if model != "ssdvae"]
LARGE = Counts(documents=100_000, events=1_000_000, words=30_000)


@pytest.mark.parametrize("defaults", [PAPER_DEFAULTS, BEST_DEFAULTS])
def test_every_model_has_every_option_of_the_defaults(defaults: dict[str, Any]) -> None:
    for model in MODELS:
        assert TrainOptions(model=model, **defaults).values().items() >= defaults.items()


def test_ssdvae_is_trained_as_the_paper_does() -> None:
    """An option by itself has the paper's value, except for how much is read, and fp32."""
    options = TrainOptions.chosen({"model": "ssdvae"}, COUNTS)
    values = options.values()
    assert (options.preset, options.events, options.decay) == ("paper", 5, False)
    assert {
        name: value for name, value in PRESETS["paper"].items() if name in values
    }.items() <= values.items()
    alone = options.changed(events=None, preset=None, embedding=None, precision="fp32")
    assert alone == TrainOptions(model="ssdvae")
    assert options == TrainOptions.chosen({"model": "ssdvae"}, LARGE)


@pytest.mark.parametrize("model", OTHERS)
@pytest.mark.parametrize("counts", [COUNTS, LARGE])
def test_all_others_are_trained_as_we_know_best(model: str, counts: Counts) -> None:
    """With the size that fits the corpus, the whole documents, and a learning rate that decays."""
    options = TrainOptions.chosen({"model": model}, counts)
    values = options.values()
    expected = {**auto(counts), "preset": "auto", "decay": True, "events": None, "tied": True}
    expected["precision"] = "auto"
    assert {name: value for name, value in expected.items() if name in values}.items() <= values.items()
    others = values.keys() - expected.keys()
    assert all(values[name] == TrainOptions(model=model).values()[name] for name in others)
    assert options == TrainOptions(**options.to_dict())


@pytest.mark.parametrize("model", MODELS)
def test_flags_and_files_and_python_have_the_same_defaults(model: str, tmp_path: Path) -> None:
    expected = TrainOptions.chosen({"model": model}, COUNTS)
    assert train_flags(["--model", model]) == expected
    assert train_yaml({"model": model}, tmp_path) == expected


def test_ssdvae_exact_is_what_train_does_unless_told_otherwise() -> None:
    assert DEFAULT_MODEL == "ssdvae-exact"
    assert TrainOptions.chosen({}, COUNTS) == TrainOptions.chosen({"model": "ssdvae-exact"}, COUNTS)
    assert TrainOptions().model == "ssdvae-exact"


def test_the_signature_shows_the_defaults_of_the_default_model() -> None:
    shown = inspect.signature(ssdvae.train).parameters
    values = TrainOptions.chosen({}, COUNTS).values()
    for name, value in values.items():
        auto_sets = name in SET_BY_AUTO
        assert repr(shown[name].default) == "auto" if auto_sets else shown[name].default == value
    assert {name: values[name] for name in SET_BY_AUTO if name in values} == {
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
        shown = shown_help(["train", *words], capsys)
        assert f"also the dimension of the frame vectors (default: {hidden})" in shown
        assert f"to 0 at the end of the last epoch (default: {decay})" in shown


@given(events=st.integers(1, 10**9), more=st.integers(0, 10**9), words=st.integers(3, 10**7))
def test_a_larger_corpus_is_read_less_often_by_no_smaller_network(events: int, more: int, words: int) -> None:
    small, large = (Counts(1 + count // 5, count, words) for count in (events, events + more))
    assert auto(small)["epochs"] >= auto(large)["epochs"] >= 1
    assert auto(small)["hidden"] <= auto(large)["hidden"]
    for counts in (small, large):
        fitted = {name: value for name, value in auto(counts).items() if name != "role_embedding"}
        assert TrainOptions.chosen({}, counts).values().items() >= fitted.items()


def test_given_vectors_decide_their_width() -> None:
    given = {"vectors": Path("vectors.txt")}
    assert TrainOptions.chosen(given, COUNTS).model_options.embedding is None
    assert TrainOptions.chosen({**given, "embedding": 9}, COUNTS).model_options.embedding == 9


def test_defaults_are_changed_by_the_file_and_that_by_flags(tmp_path: Path) -> None:
    asked = {"tied": False, "clip": 2.0, "epochs": 7}
    assert train_yaml(asked, tmp_path) == TrainOptions.chosen(asked, COUNTS)
    words = ["--config", str(tmp_path / "c.yaml"), "--clip", "3", "--no-decay"]
    expected = {"tied": False, "clip": 3.0, "epochs": 7, "decay": False}
    assert train_flags(words) == TrainOptions.chosen(expected, COUNTS)
    assert TrainOptions.chosen(expected, COUNTS).values().items() >= expected.items()


def test_a_file_may_name_the_model_and_its_defaults_follow(tmp_path: Path) -> None:
    assert train_yaml({"model": "ssdvae", "hidden": 7}, tmp_path) == TrainOptions.chosen(
        {"model": "ssdvae", "hidden": 7}
    )


@pytest.mark.parametrize("number", [None, 0, FORMAT + 1, 6, "1"])
def test_options_of_another_format_are_refused(number: Any, tmp_path: Path) -> None:
    values = {**TrainOptions(hidden=7).to_dict(), "format": number}
    if number is None:
        del values["format"]
    model = {**TrainOptions(hidden=7).model_options.to_dict(), "format": number}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({**values, "corpus": "corpus"}))
    for read in (
        lambda: unversioned(values),
        lambda: unversioned(model),
        lambda: read_config(tmp_path / "config.yaml", [TrainOptions]),
        lambda: Run(tmp_path).config(),
    ):
        with pytest.raises(UserError, match=f"found options in format {number!r}, expected {FORMAT}\n"):
            read()


@pytest.mark.parametrize("model", MODELS)
def test_written_options_are_read_as_they_were_chosen(model: str) -> None:
    """Whatever the defaults of the model are when they are read."""
    options = TrainOptions.chosen({"model": model, "clip": 2.0, "decay": False}, COUNTS)
    assert TrainOptions(**unversioned(versioned(options.to_dict()))) == options
    assert ModelOptions.read(unversioned(versioned(options.model_options.to_dict()))) == options.model_options


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("defaults")
    write_jsonl(folder / "events.jsonl", World.embedded().documents(60, seed=1))
    return prepare(folder / "events.jsonl", folder / "corpus", PrepareOptions(valid_share=0.2)).folder


SMALL: dict[str, Any] = {"hidden": 5, "embedding": 4, "epochs": 1}


def test_the_run_says_what_it_was_made_by(corpus: Path, tmp_path: Path) -> None:
    run = ssdvae.train(corpus, tmp_path / "run", **SMALL, progress=False)
    written = yaml.safe_load((run.folder / "config.yaml").read_text())
    counts = ssdvae.Corpus(corpus).counts
    # The name, and the numbers that it stands for here.
    expected = {"format": FORMAT, "model": "ssdvae-exact", **BEST_DEFAULTS, **auto(counts), **SMALL}
    del expected["role_embedding"]
    expected["precision"] = "fp32"  # what auto stands for at this size, on every machine
    assert {name: written[name] for name in expected} == expected
    kept = json.loads((run.folder / "config.json").read_text())
    assert {name: kept[name] for name in ("model", "hidden", "layers", "embedding")} == {
        "model": "ssdvae-exact",
        "hidden": 5,
        "layers": auto(counts)["layers"],
        "embedding": 4,
    }
    assert "# ssdvae-exact: a model of event sequences" in (run.folder / "README.md").read_text()


def test_the_config_of_a_run_makes_the_same_run(corpus: Path, tmp_path: Path) -> None:
    first = ssdvae.train(corpus, tmp_path / "first", **SMALL, progress=False)
    config = ["--config", str(first.config_path)]
    assert main(["train", str(corpus), "--out", str(tmp_path / "second"), *config]) == 0
    second = Run(tmp_path / "second")
    assert second.config() == first.config()
    assert [{**r, "seconds": 0} for r in first.metrics()] == [{**r, "seconds": 0} for r in second.metrics()]
