"""Odd logs: equal times, cases of one event, and times that go backwards. Answers stay finite."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import ssdvae

HEADER = "case:concept:name,concept:name,time:timestamp\n"
ODD = {
    "equal times": [(case, event, 0) for case in range(30) for event in "abc"],
    "cases of one event": [(case, "ab"[case % 2], 60 * case) for case in range(30)],
}


@pytest.mark.parametrize("rows", ODD.values(), ids=ODD)
def test_an_odd_log_is_learned(rows: list[tuple[int, str, int]], tmp_path: Path) -> None:
    lines = [f"{case},{event},{1_700_000_000 + second}\n" for case, event, second in rows]
    (tmp_path / "log.csv").write_text(HEADER + "".join(lines))
    names = {"case": "case:concept:name", "head": "concept:name", "time": "time:timestamp"}
    corpus = ssdvae.prepare(tmp_path / "log.csv", tmp_path / "corpus", progress=False, **names)
    assert corpus.times
    run = ssdvae.train(corpus, tmp_path / "run", epochs=2, hidden=8, embedding=8, progress=False).folder
    backwards = [{"concept:name": "a", "time": time} for time in (9e5, 5e5, 5e5)]
    document = {"id": "back", "events": backwards}
    (scored,) = ssdvae.score(run, [document], progress=False)
    for event in scored.events:
        assert math.isfinite(event.nats)
        assert all(p is None or 0 <= p <= 1 for p in (event.later, event.earlier))
    (ahead,) = ssdvae.next_events(run, [document], progress=False)
    assert all(time is None or 0 <= time.low <= time.median <= time.high for time in ahead.times)
