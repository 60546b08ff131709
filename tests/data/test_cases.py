"""Cases in a corpus: which of them are over, and the times of their events."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ssdvae.data.batches import collate
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Event, event_from_record, event_to_record
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare, single_events
from ssdvae.io.errors import DataError

DAY = 86400


def table(folder: Path, lengths: list[int]) -> Path:
    """Cases c0, c1, … whose events a0, a1, … happen once a day."""
    rows = [f"c{c},a{m},1970-01-{m + 1:02d} 00:00:{c:02d}" for c, n in enumerate(lengths) for m in range(n)]
    path = folder / "log.csv"
    path.write_text("\n".join(["case,act,when", *rows]) + "\n")
    return path


def made(folder: Path, lengths: list[int], **options: object) -> Corpus:
    path, names = table(folder, lengths), {"case": "case", "head": "act", "time": "when", **options}
    sources = dict.fromkeys(("train", "valid", "test"), path)
    return prepare(sources, folder / "corpus", PrepareOptions.of(names))  # type: ignore[arg-type]


def test_every_case_of_a_table_is_over(tmp_path: Path) -> None:
    corpus = made(tmp_path, [3, 1, 2])
    documents = corpus.split("train")
    assert corpus.ends
    assert corpus.times
    assert documents.ends is not None
    assert documents.times is not None
    assert documents.ends.tolist() == [False, False, True, True, False, True]
    assert documents.times.tolist() == [0, DAY, 2 * DAY, 1, 2, DAY + 2]


def test_what_is_cut_is_not_over(tmp_path: Path) -> None:
    documents = made(tmp_path, [3, 1, 2], events=2).split("train")
    assert documents.ends is not None
    assert documents.ends.tolist() == [False, False, True, False, True]


def test_windows_of_a_long_case_do_not_end_in_it(tmp_path: Path) -> None:
    documents = made(tmp_path, [5, 2]).split("train").windows(2, 2)
    batch = collate(documents, np.arange(len(documents)))
    assert batch.ends is not None
    assert batch.times is not None
    assert batch.ends.tolist() == [[False, False], [False, False], [False, True], [False, True]]
    assert batch.times[1].tolist() == [2 * DAY, 3 * DAY]
    cut = collate(documents.first(1), np.arange(4))
    assert cut.ends is not None
    assert not cut.ends.any()


def test_running_cases_have_no_ends(tmp_path: Path) -> None:
    corpus = made(tmp_path, [3, 1], open=True)
    assert not corpus.ends
    assert corpus.split("train").ends is None


def test_documents_have_no_ends_and_no_times(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"id": "a", "events": [{"verb": "met", "time": 3}]}\n')
    corpus = prepare({"train": path, "valid": path, "test": path}, tmp_path / "corpus")
    assert not corpus.ends
    assert not corpus.times
    assert "ends" not in corpus.manifest


def test_single_events_do_not_end(tmp_path: Path) -> None:
    corpus = single_events(made(tmp_path, [3, 1]), tmp_path / "single")
    times = corpus.split("train").times
    assert not corpus.ends
    assert times is not None
    assert times.tolist() == [0, DAY, 2 * DAY, 1]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (5, 5.0),
        (1.5, 1.5),
        ("1970-01-02", DAY),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("soon", None),
        (True, None),
    ],
)
def test_times_in_records(written: object, seconds: float | None) -> None:
    event = event_from_record({"verb": "met", "time": written})
    assert event.time == seconds
    assert event_from_record(event_to_record(event)).time == seconds


def test_an_event_that_happens_again_is_the_same() -> None:
    assert Event("met", time=1.0) == Event("met", time=2.0)


def test_a_corpus_without_the_column_that_it_promises(tmp_path: Path) -> None:
    corpus = made(tmp_path, [3, 1], open=True)
    corpus.manifest["ends"] = True
    with pytest.raises(DataError, match="ended"):
        corpus.split("train")
