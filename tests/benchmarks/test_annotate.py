"""The figures of benchmarks/annotate.py."""

from __future__ import annotations

import pytest

from benchmarks import annotate
from benchmarks.annotate import (
    Prediction,
    accuracy_at_coverage,
    cross_validate,
    frames_by_verb,
    interval,
    is_held_out,
    split_framenet,
)
from ssdvae.data.events import Document, Event, Origin
from ssdvae.extraction.classifier import FrameClassifier


def test_no_document_is_judged_by_a_classifier_that_has_read_its_group() -> None:
    """Each group has a frame of its own for one verb: who has read the others must be wrong every time."""
    start = FrameClassifier.fit([Event("ran", frame=frame) for frame in "ABC"])
    documents = [
        Document(f"{group}__{number}", (Event("ran", frame=group),) * 9) for group in "ABC" for number in "12"
    ]
    apart = list(cross_validate(start, documents, lambda id: id[0]))
    assert len(apart) == 54
    assert not any(prediction.correct for prediction in apart)
    assert all(prediction.correct for prediction in cross_validate(start, documents[:2] + documents[:2], str))


def test_the_curve_of_accuracy_against_accuracy_at_coverage() -> None:
    event = Event("ran")
    given = [
        Prediction(event, right, False, p, True) for right, p in ((True, 0.9), (True, 0.6), (False, 0.6))
    ]
    assert accuracy_at_coverage(given, (0.0, 0.6, 0.7, 1.0)) == [
        (0.0, 1.0, 2 / 3),
        (0.6, 1.0, 2 / 3),
        (0.7, 1 / 3, 1.0),
        (1.0, 0.0, 0.0),
    ]
    assert accuracy_at_coverage([], (0.5,)) == [(0.5, 0.0, 0.0)]


def test_the_commonest_verbs_with_their_frames() -> None:
    events = (Event("ran", frame="A", lemma="run"), Event("run", frame="B"), Event("runs", lemma="run"))
    found = frames_by_verb([Document("d", (Event("hit", frame="A"), *events))])
    assert list(found) == ["run", "hit"]
    assert found["run"] == {"A": 1, "B": 1, None: 1}


def test_no_sentence_of_a_held_out_text_is_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """FrameNet's examples repeat sentences of its full texts, with other white space."""

    def event(text: str) -> Event:
        return Event("ran", frame="A", origin=Origin(0, 0, 3, text=text, text_start=0))

    texts = [Document(f"text{number}", (event(f"ran {number} ."),)) for number in range(40)]
    examples = [event(f"ran  {number}  .") for number in range(41)]
    monkeypatch.setattr(annotate, "read_framenet", lambda name: (examples, texts, {}))
    train, read, held_out, _ = split_framenet("framenet17")
    apart = [number for number in range(40) if is_held_out(f"text{number}")]
    assert 0 < len(apart) < 40
    assert [e.origin.text for e in held_out if e.origin] == [f"ran {number} ." for number in apart]
    assert len(read) == 40 - len(apart)
    assert len(train) == 41 - len(apart)
    assert not {e.origin.text for e in train if e.origin} & {f"ran  {number}  ." for number in apart}


def test_the_interval_of_a_mean_holds_it() -> None:
    low, high = interval([True] * 80 + [False] * 20)
    assert 0.70 < low < 0.8 < high < 0.89
    assert interval([True] * 5) == (1.0, 1.0)
