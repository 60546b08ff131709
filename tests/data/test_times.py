"""The times of a log: whatever way one is written, it is the same moment; and kinds do not mix."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data.columns import GAPS, LONGER, Clock, gap_word
from ssdvae.io.errors import Malformed

MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


def read(value: Any) -> int:
    return Clock().read(value, 1)


def since_1970(moment: datetime) -> int:
    return round((moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))


@given(MOMENTS, ZONES)
def test_one_moment_however_it_is_written(moment: datetime, zone: timezone) -> None:
    expected = since_1970(moment)
    assert read(moment) == read(moment.isoformat()) == read(f" {moment.isoformat(' ')} ") == expected
    local = moment.replace(tzinfo=UTC).astimezone(zone)
    for text in (local.isoformat(), f"{moment.isoformat()}Z", f"{moment} UTC", f"{moment} +0000"):
        assert read(text) == read(local) == expected


@given(MOMENTS.filter(lambda moment: moment.year < 2100))
def test_days(moment: datetime) -> None:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    assert read(day.date()) == read(day.date().isoformat()) == read(f"{day:%Y%m%d}") == since_1970(day)


@pytest.mark.parametrize(("unit", "digits"), [(1, 6), (10**3, 3), (10**6, 0)])
@given(seconds=st.integers(10**9, 3 * 10**9), fraction=st.integers(0, 999_999))
def test_the_unit_of_numbers_is_that_of_the_first(
    unit: int, digits: int, seconds: int, fraction: int
) -> None:
    clock = Clock()
    assert clock.read(seconds * unit, 1) == seconds * 10**6
    assert clock.read(str(seconds * unit), 2) == seconds * 10**6
    later = (seconds * 10**6 + fraction) / 10**6 * unit
    assert clock.read(later, 3) == pytest.approx(seconds * 10**6 + fraction, abs=2)
    assert clock.read(0, 4) == 0  # long ago, but in the same unit: the order is that of the numbers


def test_nanoseconds() -> None:
    assert read(1_700_000_000_123_456_789) == 1_700_000_000_123_457


@given(st.lists(st.integers(-(10**12), 10**12) | st.floats(-1e12, 1e12), min_size=2, max_size=5))
def test_numbers_keep_their_order(numbers: list[float]) -> None:
    clock = Clock()
    times = [clock.read(number, 1) for number in numbers]
    for one, time in zip(numbers, times, strict=True):
        for other, later in zip(numbers, times, strict=True):
            assert (one <= other) <= (time <= later)


@pytest.mark.parametrize(
    "value",
    [
        *("", " ", None, "01/02/2024", "2024-13-01", "yesterday", "nan", float("nan"), float("inf"), True),
        *(b"2024", "2024-01-01 25:00", "9" * 40, "1e300", [1], "2024-01-01T10:00:00+99:00"),
    ],
)
def test_what_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(Malformed, match=r"such as 2024-01-31 10:15"):
        read(value)


def test_kinds_do_not_mix() -> None:
    kinds = {"2024-01-01 10:00": "without a", "2024-01-01 10:00Z": "with a", "1700000000": "a number"}
    for first, its in kinds.items():
        for second, other in kinds.items():
            clock = Clock("row")
            clock.read(first, 7)
            if first == second:
                clock.read(second, 8)
                continue
            with pytest.raises(Malformed, match=rf"{other}.*expected .*{its}.*as on row 7"):
                clock.read(second, 8)


@given(st.integers(0, 10**17), st.integers(0, 10**17))
def test_a_longer_gap_never_has_a_shorter_word(one: int, other: int) -> None:
    words = [*GAPS, LONGER]
    assert words.index(gap_word(min(one, other))) <= words.index(gap_word(max(one, other)))
    word = gap_word(one)
    assert word == LONGER or one < GAPS[word] * 10**6
    assert word != LONGER or one >= GAPS["<1y"] * 10**6
