"""Settings are checked alike, wherever they are from."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import ssdvae.config
from ssdvae.cli.flags import add_sized_settings, given_settings
from ssdvae.cli.parser import Parser
from ssdvae.config import (
    MODEL_SETTINGS,
    PRESETS,
    Counts,
    ModelSettings,
    PrepareSettings,
    Setting,
    Settings,
    TrainSettings,
)
from ssdvae.errors import UserError
from ssdvae.models import MODELS

COUNTS = Counts(documents=3_000, events=15_000, words=300)
"""Of a corpus, for what depends on its size."""
GROUPS = [g for g in vars(ssdvae.config).values() if isinstance(g, type) and issubclass(g, Settings)]


def from_flags(words: list[str], kind: type[Settings] = TrainSettings) -> Settings:
    parser = Parser()
    add_sized_settings(parser, kind, words)
    args = parser.parse_args(words)
    given = given_settings(kind, args)
    return kind.chosen(given, COUNTS) if issubclass(kind, TrainSettings) else kind.sized(args.preset, **given)


def from_yaml(values: dict[str, Any], folder: Path) -> Settings:
    (folder / "c.yaml").write_text(yaml.safe_dump(values))
    return from_flags(["--config", str(folder / "c.yaml")])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hidden", 8.5, "found 8.5, expected a whole number, at least 1"),
        ("hidden", 0, "found 0, expected a whole number, at least 1"),
        ("epochs", "three", "found 'three', expected a whole number, at least 1"),
        ("learning_rate", 0, "expected a number, above 0"),
        ("learning_rate", math.inf, "found inf, expected a number, above 0"),
        ("observe", 1.5, "found 1.5, expected a number, from 0 to 1"),
        ("precision", "half", "found 'half', expected one of no, bf16, fp16"),
        ("model", "vae", "found 'vae', expected one of ssdvae-exact, ssdvae, rnnlm"),
    ],
)
def test_a_wrong_value_gets_the_same_message_from_everywhere(
    name: str, value: Any, expected: str, tmp_path: Path
) -> None:
    flag = "--" + name.replace("_", "-")
    for make in (
        partial(TrainSettings, **{name: value}),
        partial(TrainSettings.chosen, {"preset": "tiny", name: value}),
        partial(TrainSettings().changed, **{name: value}),
        partial(from_flags, [flag, str(value)]),
        partial(from_yaml, {name: value}, tmp_path),
    ):
        with pytest.raises(UserError) as error:
            make()
        message = str(error.value)
        assert f"{flag}: " in message
        assert expected in message


@pytest.mark.parametrize("value", ["3", True, None, 3.0, [3]])
def test_a_whole_number_is_nothing_else(value: Any, tmp_path: Path) -> None:
    for make in (partial(TrainSettings, epochs=value), partial(from_yaml, {"epochs": value}, tmp_path)):
        with pytest.raises(UserError, match=r"--epochs: found .*, expected a whole number, at least 1"):
            make()


def test_numbers_that_mean_the_same_are_the_same() -> None:
    assert TrainSettings(hidden=np.int64(3), clip=5) == TrainSettings(hidden=3, clip=5.0)
    assert TrainSettings(vectors="a.txt") == TrainSettings(vectors=Path("a.txt"))
    assert isinstance(TrainSettings(clip=5).clip, float)


@pytest.mark.parametrize("model", MODEL_SETTINGS)
def test_a_setting_of_another_model_is_refused_by_name(model: str, tmp_path: Path) -> None:
    mine = MODEL_SETTINGS[model].names()
    others = {name for kind in MODEL_SETTINGS.values() for name in kind.names()} - {*mine}
    for name in others:
        default = TrainSettings.table()[name].default
        text = "x" if default is None else str(default)
        flag = TrainSettings.table()[name].flag
        flags = [flag] if isinstance(default, bool) else [flag, text]
        values = {"model": model, name: default}
        for make in (
            partial(TrainSettings, **values),
            partial(TrainSettings(model=model).changed, **{name: default}),
            partial(ModelSettings.exactly, values),
            partial(from_flags, ["--model", model, *flags]),
            partial(from_yaml, values, tmp_path),
        ):
            with pytest.raises(UserError, match=f"^{model} has no setting '{name}' .* it\\b"):
                make()


def test_the_nearest_setting_is_named() -> None:
    with pytest.raises(UserError, match="'hiden'; did you mean 'hidden'"):
        TrainSettings(hiden=3)
    with pytest.raises(
        UserError, match=r"rnnlm has no setting 'latents' \(haqae has it\); did you mean 'layers'"
    ):
        TrainSettings(model="rnnlm", latents=9)
    with pytest.raises(UserError, match="no setting 'event'; did you mean 'events'"):
        PrepareSettings.sized("tiny", event=3)


@pytest.mark.parametrize("model", MODEL_SETTINGS)
@pytest.mark.parametrize("size", PRESETS)
def test_a_preset_gives_each_model_what_it_has(model: str, size: str) -> None:
    settings = TrainSettings.chosen({"preset": size, "model": model})
    values = settings.values()
    assert {name: value for name, value in PRESETS[size].items() if name in values}.items() <= values.items()
    assert settings == from_flags(["--preset", size, "--model", model])
    assert settings == TrainSettings.exactly(settings.to_dict())
    assert settings == dataclasses.replace(settings)


def test_a_preset_is_changed_by_the_file_and_that_by_flags(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("hidden: 7\nbatch: 9\nlearning_rate: 1e-2\n")
    found = from_flags(["--preset", "tiny", "--config", str(tmp_path / "c.yaml"), "--batch", "3", "--tied"])
    given = {"hidden": 7, "batch": 3, "tied": True, "learning_rate": 0.01}
    assert found == TrainSettings.chosen({"preset": "tiny", **given})


def test_help_has_every_setting_under_its_topic_and_each_model_has_a_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        from_flags(["--preset", "tiny", "--help"])
    groups = dict(part.split(":\n", 1) for part in capsys.readouterr().out.split("\n\n") if ":\n" in part)
    for name, definition in TrainSettings.table().items():
        owners = [model for model, kind in MODEL_SETTINGS.items() if name in kind.names()]
        title = next(title for title, text in groups.items() if f"\n  {definition.flag}" in f"\n{text}")
        assert title.startswith(definition.topic)
        assert (f"--model {', '.join(owners)})" in title) is (0 < len(owners) < len(MODEL_SETTINGS))
    assert "default: 32)" in groups["all models"]


def test_every_model_has_settings_and_another_model_takes_over_what_it_has() -> None:
    assert MODEL_SETTINGS.keys() == MODELS.keys()
    changed = TrainSettings(hidden=7, candidates=3, epochs=3).changed(model="haqae", codes=4)
    assert changed == TrainSettings(model="haqae", hidden=7, epochs=3, codes=4)


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_every_default_is_right_and_explained(group: type[Settings]) -> None:
    for definition in group.table().values():
        assert definition.check(definition.default) == definition.default
        assert definition.help
        assert definition.topic


NUMBER = Setting("n", int, 1, "", "", ssdvae.config.Bounds(at_least=-3, below=9))


@given(st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.none(), st.lists(st.integers())))
def test_a_value_is_taken_or_refused_in_words(value: Any) -> None:
    right = type(value) is int and -3 <= value < 9
    try:
        assert NUMBER.check(value) == value
        assert right
    except UserError:
        assert not right


@given(st.text())
def test_text_on_the_command_line_is_taken_or_refused_in_words(text: str) -> None:
    for kind in (int, float, bool, str, Path, int | None):
        try:
            value = Setting("n", kind, None, "", "", ssdvae.config.Bounds(at_most=5)).parse(text)
            assert value is None or isinstance(value, kind)
            assert not isinstance(value, int | float) or value <= 5
        except UserError:
            pass
