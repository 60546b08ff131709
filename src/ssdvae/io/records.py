"""JSON and YAML: read with the place of what is wrong, written so that every reader takes it.

What a file must hold is a type that pydantic knows: ``dict[str, str]``, or a class of ``Record``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from ssdvae.io.errors import DataError, Malformed, shorten, shorten_text
from ssdvae.io.files import DAMAGE, open_bytes, translate_os_errors
from ssdvae.io.limits import SETTINGS, WHOLE, Limit, read_whole

LARGEST = 2**63
"""Whole numbers are below this: torch cannot draw from larger ones, and Arrow cannot count with them."""

Int64 = Annotated[int, Field(ge=-LARGEST, lt=LARGEST)]

Count = Annotated[int, Field(ge=0, lt=LARGEST)]
"""A whole number that is counted from 0."""

STRICT = ConfigDict(strict=True, allow_inf_nan=False)

EXPECTED = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "none_required": "null",
}
"""The expected value, by pydantic's name of the mistake."""

BOUNDS = {"ge": "{} or more", "gt": "a number above {}", "le": "{} or less", "lt": "a number below {}"}

Value = TypeVar("Value")


class Record(BaseModel):
    """The base of what is read from JSON: strict about types, with finite numbers and no unknown keys."""

    model_config = ConfigDict(**STRICT, extra="forbid", frozen=True)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    is_model = isinstance(kind, type) and issubclass(kind, BaseModel)
    return TypeAdapter(kind, config=None if is_model else STRICT)


def parse(kind: type[Value], value: object, place: str = "") -> Value:
    """Return a value from JSON as the type that it must have; ``place`` is its name in messages.

    Raises ``Malformed``.
    """
    try:
        parsed: Value = _adapter(kind).validate_python(value)  # type: ignore[arg-type]  # a type can be hashed
    except ValidationError as error:
        raise malformed(error, value, place) from error
    return parsed


def malformed(error: ValidationError, value: object, place: str = "") -> Malformed:
    """Return the first mistake in our words: its place, what was found and what was expected."""
    problem, *others = error.errors(include_url=False)
    path = list(problem["loc"])
    if problem["type"] == "missing":
        return Malformed(f"no {_place(value, path[:-1], place, str(path[-1]))}", "it to be there")
    if problem["type"] == "extra_forbidden":
        return Malformed(shorten(path[-1]) + _at(_place(value, path[:-1], place)), "a name that is known")
    if path and path[-1] == "[key]":
        return Malformed(f"{shorten(problem['input'])} as a name", "text")
    where = _at(_place(value, path, place))
    # Of a value that may have several types, there is a problem for each.
    alike = [problem, *(p for p in others[:9] if _at(_place(value, p["loc"], place)) == where)]
    expected = " or ".join(dict.fromkeys(map(_expected, alike)))
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, Malformed):  # from a validator
        return Malformed(cause.found + where, cause.expected)
    return Malformed(shorten(problem["input"]) + where, expected)


def _at(place: str) -> str:
    return f" at {place}" if place else ""


def _place(value: Any, path: Sequence[int | str], place: str, last: str = "") -> str:
    """Return where a path of keys and indices leads, as ``splits.train[1].events``."""
    for part in path:
        if isinstance(value, dict) and part in value:
            place = f"{place}.{part}" if place else str(part)
        elif isinstance(value, list) and isinstance(part, int):
            place += f"[{part + 1}]"
        else:
            continue  # pydantic's name of one of several types
        value = value[part]
    return ".".join(filter(None, [place, last]))


def _expected(problem: ErrorDetails) -> str:
    found, kind = problem["input"], problem["type"]
    is_huge = type(found) is int and not -LARGEST <= found < LARGEST
    if is_huge and kind == "float_type":
        return EXPECTED["finite_number"]
    for name, words in BOUNDS.items():
        if name in problem.get("ctx", {}):
            bound = problem["ctx"][name]
            text = f"{bound:g}" if isinstance(bound, float) else f"{bound:,}"
            return "a whole number of 64 bits" if is_huge else words.format(text)
    return EXPECTED.get(kind, problem["msg"])


DEEP = "brackets within brackets, too deep to read"


def to_json(value: Any, **options: Any) -> str:
    """Return JSON that every reader takes: numbers that are not finite are null."""
    try:
        return json.dumps(value, allow_nan=False, **options)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, **options)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    return [_finite(inner) for inner in value] if isinstance(value, list | tuple) else value


def from_json(text: str | bytes) -> Any:
    """Return the value of JSON; NaN and Infinity, which JSON does not have, are null.

    Raises ``Malformed``.
    """
    try:
        return json.loads(text, parse_constant=lambda word: None)
    except RecursionError as error:
        raise Malformed(DEEP, "a JSON value") from error
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise Malformed(f"{error.msg} at {line}column {error.colno}", "a JSON value") from error
    except ValueError as error:  # a number with thousands of digits
        raise Malformed(str(error), "a JSON value") from error


def read_json(path: Path, kind: type[Value], expected: str, hint: str = "") -> Value:
    """Return the JSON value of a file, which must be of this type; ``expected`` describes it in messages."""
    try:
        value = from_json(_content(path, expected))
    except Malformed as error:
        raise DataError(path, None, error.found, expected, hint) from error
    try:
        return parse(kind, value)
    except Malformed as error:
        is_whole = error.found == shorten(value)
        raise DataError(path, None, error.found, expected if is_whole else error.expected, hint) from error


def read_yaml(path: Path, expected: str, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> dict[str, Any]:
    """Return the mapping of names to values in a YAML file."""
    try:
        value = yaml.load(_content(path, expected, SETTINGS), loader)
        if not isinstance(value, dict):
            raise Malformed(shorten(value), expected)
        if other := [key for key in value if not isinstance(key, str)]:
            raise Malformed(f"{shorten(other[0])} as a name", expected)
    except Malformed as error:
        raise DataError(path, None, error.found, error.expected) from error
    except RecursionError as error:
        raise DataError(path, None, DEEP, expected) from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else None
        raise DataError(path, line, error.problem or error.context or "no YAML", expected) from error
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, OverflowError) as error:
        # A number or a date that Python cannot hold, or characters that YAML does not allow.
        raise DataError(path, None, shorten_text(str(error)), expected) from error
    return value


def _content(path: Path, expected: str, limit: Limit = WHOLE) -> str:
    """Return the text of a UTF-8 file."""
    with translate_os_errors(path, "read"), open_bytes(path) as file:
        try:
            content = read_whole(file, path, limit=limit)
        except DAMAGE as error:
            raise DataError(path, None, str(error) or type(error).__name__, expected) from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        found = f"the byte 0x{content[error.start]:02x}, which is not UTF-8"
        raise DataError(path, line, found, "text in UTF-8", "save the file as UTF-8") from error
