"""Words, frames and lemmas, and their numbers."""

from __future__ import annotations

import difflib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ssdvae.data.events import MISSING
from ssdvae.io.errors import DataError, Malformed, UserError, shorten
from ssdvae.io.files import write_text
from ssdvae.io.records import Count, Int64, Record, read_json

UNKNOWN = "<unk>"

RARE = 0.02
"""The share of events below which repeated arguments are taken for mistakes of a model, not suggested."""

UNNAMED = "~"
"""The first character of the name of a frame that has none yet."""


class _InventoryRecord(Record, extra="ignore"):
    names: list[str]
    counts: list[Int64]
    slot_counts: list[list[Int64]] | None = None
    repeats: Count = 0


class Inventory:
    """Names and their counts; the id of a name is its index."""

    fixed: ClassVar[tuple[str, ...]] = ()
    """Names that every inventory of this class has."""

    def __init__(self, names: Sequence[str], counts: Sequence[int]) -> None:
        if len(names) != len(counts) or len(set(names)) != len(names):
            raise ValueError("an inventory has one count for each of its names, and no name twice")
        self.names = tuple(names)
        self.counts = tuple(counts)
        self._ids = {name: number for number, name in enumerate(self.names)}

    @classmethod
    def most_frequent(cls, counter: Counter[str], size: int) -> Self:
        """Return the fixed names, and the most frequent others, ties by spelling, up to ``size``."""
        fixed = cls.fixed
        free = sorted((name for name in counter if name not in fixed), key=lambda n: (-counter[n], n))
        names = [*fixed, *free[: size - len(fixed)]]
        return cls(names, [counter[name] for name in names])

    def with_unnamed(self, count: int) -> Self:
        """Return the inventory with ``count`` more names, ``~1``, ``~2``, …, for frames without a name."""
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
        """Return the id of a name, −1 for None and for an unknown name."""
        return -1 if name is None else self._ids.get(name, -1)

    def find(self, name: str, kind: str) -> int:
        """Return the id of a name that a person typed; an unknown one is an error that suggests others."""
        if name not in self._ids:
            lower = {known.lower(): known for known in self.names}
            near = difflib.get_close_matches(name.lower(), lower, n=3)
            hint = f"; did you mean {' or '.join(lower[match] for match in near)}?" if near else ""
            raise UserError(f"the model knows no {kind} {name!r}{hint}")
        return self._ids[name]

    def name(self, id: int) -> str:
        return self.names[id]

    def to_record(self) -> dict[str, Any]:
        return {"names": self.names, "counts": self.counts}

    def save(self, path: Path) -> None:
        write_text(path, json.dumps(self.to_record(), ensure_ascii=False, separators=(",", ":")))

    @classmethod
    def load(cls, path: Path) -> Self:
        expected = "an inventory that `ssdvae prepare` wrote"
        record = read_json(path, _InventoryRecord, expected)
        try:
            found = cls._of_record(record)
            found._check()
        except Malformed as error:
            raise DataError(path, None, error.found, error.expected) from error
        except ValueError as error:
            raise DataError(path, None, str(error), expected) from error
        return found

    @classmethod
    def _of_record(cls, record: _InventoryRecord) -> Self:
        return cls(record.names, record.counts)

    def _check(self) -> None:
        """Raise ``Malformed`` for contents that no command could have written."""
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
    """The words that can be predicted. Separators and padding are not words, and are not in it.

    ``slot_counts`` (S V) tell how often each word stands in each slot of the training split, and ``repeats``
    how many of its events have the same word in two arguments. None: not counted.
    """

    fixed = (MISSING, UNKNOWN)

    def __init__(
        self,
        names: Sequence[str],
        counts: Sequence[int],
        slot_counts: NDArray[np.int64] | None = None,
        repeats: int = 0,
    ) -> None:
        super().__init__(names, counts)
        if slot_counts is not None and (slot_counts.ndim != 2 or slot_counts.shape[1] != len(names)):
            raise ValueError("each slot has one count for each word")
        self.slot_counts, self.repeats = slot_counts, repeats

    def to_record(self) -> dict[str, Any]:
        if self.slot_counts is None:
            return super().to_record()
        return {**super().to_record(), "slot_counts": self.slot_counts.tolist(), "repeats": self.repeats}

    @classmethod
    def _of_record(cls, record: _InventoryRecord) -> Self:
        slots = None if record.slot_counts is None else np.array(record.slot_counts, np.int64)
        return cls(record.names, record.counts, slots, record.repeats)

    def _check(self) -> None:
        super()._check()
        if self.slot_counts is not None and (self.slot_counts < 0).any():
            raise Malformed("a count below 0 of a word in a slot", "0 or more")

    @cached_property
    def repeats_are_rare(self) -> bool:
        """True if hardly any training event has the same word in two arguments."""
        return self.slot_counts is not None and self.repeats < RARE * self.slot_counts[0].sum()

    @cached_property
    def by_slot(self) -> NDArray[np.bool_] | None:
        """Which words stand in which slot (S V), the missing word wherever it is no head; None: not counted.

        A slot all of whose words are unknown may have any.
        """
        if self.slot_counts is None:
            return None
        there = self.slot_counts > 0
        there[1:, self.missing] = True
        some = there.copy()
        some[:, [self.unknown, self.missing]] = False
        return there | ~some.any(1, keepdims=True)

    @property
    def unknown(self) -> int:
        return self._ids[UNKNOWN]

    @cached_property
    def lowercase(self) -> bool:
        """True if all words are in lower case."""
        return all(name == name.lower() for name in self.names if name != MISSING)

    @property
    def missing(self) -> int:
        return self._ids[MISSING]

    def word_ids(self, words: Iterable[str]) -> list[int]:
        """Return the ids of words, that of ``<unk>`` for out-of-vocabulary words."""
        number, unknown = self._ids.get, self.unknown
        return [number(word, unknown) for word in words]


LEMMAS = "lemmas.json"
"""The file of a corpus with the lemma of each head: events have forms, and lexicons have lemmas."""


def majority_lemmas(counted: Counter[tuple[str, str]], words: Inventory) -> dict[str, str]:
    """Return the most frequent lemma of each word of an inventory, ties by spelling."""
    best: dict[str, str] = {}
    for word, lemma in sorted(counted, key=lambda pair: (-counted[pair], pair)):
        if word in words:
            best.setdefault(word, lemma)
    return dict(sorted(best.items()))


def lemma_ids(words: Sequence[str], lemmas: Mapping[str, str]) -> NDArray[np.int64]:
    """Return an id for the lemma of each word; a word without a lemma is its own lemma."""
    ids: dict[str, int] = {}
    return np.array([ids.setdefault(lemmas.get(word, word), len(ids)) for word in words])


def save_lemmas(lemmas: Mapping[str, str], path: Path) -> None:
    write_text(path, json.dumps(lemmas, ensure_ascii=False))


def load_lemmas(path: Path) -> dict[str, str]:
    return read_json(path, dict[str, str], "the lemmas that `ssdvae prepare` wrote")
