"""Runs and models that were written before settings had a format number: see ``format1/make.py``."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import ssdvae
from ssdvae.cli.main import main
from ssdvae.config import HAQAESettings, SSDVAESettings
from ssdvae.data.batches import Noise, collate
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.runs import RENAMED, Run
from ssdvae.training.train import resume

OLD = Path(__file__).parent / "format1"
EXPECTED: dict[str, Any] = json.loads((OLD / "expected.json").read_text())
MODELS = {"ssdvae": SSDVAESettings, "haqae": HAQAESettings}


@pytest.mark.parametrize("name", MODELS)
def test_settings_of_other_models_are_dropped(name: str) -> None:
    """They had no effect, even where they were not at their defaults."""
    _, settings = Run(OLD / name).config()
    written = yaml.safe_load((OLD / name / "config.yaml").read_text())
    assert type(settings.model_settings) is MODELS[name]
    for setting, value in settings.to_dict().items():
        # A setting that has come since stands at its default; and nobody wrote down a recipe.
        since = {**{s: d.default for s, d in settings.table().items()}, "recipe": None}
        expected = written[setting] if setting in written else since[setting]
        assert value == expected, setting
    dropped = written.keys() - settings.to_dict().keys() - {"corpus"}
    assert {"ssdvae": "latents", "haqae": "prior"}[name] in dropped
    assert dropped


@pytest.mark.parametrize("name", MODELS)
def test_an_old_model_says_what_it_said(name: str) -> None:
    model = ssdvae.load(OLD / name)
    batch = collate(Corpus(OLD / "corpus").split("valid"), np.arange(2))
    beliefs = model.infer(batch)
    assert beliefs is not None
    torch.testing.assert_close(beliefs.log_q.exp(), torch.tensor(EXPECTED[name]["infer"]))
    bounds = model.bounds(batch, 2, Noise(torch.Generator().manual_seed(0), 2))
    torch.testing.assert_close(bounds, torch.tensor(EXPECTED[name]["bounds"]))


@pytest.mark.parametrize("name", MODELS)
def test_an_old_run_is_resumed_to_the_figures_of_the_old_code(name: str, tmp_path: Path) -> None:
    shutil.copytree(OLD / name, tmp_path / "run")
    run = resume(tmp_path / "run", OLD / "corpus")
    found, expected = run.metrics(), EXPECTED[name]["metrics"]
    assert len(found) == len(expected)
    for mine, old in zip(found, expected, strict=True):
        passed_over = ("seconds", "frame_commonest", "ppl_conditions_on_targets")  # two have come since
        mine, old = (
            {RENAMED.get(k, k): v for k, v in r.items() if k not in passed_over} for r in (mine, old)
        )
        assert mine == pytest.approx(old)


def test_an_old_config_makes_the_run_again(tmp_path: Path) -> None:
    words = f"train {OLD / 'corpus'} --out {tmp_path / 'run'} --config {OLD / 'haqae' / 'config.yaml'}"
    assert main([*words.split(), "--epochs", "1"]) == 0
    assert Run(tmp_path / "run").config()[1] == Run(OLD / "haqae").config()[1].changed(epochs=1)
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["format"] == 3
    assert json.loads((tmp_path / "run" / "config.json").read_text())["format"] == 3


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    shutil.copytree(OLD / "ssdvae", tmp_path / "run")
    for name in ("config.yaml", "config.json"):
        values = yaml.safe_load((tmp_path / "run" / name).read_text())
        (tmp_path / "run" / name).write_text(json.dumps({**values, "format": 99}))
    with pytest.raises(UserError, match=r"config.yaml: found settings in format 99"):
        Run(tmp_path / "run").config()
    with pytest.raises(UserError, match=r"config.json: found settings in format 99"):
        ssdvae.load(tmp_path / "run")
