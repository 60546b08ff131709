"""JSON and YAML: read with the place of what is wrong, written so that every reader takes it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import yaml

from ssdvae.errors import DataError, Malformed, shorten, shorten_text
from ssdvae.files import DAMAGE, open_bytes, translate_os_errors
from ssdvae.limits import SETTINGS, WHOLE, Limit, read_whole

DEEP = "brackets within brackets, too deep to read"


def to_json(value: Any, **options: Any) -> str:
    """JSON as every reader takes it: numbers that are not finite, which it does not have, are null."""
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
    """The value of JSON; the words for numbers that are not finite, which JSON does not have, are null.

    Raises ``Malformed``.
    """
    try:
        return json.loads(text, parse_constant=lambda word: None)
    except RecursionError as error:
        raise Malformed(DEEP, "a JSON value") from error
    except ValueError as error:
        raise Malformed(str(error), "a JSON value") from error


def read_json(path: Path, kind: type, expected: str) -> Any:
    """The JSON value of a file."""
    try:
        value = from_json(_content(path, expected))
        if not isinstance(value, kind):
            raise Malformed(shorten(value), expected)
    except Malformed as error:
        raise DataError(path, None, error.found, expected) from error
    return value


def read_yaml(path: Path, expected: str, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> dict[str, Any]:
    """The mapping of names to values in a YAML file."""
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
    """The text of a UTF-8 file that is held as a whole."""
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
