"""The process of a log: its graph, variants and durations are those that pm4py computes."""

from __future__ import annotations

import csv
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ssdvae.data.corpus import Corpus
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.process import VARIANTS, Process, duration_text
from ssdvae.data.readers import read_documents
from ssdvae.storyworld.tickets import COLUMNS, generate_tickets, write_log

# Times that go backwards and are equal, cases in pieces, a case of one event, an activity twice in a row.
ROWS = (
    ("b", "2024-03-01 10:00", "open"),
    ("a", "2024-03-02 10:00", "close"),
    ("a", "2024-03-01 09:00", "open"),
    ("b", "2024-03-01 10:00", "check"),
    ("a", "2024-03-01 09:30", "check"),
    ("c", "2024-03-05 00:00", "open"),
    ("b", "2024-03-01 10:00", "check"),
    ("d", "2024-03-05 12:00", "check"),
    ("d", "2024-03-05 11:59", "open"),
    ("b", "2024-03-01 10:00", "close"),
)


def write_rows(path: Path, rows: Any) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return path


def hand_made(path: Path) -> Path:
    return write_rows(path, [("ticket", "when", "action"), *ROWS])


def tickets(path: Path) -> Path:
    fields = [row.fields for ticket in generate_tickets(150, seed=3) for row in ticket]
    return write_rows(path, [COLUMNS, *(list(row.values()) for row in fields)])


def process_of(path: Path, out: Path, **options: Any) -> Process:
    found = prepare(path, out, PrepareOptions(case="ticket", head="action", cloze_items=0, **options)).process
    assert found is not None
    return found


def named(process: Process, activities: list[int]) -> tuple[str, ...]:
    return tuple(process.activities[number].name for number in activities)


@pytest.mark.parametrize("make", [hand_made, tickets])
def test_the_process_is_that_of_pm4py(make: Any, tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pm4py = pytest.importorskip("pm4py")
    path = make(tmp_path / "log.csv")
    process = process_of(path, tmp_path / "corpus", time="when")
    table = pd.read_csv(path)
    table["when"] = pd.to_datetime(table["when"])
    log = pm4py.format_dataframe(table, case_id="ticket", activity_key="action", timestamp_key="when")
    graph, starts, ends = pm4py.discover_dfg(log)
    times, *_ = pm4py.discover_performance_dfg(log)
    edges = {named(process, [edge.source, edge.target]): edge for edge in process.edges}
    assert {pair: edge.count for pair, edge in edges.items()} == graph
    assert {pair: edge.seconds for pair, edge in edges.items()} == {k: v["median"] for k, v in times.items()}
    assert {a.name: a.starts for a in process.activities if a.starts} == starts
    assert {a.name: a.ends for a in process.activities if a.ends} == ends
    assert {a.name: a.count for a in process.activities} == dict(table["action"].value_counts())
    variants = pm4py.get_variants(log)
    assert process.variants == len(variants)
    assert len(process.top_variants) == min(VARIANTS, len(variants))
    assert [v.count for v in process.top_variants] == sorted(variants.values(), reverse=True)[:VARIANTS]
    assert all(variants[named(process, v.activities)] == v.count for v in process.top_variants)
    durations = pm4py.get_all_case_durations(log)
    assert process.cases == len(durations)
    assert process.percentiles == pytest.approx(np.percentile(durations, range(101)))
    assert process.mean_seconds == pytest.approx(np.mean(durations))


def test_without_times_the_rows_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    process = process_of(hand_made(tmp_path / "log.csv"), tmp_path / "corpus")
    by_case: dict[str, list[str]] = {}
    for case, _, action in ROWS:
        by_case.setdefault(case, []).append(action)
    expected = Counter(pair for actions in by_case.values() for pair in pairwise(actions))
    assert {named(process, [e.source, e.target]): e.count for e in process.edges} == expected
    assert process.percentiles is None
    assert {edge.seconds for edge in process.edges} == {None}


def test_all_files_and_splits_count_and_the_order_of_cases_does_not(tmp_path: Path) -> None:
    rows = list(generate_tickets(60, seed=5))
    write_log(tmp_path / "all.xes", rows)
    write_log(tmp_path / "train.xes", rows[:40][::-1])
    write_log(tmp_path / "test.xes", rows[40:])
    whole = prepare(tmp_path / "all.xes", tmp_path / "whole", PrepareOptions(cloze_items=0))
    parts = prepare(
        {"train": tmp_path / "train.xes", "test": tmp_path / "test.xes"},
        tmp_path / "parts",
        PrepareOptions(cloze_items=0),
    )
    assert whole.process == parts.process == Corpus(tmp_path / "parts").process
    assert whole.process is not None
    assert whole.process.cases == 60


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 seconds"), (0.2, "<1 second"), (90, "1.5 minutes"), (3600, "1 hour"), (9.96 * 86400, "10 days")],
)
def test_a_duration_in_words(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text


LIFECYCLE = (
    ("a", "Check form", "start", 1),
    ("a", "Check form", "complete", 2),
    ("a", "Pay", "COMPLETE", 3),
    ("b", "Check form", "complete", 1),
    ("b", "Pay", "start", 2),
)


@pytest.mark.parametrize(
    ("lifecycle", "activities"),
    [
        ("complete", {"Check form": 2, "Pay": 1}),
        ("separate", {"Check form+complete": 2, "Check form+start": 1, "Pay+COMPLETE": 1, "Pay+start": 1}),
        (None, {"Check form": 3, "Pay": 2}),
    ],
)
def test_transitions_of_a_lifecycle_are_never_merged_in_silence(
    lifecycle: Any, activities: dict[str, int], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = ("case:concept:name", "concept:name", "lifecycle:transition", "time:timestamp")
    path = write_rows(tmp_path / "log.csv", [names, *LIFECYCLE])
    options = PrepareOptions(lifecycle=lifecycle, valid_share=0, test_share=0, cloze_items=0)
    corpus = prepare(path, tmp_path / "corpus", options)
    assert corpus.process is not None
    assert {a.name: a.count for a in corpus.process.activities} == activities
    assert set(activities) <= set(corpus.vocabulary.names)  # with their capitals
    assert ("--lifecycle" in caplog.text) == (lifecycle is None)
    # A model reads new logs in the same way.
    assert corpus.columns is not None
    documents = list(read_documents(path, columns=corpus.columns))
    assert sum(len(document.events) for document in documents) == sum(activities.values())
