"""Next events: ranks by hand, and a bigram that is a distribution."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from ssdvae.evaluation.next_event import Ranks, counts_of
from tests.toys import FRAMES, WORDS, toy_documents


def test_ranks_are_the_places_of_the_true_ones() -> None:
    ranks = Ranks()
    p = torch.tensor([[0.5, 0.3, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]])
    ranks.add(p.log(), torch.tensor([1, 3]))
    figures = ranks.figures("x")
    assert figures["x_1"] == 0
    assert figures["x_5"] == 1
    assert figures["x_mrr"] == pytest.approx((1 / 2 + 1 / 2.5) / 2)
    assert figures["x_loss"] == pytest.approx(-np.log([0.3, 0.25]).mean())
    assert figures["x_ece"] == pytest.approx(0.375)
    assert Ranks().figures("x") == {}


def test_what_counting_gets_are_distributions_that_follow_the_counts() -> None:
    documents = toy_documents([3, 2, 5, 1] * 6)
    heads, frames = counts_of(documents, WORDS, FRAMES)
    before = torch.arange(WORDS)
    for counts, size in ((heads, WORDS), (frames, FRAMES)):
        for log_p in (counts.frequency(before), counts.bigram(before)):
            assert log_p.shape == (WORDS, size)
            torch.testing.assert_close(log_p.exp().sum(1), torch.ones(WORDS, dtype=torch.float64))
    followers: dict[int, list[int]] = {}
    for part in documents.parts():
        words = documents.tokens[part][:, 0].tolist()
        for first, second in pairwise(words):
            followers.setdefault(first, []).append(second)
    p = heads.frequency(before)[0].exp()
    for first, seen in followers.items():
        kinds = len(set(seen))
        for second in range(WORDS):
            expected = (seen.count(second) + kinds * p[second].item()) / (len(seen) + kinds)
            assert heads.bigram(before)[first, second].exp().item() == pytest.approx(expected)
