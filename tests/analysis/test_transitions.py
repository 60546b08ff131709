"""Frames that precede a frame: one pair of events at a time, and a planted cause."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssdvae.analysis.explain import explain
from ssdvae.analysis.options import ExplainOptions
from ssdvae.analysis.transitions import DISTANCES, NEAR, Preceding
from ssdvae.data.batches import collate
from ssdvae.inference.posterior import frame_posteriors, infer_frames
from ssdvae.io.errors import UserError
from tests.toys import FRAMES, toy_documents, toy_model

LENGTHS = [3, 1, 9, 2, 7]


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_pairs_are_counted_one_by_one(batch: int) -> None:
    model, documents = toy_model(), toy_documents(LENGTHS)
    found = Preceding(model, "Frame1")
    for posterior, some in frame_posteriors(model, documents, batch):
        found.add(posterior, some)
    counts, firsts = np.zeros((len(DISTANCES), FRAMES)), np.zeros((len(DISTANCES), FRAMES))
    seconds, pairs = np.zeros(len(DISTANCES)), np.zeros(len(DISTANCES))
    for row, length in enumerate(LENGTHS):
        q = infer_frames(model, collate(documents, np.array([row]))).log_q[0].exp().numpy()
        for m in range(length):
            for later in range(m + 1, length):
                d = min(later - m, NEAR + 1) - 1
                counts[d] += q[m] * q[later, 1]
                firsts[d] += q[m]
                seconds[d] += q[later, 1]
                pairs[d] += 1
    np.testing.assert_allclose(found.counts, counts)
    np.testing.assert_allclose(found.firsts, firsts)
    np.testing.assert_allclose(found.seconds, seconds)
    np.testing.assert_allclose(found.pairs, pairs)
    assert found.pairs.sum() == sum(n * (n - 1) // 2 for n in LENGTHS)
    # Σ_f p(f, g) / (p(f) p(g)) · p(f) = 1: a lift above 1 is one below 1 elsewhere.
    share = firsts.sum(0) / pairs.sum()
    assert (found.lift() * share).sum() == pytest.approx(1)
    for link in found.strongest(9, min_count=0.0):
        assert link.pmi == pytest.approx(math.log(link.lift))
        assert sum(count for count, _ in link.by_distance.values()) == pytest.approx(link.count)


def test_the_answer_is_shown_alone_and_a_wrong_name_is_refused() -> None:
    model, documents = toy_model(), toy_documents(LENGTHS)
    settings = ExplainOptions(before="Frame2", min_count=0.0)
    record = explain(model, documents, settings).to_record(settings)
    assert record.keys() == {"before"}
    lifts = [link["lift"] for link in record["before"]["preceded_by"]]
    assert lifts == sorted(lifts, reverse=True)
    assert len(lifts) == FRAMES
    with pytest.raises(UserError, match="no frame 'Fram2'; did you mean Frame2"):
        explain(model, documents, ExplainOptions(before="Fram2"))


def test_documents_of_one_event_have_nothing_before_anything() -> None:
    settings = ExplainOptions(before="Frame0")
    assert explain(toy_model(), toy_documents([1, 1]), settings).to_record(settings) == {
        "before": {"frame": "Frame0", "preceded_by": []}
    }
