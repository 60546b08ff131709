"""Timestamps of a log, in any usual notation, and the time between two events as a word."""

from __future__ import annotations

import math
import numbers
import re
from bisect import bisect_right
from datetime import UTC, date, datetime, timedelta
from typing import Any

from ssdvae.io.errors import Malformed, shorten

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
        found = _parsed(value)
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


def _parsed(value: Any) -> datetime | float | None:
    if isinstance(value, str):
        return _parsed_text(value.strip())
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return None
    return value if isinstance(value, int) else _finite(float(value))


def _parsed_text(text: str) -> datetime | float | None:
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
