"""`ssdvae explain`, `swap`, and pictures of what was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ssdvae.commands.explain import explain, swap
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.inference.output import to_dataframe
from ssdvae.models.hub import SCRIPTS
from tests.commands.conftest import Ask, assert_is_a_message, records


def test_explain(folder: Path, ask: Ask) -> None:
    words = ["explain", folder / "ssdvae", "--rows", "3", "--top", "2", "--min-count", "0"]
    (record,) = records(ask(*words, "--json"))
    assert record.keys() == {"words", "clusters", "attention", "transitions"}
    assert 0 < record["clusters"]["purity"] <= 1
    for table in ("frames_given_tokens", "tokens_given_frames"):
        assert 1 <= len(record["clusters"][table]) <= 3
        assert all(len(top) == 2 for top in record["clusters"][table].values())
    look = record["attention"]["all frames"]
    assert sum(look["own"].values()) + sum(look["elsewhere"].values()) == pytest.approx(1)
    assert len(record["transitions"]["lift"]) == 3
    shown = ask(*words)
    for name in (*record["clusters"]["tokens_given_frames"], "β_enc", "β_dec", "purity", "entropy", "lift"):
        assert name in shown
    clusters = explain(folder / "ssdvae", split="test").clusters
    assert clusters is not None
    assert clusters.word_counts.sum() > 0


def test_transitions_are_a_table(folder: Path, tmp_path: Path, ask: Ask) -> None:
    """The command, the DataFrame and the numbers behind them say the same."""
    pandas = pytest.importorskip("pandas")
    run = folder / "ssdvae-exact"
    assert ask("explain", run, "--min-count", "0.5", "--transitions", tmp_path / "t.csv") == ""
    found = explain(run, min_count=0.5).transitions
    table, read = to_dataframe(found), pandas.read_csv(tmp_path / "t.csv")
    assert len(read) == len(table) == (found.counts >= 0.5).sum() > 10
    for column in ("first", "second"):
        assert read[column].to_list() == table[column].to_list()
    for column in ("count", "probability", "lift"):
        assert read[column].to_list() == pytest.approx(table[column].to_list())
    assert read["count"].is_monotonic_decreasing
    # Each row is the entry of the table of counts that its names say.
    for row in table.itertuples():
        f, g = (found.frames.find(name, "frame") for name in (row.first, row.second))
        assert row.count == found.counts[f, g]
        assert row.probability == pytest.approx(found.counts[f, g] / found.counts[f].sum())


def test_swap(folder: Path, ask: Ask) -> None:
    run = folder / "ssdvae"
    found: Any = records(ask("explain", run, "--swap", "state", "--json"))[0]
    assert [(row["part"], row["way"]) for row in found] == [
        (None, None),
        ("state", "mean"),
        ("state", "other"),
    ]
    assert [row.figures["ppl"] for row in swap(run, ["state"])] == [row["figures"]["ppl"] for row in found]
    assert "another document's" in ask("explain", run, "--swap", "state")


def test_a_model_without_a_run_is_explained_by_its_scripts(
    packed: Path, ask: Ask, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "ssdvae")
    (record,) = records(ask("explain", packed, "--json", "--min-count", "0"))
    assert record["words"]["frames_given_words"]
    assert "has no corpus of its own" in caplog.text


def test_a_model_without_a_run_is_explained_on_a_corpus(packed: Path, folder: Path) -> None:
    """On the one that it was trained on as its run is, and on one of other words by their names."""
    mine = explain(folder / "ssdvae-exact").transitions.counts
    assert explain(packed, corpus=folder / "corpus").transitions.counts == pytest.approx(mine)
    options = PrepareOptions.sized("tiny", vocabulary=40, valid_share=0.2, test_share=0.1)
    other = prepare(folder / "events.jsonl", packed.parent / "other", options)
    found = explain(packed, corpus=other, compare=None).transitions.counts
    assert found.sum() == pytest.approx(mine.sum())  # the same documents, fewer of their words


def test_a_model_without_scripts_needs_a_corpus(packed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (packed / SCRIPTS).unlink()
    assert_is_a_message(f"explain {packed}", "--corpus", packed, packed, capsys)


def test_the_packaged_model_is_explained(ask: Ask) -> None:
    (record,) = records(ask("explain", "wiki-en", "--rows", "3", "--min-count", "1", "--json"))
    assert len(record["words"]["frames_given_words"]) == 3
    assert record["transitions"]["lift"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("explain SSDVAE --words arestd", "no word 'arestd'"),
        ("explain SSDVAE --frames Arest", "did you mean Arrest"),
        ("explain PLAIN", "no frames to look at"),
        ("explain SSDVAE --transitions f.xlsx", ".csv"),
        ("explain runs/nope", "runs/nope"),
        ("explain", "RUN"),
    ],
)
def test_a_mistake_is_a_message(
    words: str, expected: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_is_a_message(words, expected, folder, tmp_path, capsys)
