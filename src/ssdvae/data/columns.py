"""The columns of a table or a log that make an event, and their cells as words."""

from __future__ import annotations

import difflib
import math
import numbers
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

from ssdvae.data.events import RESERVED, Slots, check_slots, one_word
from ssdvae.data.options import ColumnOptions
from ssdvae.io.errors import DataError, Malformed, shorten, shorten_text
from ssdvae.io.records import Record, parse

GAP = "gap"
"""The slot with the time since the event before."""


class ColumnsRecord(Record, extra="ignore"):
    """Columns as JSON, in the manifest of a corpus and the config of a model."""

    case: str
    head: str
    time: str | None
    arguments: list[str]
    label: str | None
    gaps: bool
    bins: dict[str, list[float]]


@dataclass(frozen=True)
class Columns:
    """The names of columns by their role. ``bins`` are the inner edges of the bins of numbers."""

    case: str
    head: str
    time: str | None = None
    arguments: tuple[str, ...] = ()
    label: str | None = None
    gaps: bool = False
    bins: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [self.case, self.head, *self.arguments]
        if not all(names):
            raise Malformed("a column without a name", "a name for each")
        if self.gaps and self.time is None:
            raise Malformed("--gaps without a column of times", "--time to name it")
        for name, edges in self.bins.items():
            if name not in self.arguments:
                raise Malformed(f"bins of {name!r}", f"one of the arguments: {', '.join(self.arguments)}")
            if not all(map(math.isfinite, edges)) or list(edges) != sorted(set(edges)):
                raise Malformed(f"the edges {shorten(list(edges))} of {name!r}", "numbers in rising order")
        self.slots  # noqa: B018  # refuses names that cannot be slots

    @property
    def slots(self) -> Slots:
        """The names of the slots: those of the columns, in one word, and none that is reserved."""
        names = [slot_name(name) for name in (self.head, *self.arguments)]
        return check_slots([*names, GAP] if self.gaps else names)

    @property
    def read(self) -> list[str]:
        """The names of all columns that are read, each once."""
        meant = (self.case, self.time, self.head, *self.arguments, self.label)
        return list(dict.fromkeys(name for name in meant if name is not None))

    def to_record(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "head": self.head,
            "time": self.time,
            "arguments": list(self.arguments),
            "label": self.label,
            "gaps": self.gaps,
            "bins": {name: list(edges) for name, edges in self.bins.items()},
        }

    @classmethod
    def from_record(cls, record: object, place: str = "columns") -> Columns:
        """Return the columns of a record; the inverse of ``to_record``. Raises ``Malformed``."""
        found = parse(ColumnsRecord, record, place)
        bins = {name: tuple(edges) for name, edges in found.bins.items()}
        return cls(**{**dict(found), "arguments": tuple(found.arguments), "bins": bins})


def slot_name(column: str) -> str:
    """Return the name of the slot of a column."""
    name = "_".join(column.replace(",", " ").split())
    return f"{name}_" if name.lower() in RESERVED else name


XES = Columns("case:concept:name", "concept:name", "time:timestamp", ("org:resource",))
"""The names in the XES standard; attributes of a trace begin with ``case:``."""


def columns_of(settings: ColumnOptions, log: bool) -> Columns | None:
    """Return the columns that the options name; a ``log`` (XES) has default names, other tables none."""
    names = settings.named_columns
    if not names and not log:
        return None
    known = {**XES.to_record(), **names} if log else names
    missing = [flag for flag in ("case", "head") if not known.get(flag)]
    if missing:
        raise Malformed(
            f"no --{missing[0]}", "--case to name the column of the case, --head that of what happened"
        )
    kept = {f.name: known[f.name] for f in fields(Columns) if f.name in known}
    return Columns(**{**kept, "arguments": tuple(kept.get("arguments", ())), "bins": {}})


# Columns in a file


def find_places(path: Path, wanted: Iterable[str], there: Sequence[str], optional: str | None) -> list[int]:
    """Return the index of each column in a header; −1 for the ``optional`` one if it does not exist."""
    plain = [name.strip() for name in there]
    places = []
    for name in wanted:
        if plain.count(name) > 1:
            raise DataError(path, None, f"{plain.count(name)} columns {name!r}", "each column once")
        if name not in plain and name != optional:
            raise no_column(path, None, name, plain)
        places.append(plain.index(name) if name in plain else -1)
    return places


def no_column(path: Path, line: int | None, name: str, there: Sequence[str]) -> DataError:
    """Return the error for a missing column: it suggests the nearest name, and lists all."""
    lower = {other.lower(): other for other in reversed(there)}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    hint = f"did you mean {lower[near[0]]!r}?" if near else ""
    if len(there) == 1 and not near:
        hint = "is that one column? columns are parted by commas, tabs, semicolons or |"
    listed = shorten_text(", ".join(map(str, there)), 400)
    expected = f"one of the columns that are there: {listed}" if there else "a table with a line of names"
    return DataError(path, line, f"no column {name!r}", expected, hint)


# Cells


def word_of(value: Any, name: str) -> str | None:
    """Return the word in a cell; None if it is empty."""
    if isinstance(value, str):
        return one_word(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, numbers.Real | Decimal | datetime | date):
        return one_word(str(value))
    raise Malformed(f"{shorten(value)} under {name!r}", "a word or a number")


def number_of(value: Any, name: str) -> float | None:
    """Return the number in a cell; None if it is empty."""
    if value is None or (isinstance(value, str) and value.strip().lower() in ("", "nan", "null", "none")):
        return None
    try:
        number = math.inf if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if math.isnan(number):
        return None
    if math.isinf(number):
        expected = "a number such as 1234.5, since --bin names this column"
        raise Malformed(f"{shorten(value)} under {name!r}", expected)
    return number


class Bins:
    """The bins of a column of numbers, each with a word such as ``amount:12.5–40``."""

    def __init__(self, slot: str, edges: Sequence[float]) -> None:
        self.edges = edges
        shown = _shown(edges)
        between = [f"{low}–{high}" for low, high in pairwise(shown)]
        ends = [f"<{shown[0]}", *between, f"≥{shown[-1]}"] if shown else ["any"]
        self.words = [f"{slot}:{end}" for end in ends]

    def __getitem__(self, number: float) -> str:
        return self.words[bisect_right(self.edges, number)]


def _shown(edges: Sequence[float]) -> list[str]:
    """Return numbers with as few digits as tell them apart, at least three."""
    for digits in range(3, 18):
        shown = [format(float(f"{edge:.{digits}g}"), ".17g" if digits == 17 else ".15g") for edge in edges]
        if len(set(shown)) == len(edges):
            return shown
    return list(map(repr, edges))
