"""JSON and YAML: whatever is written every reader takes, and whatever is read has the shape asked for."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.io.errors import DataError, Malformed, shorten
from ssdvae.io.records import Int64, Record, from_json, parse, read_json, read_yaml, to_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(), v, max_size=4))


def refuse(word: str) -> Any:
    raise AssertionError(f"{word} is no JSON")


def finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


@given(VALUES)
def test_what_is_written_is_json_and_what_is_not_finite_is_null(value: Any) -> None:
    assert json.loads(to_json(value), parse_constant=refuse) == finite(value)
    assert from_json(json.dumps(value)) == finite(value)


@given(st.binary() | st.sampled_from([b"[" * 10_000, b"a: &a [*a]", b"1" * 5000, b"a: 0001-99-99"]))
def test_any_bytes_are_read_or_refused_with_the_name_of_the_file(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a")
        path.write_bytes(content)
        readers: list[Callable[[], object]] = [
            lambda: read_json(path, object, "JSON"),
            lambda: read_yaml(path, "YAML"),
        ]
        for read in readers:
            try:
                read()
            except DataError as error:
                refused = str(error)
            else:
                refused = str(path)
            assert str(path) in refused


def test_a_few_lines_of_yaml_that_stand_for_gigabytes_are_refused_at_once(tmp_path: Path) -> None:
    lines = ["a: &a [x, x, x, x, x, x, x, x, x]"]
    for before, name in pairwise("abcdefghijkl"):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    (tmp_path / "a.yaml").write_text("\n".join(lines))
    value = read_yaml(tmp_path / "a.yaml", "YAML")
    assert len(shorten(value)) == 80
    with pytest.raises(Malformed, match="at a, expected text"):
        parse(dict[str, str], value)


@given(st.recursive(st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v)))
def test_what_is_short_is_shown_as_it_is(value: Any) -> None:
    shown = repr(value)
    assert shorten(value) == (shown if len(shown) <= 80 else shown[:79] + "…") or "…" in shorten(value)


class Part(Record, extra="ignore"):
    count: Int64


class Whole(Record):
    parts: list[Part]
    ratio: float | None = None
    names: dict[str, str] = {}  # noqa: RUF012  # pydantic copies it
    figure: float | dict[str, float] | None = None


RIGHT = {"parts": [{"count": 1}], "ratio": 0.5, "names": {"a": "b"}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"parts": None}, "found None at parts, expected a list"),
        ({"parts": [{}]}, r"found no parts\[1\].count"),
        ({"parts": [{"count": True}]}, r"found True at parts\[1\].count, expected a whole number"),
        ({"parts": [{"count": 2**63}]}, r"at parts\[1\].count, expected a whole number"),
        ({"parts": [{"count": 1.0}]}, r"found 1.0 at parts\[1\].count"),
        ({"ratio": "1"}, "found '1' at ratio, expected a number"),
        ({"ratio": 1e999}, "found inf at ratio, expected a finite number"),
        ({"ratio": False}, "found False at ratio"),
        ({"names": {"a": 1}}, "found 1 at names.a, expected text"),
        ({"names": {1: "a"}}, "found 1 as a name, expected text"),
        ({"more": 1}, "found 'more', expected a name that is known"),
        ({"figure": "1"}, "found '1' at figure, expected a number or a mapping"),
        ({"figure": {"a": {"b": 1}}}, "at figure"),
        ({"figure": 1e999}, "found inf at figure, expected a finite number or a mapping"),
        ({"ratio": 10**310}, "found 10000.*… at ratio, expected a finite number"),
        ({"figure": {"a": 10**4000}}, "at figure"),
        ({"parts": [{"count": -(10**400)}]}, r"found -1000.*… at parts\[1\].count, expected a whole number"),
    ],
)
def test_a_shape_says_where_it_is_broken(change: dict[str, Any], message: str) -> None:
    assert parse(Whole, RIGHT).model_dump() == {**RIGHT, "figure": None}
    assert parse(Whole, {"parts": []}) == Whole(parts=[])
    with pytest.raises(Malformed, match=message):
        parse(Whole, {**RIGHT, **change})


@given(VALUES)
def test_any_value_is_parsed_or_refused_in_words(value: Any) -> None:
    for kind in (Whole, list[Part], dict[str, float], dict[str, str | list[str] | dict[str, float]], str):
        with contextlib.suppress(Malformed):
            parse(kind, value)
