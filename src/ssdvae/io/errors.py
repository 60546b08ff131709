"""Errors that a user can fix: shown as one message, never as a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class UserError(Exception):
    """A request that cannot be done; the message says what to do about it."""


class Malformed(ValueError):
    """A value that is not as expected; whoever reads the file adds its place (``DataError``)."""

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found = found
        self.expected = expected


class DataError(UserError):
    """An error in a file: where, what was found, what was expected."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        line: int | None,
        found: str,
        expected: str,
        hint: str = "",
        unit: str = "line",
    ) -> None:
        place = str(path) if line is None else f"{path}, {unit} {line}"
        message = f"{place}: found {found}, expected {expected}"
        super().__init__(f"{message}\n{hint}" if hint else message)
        self.path = Path(path)
        self.line = line
        self.found = found
        self.expected = expected
        self.hint, self.unit = hint, unit

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle all parts: by default an exception is made again from its message alone."""
        return type(self), (self.path, self.line, self.found, self.expected, self.hint, self.unit)


@contextmanager
def locate_errors(path: str | os.PathLike[str], line: int | None) -> Iterator[None]:
    """Turn ``Malformed`` into a ``DataError`` that names the file and the line."""
    try:
        yield
    except Malformed as error:
        raise DataError(path, line, error.found, error.expected) from error


def shorten(value: object, width: int = 80) -> str:
    """Return ``repr(value)``, cut to a width."""
    # Piece by piece: a few lines of YAML may stand for gigabytes.
    text = ""
    for piece in _repr_pieces(value, width, 0):
        text += piece
        if len(text) > width:
            return text[: width - 1] + "…"
    return text


def shorten_text(text: str, width: int = 200) -> str:
    """Return a text, cut to a width."""
    return text if len(text) <= width else text[: width - 1] + "…"


def _repr_pieces(value: object, width: int, depth: int) -> Iterator[str]:
    """Yield the pieces of ``repr(value)``."""
    if isinstance(value, str | bytes):
        yield repr(value[: width + 1])
    elif isinstance(value, dict | list) and depth > 20:
        yield "…"
    elif isinstance(value, dict):
        yield "{"
        for number, (key, inner) in enumerate(value.items()):
            yield ", " if number else ""
            yield from _repr_pieces(key, width, depth + 1)
            yield ": "
            yield from _repr_pieces(inner, width, depth + 1)
        yield "}"
    elif isinstance(value, list):
        yield "["
        for number, inner in enumerate(value):
            yield ", " if number else ""
            yield from _repr_pieces(inner, width, depth + 1)
        yield "]"
    else:
        yield repr(value)


def not_installed(package: str, extra: str, purpose: str) -> UserError:
    """Return the error for an optional package that is missing."""
    return UserError(
        f"{purpose} needs the package {package}, which is not installed\npip install 'ssdvae[{extra}]'"
    )
