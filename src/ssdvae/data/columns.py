"""The columns of a table or a log that make an event, and their cells as words and times."""

from __future__ import annotations

import difflib
import math
import numbers
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from ssdvae.data.events import RESERVED, Slots, check_slots, words_of
from ssdvae.data.options import ColumnOptions, Lifecycle
from ssdvae.io.errors import DataError, Malformed, shorten, shorten_text
from ssdvae.io.records import Record, parse

GAP = "gap"
"""The slot with the time since the event before."""


class Columns(Record, extra="ignore"):
    """The names of columns by their role, in the manifest of a corpus and the config of a model.

    ``bins`` are the inner edges of the bins of numbers.
    """

    case: str
    head: str
    time: str | None = None
    arguments: Annotated[tuple[str, ...], Field(strict=False)] = ()
    label: str | None = None
    gaps: bool = False
    lifecycle: Lifecycle | None = None
    bins: dict[str, Annotated[tuple[float, ...], Field(strict=False)]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not all((self.case, self.head, *self.arguments)):
            raise Malformed("a column without a name", "a name for each")
        if self.gaps and self.time is None:
            raise Malformed("--gaps without a column of times", "--time to name it")
        for name, edges in self.bins.items():
            if name not in self.arguments:
                raise Malformed(f"bins of {name!r}", f"one of the arguments: {', '.join(self.arguments)}")
            if list(edges) != sorted(set(edges)):
                raise Malformed(f"the edges {shorten(list(edges))} of {name!r}", "numbers in rising order")
        self.slots  # noqa: B018  # refuses names that cannot be slots
        return self

    @property
    def slots(self) -> Slots:
        """The names of the slots: those of the columns, in one word, and none that is reserved."""
        names = [slot_name(name) for name in (self.head, *self.arguments)]
        return check_slots([*names, GAP] if self.gaps else names)

    @property
    def read(self) -> list[str]:
        """The names of all columns that are read, each once."""
        meant = (self.case, self.time, self.head, *self.arguments, self.label)
        names = list(dict.fromkeys(name for name in meant if name is not None))
        return [*names, TRANSITION] if self.has_transitions else names

    @property
    def has_transitions(self) -> bool:
        """True if rows may say which transition of its lifecycle an activity made."""
        return TRANSITION not in self.arguments and (self.lifecycle is not None or self.case == XES.case)

    def optional(self, strict: bool) -> set[str | None]:
        """Return the columns that a table need not have; if ``strict``, all that were named must exist."""
        there = set() if strict else {self.label}
        return there | (set() if strict and self.lifecycle else {TRANSITION})


TRANSITION = "lifecycle:transition"
"""The column of XES that says whether an activity was scheduled, started, completed, …"""


def slot_name(column: str) -> str:
    """Return the name of the slot of a column."""
    name = "_".join(column.replace(",", " ").split())
    return f"{name}_" if name.lower() in RESERVED else name


XES = Columns(
    case="case:concept:name", head="concept:name", time="time:timestamp", arguments=("org:resource",)
)
"""The names in the XES standard; attributes of a trace begin with ``case:``."""


def columns_of(settings: ColumnOptions, log: bool) -> Columns | None:
    """Return the columns that the options name; a ``log`` (XES) has default names, other tables none."""
    names = settings.named_columns
    if not names and not log:
        return None
    known = {**dict(XES), **names} if log else names
    missing = [flag for flag in ("case", "head") if not known.get(flag)]
    if missing:
        raise Malformed(
            f"no --{missing[0]}", "--case to name the column of the case, --head that of what happened"
        )
    return parse(Columns, known)


# Columns in a file


def find_places(
    path: Path, wanted: Iterable[str], there: Sequence[str], optional: Collection[str | None]
) -> list[int]:
    """Return the index of each column in a header; −1 for an ``optional`` one that does not exist."""
    plain = [name.strip() for name in there]
    places = []
    for name in wanted:
        if plain.count(name) > 1:
            raise DataError(path, None, f"{plain.count(name)} columns {name!r}", "each column once")
        if name not in plain and name not in optional:
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
        return words_of(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, numbers.Real | Decimal | datetime | date):
        return words_of(str(value))
    raise Malformed(f"{shorten(value)} under {name!r}", "a word or a number")


def case_name(value: Any, name: str = "") -> str | None:
    """Return the name of the case in a cell, as it stands there; None if it is empty."""
    return value.strip() or None if isinstance(value, str) else word_of(value, name)


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
        shown = _shortest_digits(edges)
        between = [f"{low}–{high}" for low, high in pairwise(shown)]
        ends = [f"<{shown[0]}", *between, f"≥{shown[-1]}"] if shown else ["any"]
        self.words = [f"{slot}:{end}" for end in ends]

    def __getitem__(self, number: float) -> str:
        return self.words[bisect_right(self.edges, number)]


def _shortest_digits(edges: Sequence[float]) -> list[str]:
    """Return numbers with as few digits as tell them apart, at least three."""
    for digits in range(3, 18):
        shown = [format(float(f"{edge:.{digits}g}"), ".17g" if digits == 17 else ".15g") for edge in edges]
        if len(set(shown)) == len(edges):
            return shown
    return list(map(repr, edges))


# Times

EXPECTED = "a time such as 2024-01-31 10:15, 2024-01-31T10:15:00+01:00 or seconds since 1970"

ZONED, UNZONED, NUMBER = "a time with a time zone", "a time without a time zone", "a number"

EPOCH = datetime(1970, 1, 1)
EPOCH_ZONED = EPOCH.replace(tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

DIGITS = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d{1,3})?")
DAY = re.compile(r"(19|20)\d\d[01]\d[0-3]\d")
ZONE = re.compile(r" (?:(?:UTC|GMT|Z)|([+-]\d\d:?\d\d))$")

UNITS = ((1e11, 10**6), (1e14, 10**3), (1e17, 1))
"""Bounds and microseconds of seconds since 1970, milliseconds and microseconds; others are nanoseconds."""

GAPS = {
    "<1s": 1,
    "<10s": 10,
    "<1min": 60,
    "<10min": 600,
    "<1h": 3600,
    "<6h": 6 * 3600,
    "<1d": 86400,
    "<1w": 7 * 86400,
    "<30d": 30 * 86400,
    "<1y": 365 * 86400,
}
"""Words for the time since the previous event, and their upper bounds in seconds, about logarithmic."""

LONGER = "≥1y"


def gap_word(microseconds: int) -> str:
    """Return the word for the time between two events."""
    return _WORDS[bisect_right(_BOUNDS, microseconds)]


_WORDS = [*GAPS, LONGER]
_BOUNDS = [10**6 * bound for bound in GAPS.values()]


class Clock:
    """Parses the times of one column as microseconds since 1970.

    The first time fixes the kind of all: with or without a time zone, or a number of seconds, milli-, micro-
    or nanoseconds. Mixed kinds would silently be sorted into a wrong order.
    """

    def __init__(self, unit: str = "line") -> None:
        self.unit = unit  # what a row is called in messages
        self.kind = ""
        self.place = ""
        self.factor: float = 1

    def read(self, value: Any, place: int, of: str = "") -> int:
        """Return the time in a cell; raise ``Malformed`` if it is none, or of another kind than the first.

        ``of`` names the file in messages if there are several.
        """
        found = _parse_time(value)
        if found is None:
            raise Malformed(f"the time {shorten(value)}" if value not in (None, "") else "no time", EXPECTED)
        kind = NUMBER
        if isinstance(found, datetime):
            kind = UNZONED if found.tzinfo is None else ZONED
        if not self.kind:
            self.kind, self.place = kind, f"{place}{of}"
            if not isinstance(found, datetime):
                self.factor = next((factor for most, factor in UNITS if abs(found) < most), 1e-3)
        if kind != self.kind:
            raise Malformed(f"{shorten(value)}, {kind}", f"{self.kind}, as on {self.unit} {self.place}")
        if isinstance(found, datetime):
            return (found - (EPOCH if found.tzinfo is None else EPOCH_ZONED)) // MICROSECOND
        return self._microseconds(found)

    def _microseconds(self, number: float) -> int:
        # Whole numbers stay exact: a float has no microseconds in nanoseconds of today.
        exact = isinstance(number, int) and self.factor >= 1
        time = number * int(self.factor) if exact else round(number * self.factor)
        if abs(time) >= 2**62:
            raise Malformed(f"the time {shorten(number)}", EXPECTED)
        return int(time)


def _parse_time(value: Any) -> datetime | float | None:
    if isinstance(value, str):
        return _parse_time_text(value.strip())
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    return value if isinstance(value, int) else _finite(float(value))


def _parse_time_text(text: str) -> datetime | float | None:
    if DIGITS.fullmatch(text) and not DAY.fullmatch(text):
        return int(text) if len(text) < 30 and text.lstrip("+-").isdigit() else _finite(float(text))
    # Databases write a space before the zone, which ISO 8601 does not have.
    text = ZONE.sub(lambda zone: zone[1] or "+00:00", text)
    try:
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError):
        return None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
