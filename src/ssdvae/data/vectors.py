"""Word vectors in the text format of GloVe and word2vec: ``word number number …`` on each line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from ssdvae.io.errors import DataError, Malformed, UserError, locate_errors, shorten
from ssdvae.io.files import AnyPath, byte_lines
from ssdvae.io.limits import LINE

PEEK = 100
"""The number of lines that tell the number of columns."""

WIDEST = 2**16
"""The largest dimension: a file with longer lines is no file of word vectors."""

Line = tuple[int, bytes]


@dataclass(frozen=True, slots=True)
class Vectors:
    """A row for each word: its vector if the file has one, else zeros."""

    matrix: NDArray[np.float32]
    found: NDArray[np.bool_]

    @property
    def coverage(self) -> float:
        """The fraction of the words that have a vector."""
        return float(self.found.mean()) if len(self.found) else 1.0


def read_vectors(path: AnyPath, words: Sequence[str]) -> Vectors:
    """Return the vectors of ``words`` from a text file, plain, .gz or .zip.

    A word with capitals that the file lacks gets the vector of its lower-case form. If a word occurs twice in
    the file, its first vector is used.
    """
    # In bytes: encoding the wanted words is faster than decoding millions of others.
    wanted = {_key(form) for word in words for form in (word, word.lower())}
    heads = {key.split(None, 1)[0] for key in wanted if key.strip()}
    dimension, lines = _dimension(path, byte_lines(path, archives=True))
    rows: dict[bytes, NDArray[np.float32]] = {}
    for number, line in lines:
        head = line.split(None, 1)[:1]
        if not head or head[0] not in heads:
            continue
        with locate_errors(path, number):
            key, numbers = _split(line, dimension, wanted)
            if key in wanted and key not in rows:
                rows[key] = _vector(numbers)
    if len(words) and not rows:
        raise UserError(
            f"{path}: none of the {len(words)} words has a vector here, for example {shorten(words[0])}\n"
            "is it a file of word vectors, in the language of the data?"
        )
    matrix = np.zeros((len(words), dimension), dtype=np.float32)
    found = np.zeros(len(words), dtype=np.bool_)
    for place, word in enumerate(words):
        row = rows.get(_key(word), rows.get(_key(word.lower())))
        if row is not None:
            matrix[place], found[place] = row, True
    return Vectors(matrix, found)


def _key(word: str) -> bytes:
    return word.encode("utf-8", "surrogatepass")


def _peek(lines: Iterator[Line]) -> Iterator[Line]:
    """Yield the first lines, up to the size of one very long line."""
    size = 0
    for line in islice(lines, PEEK):
        yield line
        size += len(line[1])
        if size > LINE.bytes:
            return


def words_of_vectors(path: AnyPath) -> list[str]:
    """Return the words of a file of vectors, each once, in its order."""
    dimension, lines = _dimension(path, byte_lines(path, archives=True))
    words = (line.rsplit(None, dimension)[0].decode("utf-8", "replace") for _, line in lines if line.strip())
    return list(dict.fromkeys(words))


def _dimension(path: AnyPath, lines: Iterator[Line]) -> tuple[int, Iterator[Line]]:
    """Return the dimension, and the lines that have words."""
    first = list(_peek(lines))
    if not any(line.strip() for _, line in first):
        raise DataError(path, None, "no vectors", "a word and its numbers on each line")
    header = first[0][1].split()
    if len(header) == 2 and all(re.fullmatch(rb"[1-9][0-9]{0,8}", number) for number in header):
        return _width(path, int(header[1])), chain(first[1:], lines)
    # A word with a space in it makes a line longer, so several lines are looked at.
    widths = Counter(len(line.split()) for _, line in first if line.strip())
    dimension = widths.most_common(1)[0][0] - 1
    if not dimension:
        raise DataError(path, first[0][0], "a word without numbers", "a word and its numbers on each line")
    return _width(path, dimension), chain(first, lines)


def _width(path: AnyPath, dimension: int) -> int:
    if dimension > WIDEST:
        raise DataError(path, None, f"{dimension:,} numbers for each word", f"at most {WIDEST:,}")
    return dimension


def _split(line: bytes, dimension: int, wanted: set[bytes]) -> tuple[bytes, list[bytes]]:
    """Return the word and its numbers. The word may have spaces, so numbers are counted from the right."""
    key, *numbers = line.strip().rsplit(None, dimension)
    head, *rest = key.split()
    count = len(numbers)
    if rest and key not in wanted and not _is_number(head) and all(map(_is_number, rest)):
        count += len(rest)  # "the 0.1" is not a word with a space but a line with a number too many
    if count != dimension:
        found = f"{count} numbers for {shorten(head.decode(errors='replace'))}"
        raise Malformed(found, f"{dimension}, as on the other lines")
    return key, numbers


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _vector(numbers: list[bytes]) -> NDArray[np.float32]:
    try:
        with np.errstate(over="ignore"):  # what is too large for 32 bits is found below
            vector = np.array([float(number) for number in numbers], dtype=np.float32)
    except ValueError:
        bad = next(number for number in numbers if not _is_number(number))
        raise Malformed(shorten(bad.decode(errors="replace")), "a number") from None
    if not np.isfinite(vector).all():
        place = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise Malformed(f"{numbers[place].decode()} as number {place + 1}", "a finite number")
    return vector
