"""Options are checked in the same way, wherever they come from: Python, flags, YAML."""

from __future__ import annotations

import inspect
import math
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

import ssdvae
from ssdvae.cli import main
from ssdvae.data.options import PrepareOptions
from ssdvae.inference.options import InferOptions
from ssdvae.io.errors import UserError
from ssdvae.io.records import LARGEST
from ssdvae.models.options import MODEL_OPTIONS, ModelOptions
from ssdvae.models.registry import MODELS
from ssdvae.options import (
    KINDS,
    PRESETS,
    Counts,
    Options,
    bounds_of,
    choices_of,
    describe,
    flag,
    is_optional,
    kind_of,
    parse,
    with_options,
)
from ssdvae.training.options import TrainOptions
from tests.flags import parse_flags, shown_help

COUNTS = Counts(documents=3_000, events=15_000, words=300)
"""The size of a corpus, for what depends on it."""

SOURCE = Path(ssdvae.__file__).parent
KINDS_OF_OPTIONS = sorted(
    {
        value
        for path in SOURCE.glob("*/options.py")
        for value in vars(import_module(f"ssdvae.{path.parent.name}.options")).values()
        if isinstance(value, type) and issubclass(value, Options)
        # Options that several models share are looked at as options of these models.
        if not (issubclass(value, ModelOptions) and not value.model)
    },
    key=lambda kind: kind.__name__,
)


def owner(kind: type[Options], name: str) -> type:
    """Return the class that defines an option."""
    return next(base for base in kind.__mro__ if name in vars(base).get("__annotations__", {}))


FIELDS = [
    pytest.param(kind, name, field, id=f"{defined_by.__name__}.{name}")
    for (defined_by, name), (kind, field) in {
        (owner(kind, name), name): (kind, field)
        for kind in KINDS_OF_OPTIONS
        for name, field in kind.model_fields.items()
        if name != "model_options"
    }.items()
]
"""Every option once, with a class that has it."""

NUMBERS = [param for param in FIELDS if kind_of(cast(FieldInfo, param.values[2])) in (int, float)]


def train_flags(words: list[str]) -> TrainOptions:
    given = parse_flags(["train", "corpus", "--out", "run", *words])
    options = {name: value for name, value in given.items() if name not in ("corpus", "out")}
    return TrainOptions.chosen(options, COUNTS)


def train_yaml(values: dict[str, Any], folder: Path) -> TrainOptions:
    (folder / "c.yaml").write_text(yaml.safe_dump(values))
    return train_flags(["--config", str(folder / "c.yaml")])


# Each option by itself.


def test_all_packages_with_options_are_looked_at() -> None:
    assert len(KINDS_OF_OPTIONS) >= 25
    assert {PrepareOptions, TrainOptions, *MODEL_OPTIONS.values()} <= set(KINDS_OF_OPTIONS)


@pytest.mark.parametrize(("kind", "name", "field"), FIELDS)
def test_every_option_has_help_a_type_and_a_valid_default(
    kind: type[Options], name: str, field: FieldInfo
) -> None:
    assert field.description
    assert "  " not in field.description
    assert kind_of(field) in KINDS or choices_of(field)
    default = field.get_default(call_default_factory=True)
    kind.of({**kind.of({}).values(), name: default})
    if not is_optional(field):
        assert default is not None


@pytest.mark.parametrize(("kind", "name", "field"), NUMBERS)
def test_a_number_is_finite_of_63_bits_and_no_truth_value(
    kind: type[Options], name: str, field: FieldInfo
) -> None:
    for value in (
        math.nan,
        math.inf,
        -math.inf,
        True,
        "3",
        [3],
        10**30,
        -LARGEST,
        np.float64("nan"),
    ):
        with pytest.raises(UserError) as error:
            kind.of({name: value})
        assert f"{flag(name)}: found " in str(error.value)
        assert KINDS[kind_of(field)] in str(error.value)


@pytest.mark.parametrize(("kind", "name", "field"), NUMBERS)
def test_a_number_beyond_its_bounds_is_refused_with_them(
    kind: type[Options], name: str, field: FieldInfo
) -> None:
    beyond = {"ge": -1, "gt": 0, "le": 1, "lt": 0}
    for bound, limit in bounds_of(field).items():
        value = limit + beyond[bound]
        with pytest.raises(UserError) as error:
            kind.of({name: value})
        assert str(error.value) == f"{flag(name)}: found {value}, expected {describe(field)}"
        assert f"{limit:g}" in str(error.value)


@pytest.mark.parametrize(("kind", "name", "field"), NUMBERS)
def test_numpy_numbers_are_accepted(kind: type[Options], name: str, field: FieldInfo) -> None:
    default = field.default
    if isinstance(default, int | float):
        for wide in (np.int64, np.float64) if kind_of(field) is float else (np.int64, np.int32):
            if wide(default) == default:
                found = getattr(kind.of({name: wide(default)}), name, default)
                assert found == default
                assert type(found) in (int, float, str)


def test_numbers_that_mean_the_same_are_the_same() -> None:
    assert TrainOptions(hidden=np.int64(3), clip=5) == TrainOptions(hidden=3, clip=5.0)
    assert TrainOptions(vectors="a.txt") == TrainOptions(vectors=Path("a.txt"))
    assert isinstance(TrainOptions(clip=5).clip, float)


@st.composite
def some_options(draw: st.DrawFn) -> Options:
    """Draw an options class and values for some of its numbers, truth values and choices."""
    kind = draw(st.sampled_from(KINDS_OF_OPTIONS))
    values: dict[str, Any] = {}
    for name, field in kind.fields_for({}).items():
        if name != "model" and draw(st.booleans()):
            bounds, inner = bounds_of(field), kind_of(field)
            least = bounds.get("ge", bounds.get("gt", 0) + (inner is int or 1e-3))
            most = min(bounds.get("le", 1000), bounds.get("lt", 1001) - (inner is int or 1e-3))
            if inner is int:
                values[name] = draw(st.integers(int(least), int(most)))
            elif inner is float:
                values[name] = draw(st.floats(least, most, allow_subnormal=False))
            elif inner is bool:
                values[name] = draw(st.booleans())
            elif choices_of(field):
                values[name] = draw(st.sampled_from(choices_of(field)))
    try:
        return kind(**values)
    except UserError:
        assume(False)
        raise


@given(some_options())
def test_options_are_the_same_after_a_round_trip(options: Options) -> None:
    kind = type(options)
    plain = options.to_dict()
    assert kind.of(plain) == options
    assert kind.of(yaml.safe_load(yaml.safe_dump(plain))) == options
    assert options.changed() == options
    assert kind.of({**plain, "something_else": 1}) == options


@given(st.one_of(st.integers(), st.floats(), st.text(), st.booleans(), st.none(), st.lists(st.integers())))
def test_a_value_is_accepted_or_refused_with_a_message(value: Any) -> None:
    right = type(value) is int and 1 <= value < LARGEST
    try:
        assert TrainOptions(epochs=value).epochs == value
        assert right
    except UserError:
        assert not right


@given(st.text())
def test_text_on_the_command_line_is_accepted_or_refused_with_a_message(text: str) -> None:
    for name in ("epochs", "events", "clip", "observe", "vectors", "track", "precision"):
        field = TrainOptions.fields()[name]
        try:
            value = getattr(TrainOptions(**{name: parse(field, text)}), name)
        except UserError:
            continue
        inner = kind_of(field)
        assert value is None or value in choices_of(field) or isinstance(value, (inner, int))


# The same message from everywhere.


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("hidden", 8.5, "found 8.5, expected a whole number, at least 1"),
        ("hidden", 0, "found 0, expected a whole number, at least 1"),
        ("epochs", "three", "found 'three', expected a whole number, at least 1"),
        ("learning_rate", 0, "expected a number, above 0"),
        ("learning_rate", math.inf, "found inf, expected a number, above 0"),
        ("observe", 1.5, "found 1.5, expected a number, from 0 to 1"),
        ("precision", "half", "found 'half', expected one of auto, fp32, bf16, fp16"),
        ("model", "vae", "found 'vae', expected one of ssdvae-exact, ssdvae, rnnlm"),
    ],
)
def test_a_wrong_value_gets_the_same_message_from_everywhere(
    name: str, value: Any, expected: str, tmp_path: Path
) -> None:
    for make in (
        partial(TrainOptions, **{name: value}),
        partial(TrainOptions.chosen, {"preset": "tiny", name: value}),
        partial(TrainOptions().changed, **{name: value}),
        partial(train_flags, [flag(name), str(value)]),
        partial(train_yaml, {name: value}, tmp_path),
    ):
        with pytest.raises(UserError) as error:
            make()
        assert f"{flag(name)}: " in str(error.value)
        assert expected in str(error.value)


@pytest.mark.parametrize("value", ["3", True, None, 3.0, [3]])
def test_a_whole_number_is_nothing_else(value: Any, tmp_path: Path) -> None:
    for make in (partial(TrainOptions, epochs=value), partial(train_yaml, {"epochs": value}, tmp_path)):
        with pytest.raises(UserError, match=r"--epochs: found .*, expected a whole number, at least 1"):
            make()


@pytest.mark.parametrize("model", MODEL_OPTIONS)
def test_an_option_of_another_model_is_refused_by_name(model: str, tmp_path: Path) -> None:
    own = MODEL_OPTIONS[model].names()
    others = {name for kind in MODEL_OPTIONS.values() for name in kind.names()} - {*own}
    for name in others:
        default = TrainOptions.fields()[name].default
        values = {"model": model, name: default}
        words = [flag(name)] if isinstance(default, bool) else [flag(name), str(default or "1")]
        for make in (
            partial(TrainOptions, **values),
            partial(TrainOptions(model=model).changed, **{name: default}),
            partial(ModelOptions.read, values),
            partial(train_flags, ["--model", model, *words]),
            partial(train_yaml, values, tmp_path),
        ):
            with pytest.raises(UserError, match=f"{model} has no option '{name}' .* it\\b"):
                make()


def test_the_nearest_option_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="'hiden'; did you mean 'hidden'"):
        TrainOptions(hiden=3)
    with pytest.raises(
        UserError, match=r"rnnlm has no option 'latents' \(haqae has it\); did you mean 'layers'"
    ):
        TrainOptions(model="rnnlm", latents=9)
    with pytest.raises(UserError, match="no option 'event'; did you mean 'events'"):
        PrepareOptions.sized("tiny", event=3)
    with pytest.raises(UserError, match=r"c\.yaml: no option 'hiden'; did you mean 'hidden'"):
        train_yaml({"hiden": 3}, tmp_path)
    with pytest.raises(UserError, match=r"--hiden.*[Dd]id you mean.*--hidden"):
        train_flags(["--hiden", "3"])


# Presets, files and flags.


@pytest.mark.parametrize("model", MODEL_OPTIONS)
@pytest.mark.parametrize("size", PRESETS)
def test_a_preset_gives_each_model_what_it_has(model: str, size: str) -> None:
    options = TrainOptions.chosen({"preset": size, "model": model})
    values = options.values()
    assert {name: value for name, value in PRESETS[size].items() if name in values}.items() <= values.items()
    assert options == train_flags(["--preset", size, "--model", model])
    assert options == TrainOptions(**options.to_dict())


def test_a_preset_is_changed_by_the_file_and_that_by_flags(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("hidden: 7\nbatch: 9\nlearning_rate: 1e-2\n")
    found = train_flags(["--preset", "tiny", "--config", str(tmp_path / "c.yaml"), "--batch", "3", "--tied"])
    expected = {"hidden": 7, "batch": 3, "tied": True, "learning_rate": 0.01}
    assert found == TrainOptions.chosen({"preset": "tiny", **expected})


def test_help_shows_what_a_value_is(capsys: pytest.CaptureFixture[str]) -> None:
    shown = shown_help(["train"], capsys)
    for typed in ("--epochs INT", "--clip FLOAT", "--vectors PATH", "--preset CHOICE"):
        assert typed in shown


def test_help_has_every_option_of_the_model_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    for model, kind in MODEL_OPTIONS.items():
        shown = shown_help(["train", "--model", model], capsys)
        for name in TrainOptions.fields():
            listed = f" {flag(name)} " in shown
            assert listed is (name in ("model", *kind.names(), *TrainOptions.training_fields())), name


def test_every_model_has_options_and_another_model_takes_over_what_it_has() -> None:
    assert MODEL_OPTIONS.keys() == MODELS.keys()
    changed = TrainOptions(hidden=7, candidates=3, epochs=3).changed(model="haqae", codes=4)
    assert changed == TrainOptions(model="haqae", hidden=7, epochs=3, codes=4)


def test_a_new_option_is_a_new_argument() -> None:
    """It is written once."""

    @with_options(InferOptions)
    def function(run: str, **options: Any) -> None:
        """Do nothing."""

    for name, field in InferOptions.fields().items():
        assert f"{name}: {field.description}" in (function.__doc__ or "")
    with pytest.raises(TypeError):
        inspect.signature(function).bind("run", no_such_option=1)


def test_a_wrong_flag_is_a_message_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "corpus", "--out", "run", "--epochs", "0"]) == 2
    assert "--epochs: found 0, expected a whole number, at least 1" in capsys.readouterr().err
