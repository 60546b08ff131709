"""Limits on what is read into memory at once.

A few megabytes of compressed data may unpack to gigabytes. Files are therefore read piece by piece, and a
piece that is too large is refused before it is in memory. An environment variable, which the message names,
raises the limit.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
from dataclasses import dataclass
from functools import cache
from typing import IO

from ssdvae.io.errors import DataError, UserError

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Limit:
    """The most bytes that one piece of a file may have."""

    variable: str
    default: int

    @property
    def bytes(self) -> int:
        """The limit, or the number in the environment variable, which may end in K, M or G."""
        text = os.environ.get(self.variable, "")
        if not text:
            return self.default
        match = re.fullmatch(r"([0-9]{1,15})([KMG]?)", text.strip().upper())
        if match is None or not int(match[1]):
            raise UserError(f"{self.variable}: found {text[:80]!r}, expected a number of bytes, such as 64M")
        return int(match[1]) * UNITS[match[2]]

    @property
    def doubled(self) -> str:
        """The environment variable, set to twice the limit."""
        twice = 2 * self.bytes
        unit = next(unit for unit in ("G", "M", "K", "") if twice % UNITS[unit] == 0)
        return f"{self.variable}={twice // UNITS[unit]}{unit}"

    def error(
        self, path: str | os.PathLike[str], line: int | None, what: str, unit: str = "line"
    ) -> DataError:
        """Return the error for a piece that is larger."""
        hint = f"is the file damaged? if it is right as it is, raise the limit: {self.doubled}"
        found = f"{what} of more than {format_bytes(self.bytes)}"
        return DataError(path, line, found, f"at most {format_bytes(self.bytes)}", hint, unit=unit)


LINE = Limit("SSDVAE_MAX_LINE", 16 * 2**20)
"""A line of text: a document of JSON lines, a row of a table, a word and its vector."""

WHOLE = Limit("SSDVAE_MAX_WHOLE", 64 * 2**20)
"""A piece that is read as a whole: a JSON file, a text, a file in an archive, a parsed document."""


SORTED = Limit("SSDVAE_SORT_MEMORY", 512 * 2**20)
"""The rows of a table while they are sorted; the rest waits on disk."""


def format_bytes(count: float) -> str:
    """Return a number of bytes as text."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024 or unit == "TiB":
            return f"{count:,.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:,.3g} {unit}"
        count /= 1024
    raise AssertionError


SETTINGS = Limit("SSDVAE_MAX_SETTINGS", 2**18)
"""A file of options: YAML takes a thousand times its size in memory, and long to read."""

STRING_OVERHEAD = 50
"""Bytes that Python needs for a string beside its characters, about."""


class SizeCounter:
    """Adds up the lines of a row, a text or a sentence, and refuses one that is too large."""

    def __init__(self, path: str | os.PathLike[str], what: str, limit: Limit = WHOLE) -> None:
        self.path, self.what, self.limit = path, what, limit
        self.most = limit.bytes
        self.begin(None)

    def begin(self, line: int | None) -> None:
        """Start counting a new line or row, which begins on this line."""
        self.line, self.size = line, 0

    def add(self, piece: str) -> str:
        """Add a line, and return it."""
        self.add_size(len(piece) + STRING_OVERHEAD)
        return piece

    def add_size(self, size: int) -> None:
        """Add a number of bytes."""
        self.size += size
        if self.size > self.most:
            raise self.limit.error(self.path, self.line, self.what)


def read_whole(
    file: IO[bytes], path: str | os.PathLike[str], what: str = "a file", limit: Limit = WHOLE
) -> bytes:
    """Return the rest of a file, if it is not too large."""
    most = limit.bytes
    # In pieces: some readers allocate all that is asked for beforehand.
    parts, size = [], 0
    while part := file.read(min(2**20, most + 1 - size)):
        parts.append(part)
        size += len(part)
        if size > most:
            raise limit.error(path, None, what)
    return b"".join(parts)


def memory_limit() -> int:
    """Return the bytes that a model may take: SSDVAE_MAX_MEMORY, or the memory of this machine."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not a Unix: nothing is known, so nothing is refused
        physical = 2**62
    return Limit("SSDVAE_MAX_MEMORY", physical).bytes


KERNELS = "128"
"""Kernels of products that oneDNN keeps; 1,024 by default, one for each shape."""


@cache
def bound_kernels() -> None:
    """Let oneDNN keep few kernels; call it before the first product in bf16.

    Batches differ in their shapes, and each shape has kernels of its own, about a megabyte each: by default
    they take gigabytes in a long run. Those that every step needs stay.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", KERNELS)


@cache
def keep_freed_memory() -> None:
    """Let glibc give freed memory to the next tensor, instead of back to the system.

    Every step of training asks for the same sizes. By default, tensors of some megabytes come fresh from the
    system each time, page by page and zeroed, which on a CPU costs more than much of the arithmetic.
    """
    if platform.libc_ver()[0] != "glibc":
        return
    trim_threshold, top_pad, mmap_threshold = -1, -2, -3
    largest_mmap_threshold = 32 * 2**20
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_threshold, largest_mmap_threshold)
    libc.mallopt(trim_threshold, 2**31 - 1)
    libc.mallopt(top_pad, largest_mmap_threshold)
