"""`ssdvae score` and `anomalies`."""

from __future__ import annotations

from pathlib import Path

import pytest

from ssdvae.commands.coerce import load
from ssdvae.commands.score import anomalies, score
from ssdvae.models.quantiles import TYPICAL
from tests.commands.conftest import Ask, assert_is_a_message, records


def test_percentiles_are_there_from_the_first_use_and_go_where_the_model_goes(
    folder: Path, tmp_path: Path, ask: Ask
) -> None:
    words = ["score", folder / "events.jsonl", "--run", folder / "ssdvae-exact"]
    found = records(ask(*words, "--json"))
    assert (folder / "ssdvae-exact" / TYPICAL).is_file()
    for document in found:
        assert document["nats"] == pytest.approx(sum(e["nats"] for e in document["events"]), abs=1e-4)
        assert all(0 <= event["percentile"] <= 100 for event in document["events"])
    load(folder / "ssdvae-exact").save_pretrained(tmp_path / "elsewhere")
    again = score(tmp_path / "elsewhere", folder / "events.jsonl")
    assert [d.percentile for d in again] == pytest.approx([d["percentile"] for d in found], abs=0.01)
    assert "percentile" in ask(*words)


def test_anomalies_are_the_most_surprising_events(folder: Path, ask: Ask) -> None:
    run, file = folder / "ssdvae-exact", folder / "events.jsonl"
    words = ["score", file, "--run", run, "--top", "2"]
    top = records(ask(*words, "--json"))
    scored = score(run, file)
    quantiles = scored.model.quantiles
    assert quantiles is not None
    # First events are compared with first events: their topic is new.
    median = [quantiles.at(place)[0][100] for place in (0, 1)]
    events = [(e.nats - median[min(m, 1)], e.nats) for d in scored for m, e in enumerate(d.events)]
    most = [nats for _, nats in sorted(events, reverse=True)[:2]]
    assert [event["nats"] for event in top] == pytest.approx(most, abs=1e-4)
    assert all(len(event["expected"]) == 5 for event in top)
    assert "expected" in ask(*words)
    (one,) = anomalies(run, file, top=1, expected=2)
    assert one.to_record()["nats"] == pytest.approx(top[0]["nats"])
    assert len(one.expected.events) == 2


def test_anomalies_have_as_many_frames_as_asked_for(folder: Path, ask: Ask) -> None:
    run, file = folder / "ssdvae-exact", folder / "events.jsonl"
    for word, frames in (([], 1), (["--frames", "3"], 3)):
        top = records(ask("score", file, "--run", run, "--top", "2", *word, "--json"))
        assert [len(event["frames"]) for event in top] == [frames] * 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("score EVENTS --run PLAIN --out f.xlsx", ".parquet"),
        ("score EVENTS --run PLAIN --top 0", "at least 1"),
    ],
)
def test_a_mistake_is_a_message(
    words: str, expected: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_is_a_message(words, expected, folder, tmp_path, capsys)
