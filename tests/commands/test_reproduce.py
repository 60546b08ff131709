"""`ssdvae reproduce` takes the options of `train` and `evaluate` that all its runs share."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest

import ssdvae
from ssdvae.commands.reproduce import SharedEvaluateOptions, SharedTrainOptions, main
from ssdvae.io.errors import UserError
from ssdvae.models.options import MODEL_OPTIONS
from ssdvae.options import PRESETS
from ssdvae.reproduction.paper import targets
from tests.flags import parse_flags, shown_help

WORDS = ["reproduce", "all", "--data", "corpus", "--out", "out"]


def test_help_names_all_tables() -> None:
    about = inspect.cleandoc(main.__doc__ or "").partition("what: ")[2].splitlines()[0]
    listed = about.partition("comma-separated: ")[2].replace("; or ", ", ").split(", ")
    assert {*listed} == {*targets()}


def test_the_scale_gives_the_defaults_that_help_shows(capsys: pytest.CaptureFixture[str]) -> None:
    for scale, sizes in PRESETS.items():
        assert f"(default: {sizes['hidden']})" in shown_help(["reproduce", "--scale", scale], capsys)
        fields = SharedTrainOptions.fields_for({"scale": scale})
        assert {name: fields[name].default for name in sizes if name in fields}.items() <= sizes.items()


def test_options_of_every_model_are_taken_but_not_those_that_vary(tmp_path: Path) -> None:
    assert parse_flags([*WORDS, "--codes", "4", "--cloze-seeds", "2"])["codes"] == 4
    shared = SharedTrainOptions.names()
    for kind in MODEL_OPTIONS.values():
        assert {*kind.names()} - {*shared} <= {"attention", "document_vector", "variant", "context_vector"}
    assert not {"model", "observe", "seed", "preset"} & {*shared}
    assert not {"split", "events", "tasks", "cloze"} & {*SharedEvaluateOptions.names()}
    for name in ("model", "tasks", "seed"):
        unknown: Any = {name: "x"}
        with pytest.raises(UserError, match=f"no option '{name}'"):
            ssdvae.reproduce("all", "corpus", tmp_path / "out", **unknown)


def test_the_scale_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("scale: tiny\nobserve: 0.5,1\nepochs: 3\neval_batch: 7\n")
    found = parse_flags([*WORDS, "--config", str(tmp_path / "c.yaml"), "--epochs", "4"])
    expected = {"scale": "tiny", "observe": "0.5,1", "epochs": 4, "eval_batch": 7}
    assert {name: found[name] for name in expected} == expected
