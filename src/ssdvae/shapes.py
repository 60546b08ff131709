"""Whether what was read from JSON or YAML has the shape that it should have.

A shape is a type as annotations write it: ``int``, ``float | None``, ``list[str]``, ``dict[str, int]``, a
``TypedDict`` or a dataclass. Numbers are finite, whole numbers fit into 64 bits, and ``True`` is no number.
"""

from __future__ import annotations

import math
from dataclasses import MISSING as NO_DEFAULT
from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

from ssdvae.errors import Malformed, shorten

NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text", NoneType: "null"}
LARGEST = 2**63

Thing = TypeVar("Thing")


def check_shape(value: object, shape: Any, place: str = "") -> None:
    """Raises ``Malformed``, which says at what place there is what, where the value has another shape."""
    if shape is Any:
        return
    origin = get_origin(shape)
    if origin in (Union, UnionType):
        _check_union(value, get_args(shape), place)
    elif is_typeddict(shape) or is_dataclass(shape):
        _check_record(value, shape, place)
    elif origin is dict:
        _check_type(value, dict, "a mapping", place)
        assert isinstance(value, dict)
        for key, inner in value.items():
            check_shape(key, str, f"a name in {place or 'it'}")
            check_shape(inner, get_args(shape)[1], f"{place}.{key}" if place else key)
    elif origin is list:
        _check_type(value, list, "a list", place)
        assert isinstance(value, list)
        for number, inner in enumerate(value, start=1):
            check_shape(inner, get_args(shape)[0], f"{place}[{number}]")
    else:
        _check_plain(value, shape, place)


def _check_plain(value: object, shape: Any, place: str) -> None:
    if shape is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise _wrong(value, "a finite number", place)
        return
    _check_type(value, shape, NAMES[shape], place)
    if shape is int and (isinstance(value, bool) or not -LARGEST <= value < LARGEST):  # type: ignore[operator]  # an int: just checked
        raise _wrong(value, NAMES[int], place)


def _check_union(value: object, shapes: tuple[Any, ...], place: str) -> None:
    problems = []
    for shape in shapes:
        try:
            check_shape(value, shape, place)
        except Malformed as error:
            problems.append(error)
        else:
            return
    # null is the alternative that nobody means who gives something else.
    told = next((p for p, shape in zip(problems, shapes, strict=True) if shape is not NoneType), problems[0])
    raise told


def _check_record(value: object, shape: Any, place: str) -> None:
    """All that must be there is, and nothing is there that has no meaning."""
    _check_type(value, dict, "a mapping", place)
    assert isinstance(value, dict)
    hints = get_type_hints(shape)
    needed: set[str] = set()
    if is_typeddict(shape):
        needed = set(shape.__required_keys__)
    else:
        optional = {f.name for f in fields(shape) if (f.default, f.default_factory) != (NO_DEFAULT,) * 2}
        needed = set(hints) - optional
        if unknown := [key for key in value if key not in hints]:
            raise _wrong(unknown[0], f"some of {', '.join(hints)}", place)
    if missing := [name for name in hints if name in needed and name not in value]:
        raise Malformed(f"no {f'{place}.' if place else ''}{missing[0]}", "it to be there")
    for name, hint in hints.items():
        if name in value:
            check_shape(value[name], hint, f"{place}.{name}" if place else name)


def _check_type(value: object, kind: type, name: str, place: str) -> None:
    if not isinstance(value, kind):
        raise _wrong(value, name, place)


def _wrong(value: object, expected: str, place: str) -> Malformed:
    return Malformed(f"{shorten(value)}{f' at {place}' if place else ''}", expected)


def made(kind: type[Thing], value: object) -> Thing:
    """A dataclass from a mapping of that shape."""
    check_shape(value, kind)
    assert isinstance(value, dict)
    return kind(**value)
