"""How much of a file is held in memory at once.

A few megabytes of compressed data may unpack to gigabytes. Files are therefore read piece by piece, and a
piece that cannot be meant is refused before it is in memory. Who does mean it raises the limit by an
environment variable, which the message names.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import IO

from ssdvae.errors import DataError, UserError

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Limit:
    """The most bytes that one piece of a file may have."""

    variable: str
    default: int

    @property
    def bytes(self) -> int:
        """As the environment has it: a number, perhaps with K, M or G after it."""
        text = os.environ.get(self.variable, "")
        if not text:
            return self.default
        match = re.fullmatch(r"([0-9]{1,15})([KMG]?)", text.strip().upper())
        if match is None or not int(match[1]):
            raise UserError(f"{self.variable}: found {text[:80]!r}, expected a number of bytes, such as 64M")
        return int(match[1]) * UNITS[match[2]]

    @property
    def doubled(self) -> str:
        """What to set in the environment for twice as much."""
        twice = 2 * self.bytes
        unit = next(unit for unit in ("G", "M", "K", "") if twice % UNITS[unit] == 0)
        return f"{self.variable}={twice // UNITS[unit]}{unit}"

    def error(
        self, path: str | os.PathLike[str], line: int | None, what: str, unit: str = "line"
    ) -> DataError:
        """What is said of a piece that is larger."""
        hint = f"is the file damaged? if it is right as it is, raise the limit: {self.doubled}"
        found = f"{what} of more than {shown(self.bytes)}"
        return DataError(path, line, found, f"at most {shown(self.bytes)}", hint, unit=unit)


LINE = Limit("SSDVAE_MAX_LINE", 16 * 2**20)
"""A line of text: a document of JSON lines, a row of a table, a word and its vector."""

WHOLE = Limit("SSDVAE_MAX_WHOLE", 64 * 2**20)
"""What is read as a whole: a JSON file, a text, a file in an archive, a parsed document."""


SORTED = Limit("SSDVAE_SORT_MEMORY", 512 * 2**20)
"""The rows of a table, while they are put in order; the rest of them waits on disk."""


def shown(count: float) -> str:
    """A number of bytes for a reader."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:,.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:,.3g} {unit}"
        count /= 1024
    raise AssertionError


SETTINGS = Limit("SSDVAE_MAX_SETTINGS", 2**18)
"""A file of settings: YAML takes a thousand times its size in memory, and long to read."""

PIECE = 50
"""What Python needs for a string beside its characters, about."""


class Held:
    """Adds up the lines of something that is held as a whole: a row, a text, a sentence."""

    def __init__(self, path: str | os.PathLike[str], what: str, limit: Limit = WHOLE) -> None:
        self.path, self.what, self.limit = path, what, limit
        self.most = limit.bytes
        self.begin(None)

    def begin(self, line: int | None) -> None:
        """The next one, which begins on this line."""
        self.line, self.size = line, 0

    def add(self, piece: str) -> str:
        """One more line of it, which is given back."""
        self.add_size(len(piece) + PIECE)
        return piece

    def add_size(self, size: int) -> None:
        """So much more of it."""
        self.size += size
        if self.size > self.most:
            raise self.limit.error(self.path, self.line, self.what)


def read_whole(
    file: IO[bytes], path: str | os.PathLike[str], what: str = "a file", limit: Limit = WHOLE
) -> bytes:
    """The rest of a file, if it is not too large to be held."""
    most = limit.bytes
    # In pieces: asked for so much at once, some readers take the memory for it beforehand.
    parts, size = [], 0
    while part := file.read(min(2**20, most + 1 - size)):
        parts.append(part)
        size += len(part)
        if size > most:
            raise limit.error(path, None, what)
    return b"".join(parts)
