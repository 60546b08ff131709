"""Words and frames as numbers."""

from __future__ import annotations

import difflib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self, TypedDict

from ssdvae.data.events import MISSING
from ssdvae.errors import DataError, Malformed, UserError, shorten
from ssdvae.files import atomic_write
from ssdvae.records import read_json
from ssdvae.shapes import check_shape

UNKNOWN = "<unk>"

UNNAMED = "~"
"""What is shown for a frame without a name begins so."""


class _Record(TypedDict):
    names: list[str]
    counts: list[int]


class Inventory:
    """A list of names, with how often each was counted; its place in the list is the number of a name.

    ``fixed`` names come first, whatever their counts; the rest are the most frequent, ties by spelling, so
    that the same counts give the same numbers.
    """

    fixed: ClassVar[tuple[str, ...]] = ()
    """Names that every inventory of this kind has."""

    def __init__(self, names: Sequence[str], counts: Sequence[int]) -> None:
        if len(names) != len(counts) or len(set(names)) != len(names):
            raise ValueError("an inventory has one count for each of its names, and no name twice")
        self.names = tuple(names)
        self.counts = tuple(counts)
        self._ids = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def most_frequent(cls, counter: Counter[str], size: int, fixed: Sequence[str] = ()) -> Self:
        free = sorted((name for name in counter if name not in fixed), key=lambda n: (-counter[n], n))
        names = [*fixed, *free[: size - len(fixed)]]
        return cls(names, [counter[name] for name in names])

    def with_unnamed(self, count: int) -> Self:
        """The same and ``count`` more that have no name yet, but a number."""
        numbers = (f"{UNNAMED}{number}" for number in itertools.count(1))
        more = list(itertools.islice((name for name in numbers if name not in self), count))
        return type(self)([*self.names, *more], [*self.counts, *[0] * count])

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._ids

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Inventory) and (self.names, self.counts) == (other.names, other.counts)

    def __hash__(self) -> int:
        return hash(self.names)

    def id(self, name: str | None) -> int:
        """The number of a name, or −1 for none and for a name that is not here."""
        return -1 if name is None else self._ids.get(name, -1)

    def find(self, name: str, kind: str) -> int:
        """The number of a name that a person gave; one that is not here is answered with those like it."""
        if name not in self._ids:
            folded = {known.lower(): known for known in self.names}
            near = difflib.get_close_matches(name.lower(), folded, n=3)
            hint = f"; did you mean {' or '.join(folded[match] for match in near)}?" if near else ""
            raise UserError(f"the model knows no {kind} {name!r}{hint}")
        return self._ids[name]

    def name(self, id: int) -> str:
        return self.names[id]

    def save(self, path: Path) -> None:
        with atomic_write(path) as temporary:
            record = {"names": self.names, "counts": self.counts}
            temporary.write_text(json.dumps(record, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        expected = "an inventory that `ssdvae prepare` wrote"
        record = read_json(path, dict, expected)
        try:
            check_shape(record, _Record)
            found = cls(record["names"], record["counts"])
            found._check()
        except Malformed as error:
            raise DataError(path, None, error.found, error.expected) from error
        except ValueError as error:
            raise DataError(path, None, str(error), expected) from error
        return found

    def _check(self) -> None:
        """What no command could have written."""
        if missing := [name for name in self.fixed if name not in self]:
            raise Malformed(f"no name {missing[0]!r}", "it to be there")
        if negative := [name for name, count in zip(self.names, self.counts, strict=True) if count < 0]:
            raise Malformed(f"a count below 0 of {shorten(negative[0])}", "0 or more")
        for name in self.names:
            try:
                name.encode()
            except UnicodeEncodeError:
                raise Malformed(shorten(name), "whole characters, not half of a surrogate pair") from None


class Vocabulary(Inventory):
    """The words that can be predicted. Separators and padding are not words, and are not in it."""

    fixed = (MISSING, UNKNOWN)

    @classmethod
    def from_counts(cls, counter: Counter[str], size: int) -> Self:
        return cls.most_frequent(counter, size, fixed=cls.fixed)

    @property
    def unknown(self) -> int:
        return self._ids[UNKNOWN]

    @cached_property
    def lowercase(self) -> bool:
        """Whether its words were folded to lower case: then no other word can be known."""
        return all(name == name.lower() for name in self.names if name != MISSING)

    @property
    def missing(self) -> int:
        return self._ids[MISSING]

    def word_id(self, word: str) -> int:
        """The number of a word, that of ``<unk>`` for one that is not here."""
        return self._ids.get(word, self.unknown)

    def word_ids(self, words: Iterable[str]) -> list[int]:
        number, unknown = self._ids.get, self.unknown
        return [number(word, unknown) for word in words]
