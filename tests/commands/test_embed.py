"""`ssdvae embed`, `encode` and `ssdvae similar`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from ssdvae.commands.embed import embed, encode
from tests.commands.conftest import Ask, assert_is_a_message, records, type_in


def test_vectors_of_documents_and_events(folder: Path, tmp_path: Path, ask: Ask) -> None:
    run = folder / "ssdvae-exact"
    ask("embed", folder / "events.jsonl", "--run", run, "--out", tmp_path / "v.parquet")
    table = pq.read_table(tmp_path / "v.parquet").to_pylist()
    first = next(embed(run, folder / "events.jsonl"))
    assert np.allclose(table[0]["vector"], first.vector, atol=1e-6)
    assert np.allclose(table[1]["vector"], first.events[0], atol=1e-6)
    assert "dimensions" in ask("embed", folder / "events.jsonl", "--run", run)
    assert np.allclose(encode(run, first.document), first.vector, atol=1e-6)
    assert encode(run, ["met she", "left he"]).shape == (2, len(first.vector))


def test_the_nearest_events_come_first(folder: Path, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    run = folder / "ssdvae-exact"
    event = str(next(embed(run, folder / "events.jsonl")).document.events[0])
    words = ["similar", event, "--among", folder / "events.jsonl", "--run", run]
    near = records(ask(*words, "--json"))
    assert [one["rank"] for one in near] == [1, 2, 3, 4, 5]
    assert near[0]["similarity"] == pytest.approx(1, abs=1e-5)
    assert [one["similarity"] for one in near] == sorted((one["similarity"] for one in near), reverse=True)
    assert "cosine" in ask(*words)
    type_in(monkeypatch, event)
    assert records(ask("similar", *words[2:], "--json")) == near


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("similar met --run EXACT --among nowhere.jsonl", "nowhere.jsonl"),
        ("similar met --run EXACT", "--among"),
        ("similar --among EVENTS --run EXACT", "no event"),
    ],
)
def test_a_mistake_is_a_message(
    words: str,
    expected: str,
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    type_in(monkeypatch, "")
    assert_is_a_message(words, expected, folder, tmp_path, capsys)
