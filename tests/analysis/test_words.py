"""Words and frames by belief: sums over what `infer` says."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from ssdvae.analysis.explain import explain
from ssdvae.analysis.options import ExplainOptions
from ssdvae.analysis.words import WordPosteriors
from ssdvae.inference.posterior import infer_documents
from ssdvae.io.errors import UserError
from ssdvae.models.base import FrameModel
from ssdvae.models.registry import MODELS
from tests.toys import accumulate, named_documents, toy_documents, toy_model

LENGTHS = [3, 1, 4, 2, 2]
WITH_FRAMES = [name for name in MODELS if issubclass(MODELS[name], FrameModel)]


@pytest.mark.parametrize("name", WITH_FRAMES)
@pytest.mark.parametrize("batch", [1, 3, 100])
def test_they_are_sums_over_what_infer_says(name: str, batch: int) -> None:
    """With two frames, `infer` names both."""
    model, documents = toy_model(name, frames=2), toy_documents(LENGTHS, frames=2)
    found = accumulate(WordPosteriors(model), model, documents, batch)
    joint: dict[tuple[str, str], float] = defaultdict(float)
    times: dict[str, int] = defaultdict(int)
    # The frames that it infers, both of them, with their probabilities.
    for document in infer_documents(model, named_documents(documents, model), top=2):
        for event in document.events:
            word = event.event.head
            times[word] += 1
            assert len(event.frames) == 2
            for one in event.frames:
                joint[word, one.name] += one.probability
    for word, count in times.items():
        assert found.times_of_word(word) == count
        for frame, share in found.frames_of(word):
            assert share == pytest.approx(joint[word, frame] / count)
    for frame in model.frames.names:
        total = sum(value for (_, other), value in joint.items() if other == frame)
        assert found.times_of_frame(frame) == pytest.approx(total)
        for word, share in found.words_of(frame, 99):
            assert share == pytest.approx(joint[word, frame] / total)
    assert found.frame_counts.sum() == pytest.approx(sum(LENGTHS))


def test_another_slot_can_be_looked_at() -> None:
    model, documents = toy_model(), toy_documents(LENGTHS)
    found = explain(model, documents, ExplainOptions(slot="slot2")).words
    words = documents.tokens[:, 2][np.isin(np.arange(len(documents.tokens)), documents.in_order())]
    assert found.word_counts.tolist() == np.bincount(words, minlength=len(model.vocabulary)).tolist()
    with pytest.raises(UserError, match="--slot: found 'colour', expected one of slot0"):
        explain(model, documents, ExplainOptions(slot="colour"))


def test_what_never_occurs_has_no_posterior() -> None:
    model, documents = toy_model(), toy_documents([1])
    found = accumulate(WordPosteriors(model), model, documents)
    absent = next(n for n in range(2, len(model.vocabulary)) if not found.word_counts[n])
    with pytest.raises(UserError, match=r"is in no event of these documents(.|\n)*--slot"):
        found.frames_of(model.vocabulary.name(absent))
