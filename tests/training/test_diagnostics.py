"""Training and evaluation compare the inferred frames with what counting would get, and warn."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict

import pytest

import ssdvae
from ssdvae.data.batches import mask_frames
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.evaluation.fitting import without_fitted_labels
from ssdvae.evaluation.frames import LITTLE, majority_frames_of_run, warnings_for
from ssdvae.io.run import Run
from tests.training.conftest import SETTINGS


def counted(corpus: Corpus, held_out: Documents) -> float:
    """Return the accuracy of the most frequent observed frame of the head, counted event by event."""
    train = corpus.split("train")
    observed = mask_frames(train, SETTINGS.observe, SETTINGS.seed)
    frames: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for word, frame in zip(train.tokens[:, 0].tolist(), observed.tolist(), strict=True):
        if frame >= 0:
            frames[word][frame] += 1
            frames[-1][frame] += 1
    right: list[bool] = []
    for word, frame in zip(held_out.tokens[:, 0].tolist(), held_out.frames.tolist(), strict=True):
        counts = frames.get(word, frames[-1])
        if frame >= 0:
            right.append(min(counts, key=lambda f: (-counts[f], f)) == frame)
    return sum(right) / len(right)


def test_validations_have_it_beside_the_accuracy(corpus: Corpus, uninterrupted: Run) -> None:
    """On the events that both are measured on: those that the reader was not fitted to."""
    measured = without_fitted_labels(corpus.split("valid"), ssdvae.load(uninterrupted.folder), "valid")
    expected = counted(corpus, measured)
    assert expected != counted(corpus, corpus.split("valid"))
    for record in uninterrupted.curve():
        assert record["frame_majority"] == pytest.approx(expected)


def test_evaluation_has_it_and_warns(
    corpus: Corpus, uninterrupted: Run, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="ssdvae"):
        found = ssdvae.evaluate(uninterrupted.folder, split="test", tasks="frames", progress=False)
    assert found["frame_majority"] == pytest.approx(counted(corpus, corpus.split("test")))
    # A dozen steps are not enough to learn more than counting does.
    assert found["frame_accuracy"] <= found["frame_majority"]
    assert "no better than the majority baseline" in caplog.text
    assert ("next to nothing" in caplog.text) == (found["latent_information"] < LITTLE)


def test_what_was_hidden_in_training_is_not_counted(corpus: Corpus, uninterrupted: Run) -> None:
    table = majority_frames_of_run(uninterrupted.folder, corpus)
    assert table is not None
    observed = mask_frames(corpus.split("train"), SETTINGS.observe, SETTINGS.seed)
    assert set(table.tolist()) <= set(observed[observed >= 0].tolist())


@pytest.mark.parametrize(
    ("scores", "frames", "expected"),
    [
        ({"latent_information": LITTLE / 2}, 50, ["next to nothing"]),
        ({"latent_information": LITTLE * 2}, 50, []),
        ({"latent_information": 0.0}, 1, []),  # one frame has nothing to say
        ({"frame_accuracy": 0.5, "frame_majority": 0.5}, 50, ["no better"]),
        ({"frame_accuracy": 0.6, "frame_majority": 0.5}, 50, []),
        ({"frame_accuracy": 0.4, "frame_majority": None}, 50, []),
        ({}, 50, []),
    ],
)
def test_doubts_are_raised_where_there_is_reason(
    scores: dict[str, float], frames: int, expected: list[str]
) -> None:
    found = list(warnings_for(scores, frames))
    assert len(found) == len(expected)
    assert all(part in text for part, text in zip(expected, found, strict=True))
