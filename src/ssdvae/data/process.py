"""The process of a log: which activity directly follows which, variants, and throughput times, by SQL.

The numbers are those of the whole log, of all splits, before anything is cut or replaced by the unknown word.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ssdvae.io.records import Count, Record

PROCESS = "process.json"
"""The file of a corpus with the process of its log."""

VARIANTS = 100
"""Variants that are kept: the most frequent."""

SETUP = """
CREATE TABLE activities AS
SELECT (row_number() OVER (ORDER BY count(*) DESC, activity) - 1)::INTEGER AS id, activity AS name
FROM read_parquet($files) GROUP BY activity;

CREATE TABLE events AS
SELECT
    dense_rank() OVER (ORDER BY filename, "case") AS "case", id AS activity, time, number
FROM read_parquet($files, filename = true) JOIN activities ON activity = name;

CREATE TABLE steps AS
SELECT
    activity,
    lead(activity) OVER ordered AS next,
    lead(time) OVER ordered - time AS gap,
    row_number() OVER ordered = 1 AS starts
FROM events WINDOW ordered AS (PARTITION BY "case" ORDER BY time, number);

CREATE TABLE cases AS
SELECT list(activity ORDER BY time, number) AS variant, (max(time) - min(time)) / 1e6 AS seconds
FROM events GROUP BY "case";
"""

ACTIVITIES = """
SELECT name, count(*), count(*) FILTER (starts), count(*) FILTER (next IS NULL)
FROM steps JOIN activities ON activity = id GROUP BY id, name ORDER BY id
"""

EDGES = """
SELECT activity, next, count(*), median(gap) / 1e6
FROM steps WHERE next IS NOT NULL GROUP BY ALL ORDER BY count(*) DESC, activity, next
"""

# Of equally frequent variants the shortest come first.
TOP_VARIANTS = f"""
SELECT variant, count(*), median(seconds)
FROM cases GROUP BY variant ORDER BY count(*) DESC, len(variant), variant LIMIT {VARIANTS}
"""

TOTALS = """
SELECT
    count(*),
    count(DISTINCT variant),
    avg(seconds),
    quantile_cont(seconds, [x / 100 FOR x IN range(101)])
FROM cases
"""


class Activity(Record):
    """An activity: in how many events it is, and how many cases start and end with it."""

    name: str
    count: Count
    starts: Count
    ends: Count


class Edge(Record):
    """An activity that directly follows another: how often, and the median of the seconds between them."""

    source: Count
    target: Count
    count: Count
    seconds: float | None


class Variant(Record):
    """A sequence of activities, the number of cases that have it, and the median of their seconds."""

    activities: list[Count]
    count: Count
    seconds: float | None


class Process(Record):
    """The directly-follows graph of a log, its variants and its throughput times.

    Edges and variants name activities by their numbers. Seconds are None in a log without times.
    """

    cases: Count
    activities: list[Activity]  # the most frequent first, and so are the others
    edges: list[Edge]
    variants: Count
    top_variants: list[Variant]
    mean_seconds: float | None
    percentiles: list[float] | None  # of the seconds from the first to the last event of a case, 0 to 100

    @property
    def events(self) -> int:
        return sum(activity.count for activity in self.activities)


def read_process(database: Any, files: Sequence[Path]) -> Process:
    """Return the process of Parquet files with the columns case, time, number and activity.

    A case is in one file; events of the same time are in the order of their numbers.
    """
    given = {"files": [str(file) for file in files]}
    for statement in SETUP.split(";"):
        if statement.strip():
            database.execute(statement, given if "$files" in statement else None)

    def fetch(query: str) -> list[Any]:
        rows: list[Any] = database.execute(query).fetchall()
        return rows

    [(cases, variants, mean, percentiles)] = fetch(TOTALS)
    return Process(
        cases=cases,
        activities=[
            Activity(name=name, count=count, starts=starts, ends=ends)
            for name, count, starts, ends in fetch(ACTIVITIES)
        ],
        edges=[
            Edge(source=source, target=target, count=count, seconds=seconds)
            for source, target, count, seconds in fetch(EDGES)
        ],
        variants=variants,
        top_variants=[
            Variant(activities=activities, count=count, seconds=seconds)
            for activities, count, seconds in fetch(TOP_VARIANTS)
        ],
        mean_seconds=mean,
        percentiles=percentiles,
    )


DURATIONS = (
    (365.25 * 86400, "year", "y"),
    (86400, "day", "d"),
    (3600, "hour", "h"),
    (60, "minute", "min"),
    (1, "second", "s"),
)


def duration_text(seconds: float, short: bool = False) -> str:
    """Return a duration in the largest unit that it has at least one of, as ``1.2 days`` or ``1.2 d``."""
    size, unit, letter = next((unit for unit in DURATIONS if seconds >= unit[0]), DURATIONS[-1])
    if 0 < seconds < 1:
        return "<1 s" if short else "<1 second"
    text = f"{seconds / size:.2g}" if seconds / size < 9.95 else f"{seconds / size:,.0f}"
    if short:
        return f"{text} {letter}"
    return f"{text} {unit}{'' if text == '1' else 's'}"
