"""Next events: ranks by hand, and n-grams that are distributions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from ssdvae.data.documents import Documents
from ssdvae.evaluation.next_event import (
    ORDERS,
    Ranks,
    best_order,
    equal_mass_error,
    fit_ngrams,
    following,
    next_event_scores,
)
from ssdvae.inference.surprisal import score_documents
from tests.models.test_cases import toy_cases
from tests.toys import FRAMES, WORDS, named_documents, toy_documents


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


def test_bins_of_equal_mass() -> None:
    sure, right = np.linspace(0, 1, 30), np.arange(30) % 3 == 0
    expected = sum(abs(sure[n : n + 2].sum() - right[n : n + 2].sum()) for n in range(0, 30, 2)) / 30
    mixed = np.random.default_rng(1).permutation(30)
    assert equal_mass_error(sure[mixed], right[mixed]) == pytest.approx(expected)


def test_ngrams_are_distributions_that_follow_the_counts() -> None:
    documents = toy_documents([3, 2, 5, 1] * 6)
    last = np.zeros(len(documents.frames), bool)
    last[documents.starts + documents.lengths - 1] = True
    documents = replace(documents, ends=last)
    heads, frames = fit_ngrams(documents, WORDS + 1, FRAMES, WORDS)
    followers: dict[int, list[int]] = {}
    for history, after, _ in following(documents, WORDS):
        followers.setdefault(history[-1], []).append(after)
        for ngram in (heads, frames):
            rows = list(ngram.log_p(history))
            assert [np.exp(row).sum() for row in rows] == pytest.approx([1] * ORDERS)
        np.testing.assert_allclose(
            [np.exp(row[after]) for row in heads.log_p(history)], heads.probabilities(history, after)
        )
    assert sum(after.count(WORDS) for after in followers.values()) == len(documents)
    for first, seen in followers.items():
        kinds, bigram = len(set(seen)), np.exp(list(heads.log_p([first]))[1])
        for second in range(WORDS + 1):
            expected = (seen.count(second) + kinds * heads.frequency[second]) / (len(seen) + kinds)
            assert bigram[second] == pytest.approx(expected)


def test_the_order_is_the_best_on_validation() -> None:
    """What follows depends on the two heads before, or on none."""

    def documents(words: list[int]) -> Documents:
        tokens = np.array(words, np.int32)[:, None]
        ids = pa.chunked_array([[str(n) for n in range(8)]])
        nothing, lengths = np.full(240, -1, np.int32), np.full(8, 30, np.int32)
        return Documents.of_events(ids, tokens, nothing, lengths)

    pattern = documents([2, 3, 4, 3, 5, 3] * 40)
    assert best_order(fit_ngrams(pattern, 6, 0, None)[0], pattern, None) >= 3
    draws = np.random.default_rng(1).integers(0, 6, (2, 240))
    random, other = documents(draws[0].tolist()), documents(draws[1].tolist())
    assert best_order(fit_ngrams(random, 6, 0, None)[0], other, None) == 1


@pytest.mark.parametrize("name", ["ssdvae-exact", "rnnlm"])
def test_figures_are_those_of_every_prefix_by_itself(name: str) -> None:
    """In any order of the cases."""
    torch.manual_seed(2)
    model, documents = toy_cases(name), toy_documents([3, 1, 4])
    last = np.zeros(len(documents.frames), bool)
    last[documents.starts + documents.lengths - 1] = True
    documents = replace(documents, ends=last)
    count, scores = next_event_scores(model, documents, documents, documents, 2)
    assert count == documents.events
    assert scores["next_end_counted"] == 1
    nats = []
    for document in named_documents(documents, model):
        (scored,) = score_documents(model, [document])
        nats += [event.slots[0] for event in scored.events[1:]]
    assert scores["next_head_loss"] == pytest.approx(np.mean(nats))
    again = next_event_scores(model, documents.take(np.array([2, 0, 1])), documents, documents, 3)[1]
    for key in ("next_head_loss", "next_head_1", "next_head_ngram_loss"):
        assert again[key] == pytest.approx(scores[key])
