"""Decoding of words: probabilities and frequencies, and the best of all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import chi2

from ssdvae.data.vocabulary import Vocabulary
from ssdvae.inference.generation import draw, forbidden, nucleus, sampling, searching
from ssdvae.inference.options import GenerateOptions
from tests.toys import WORDS, toy_model

QUANTILE = 0.999


def fits(counts: np.ndarray, probabilities: np.ndarray) -> None:
    """Pearson's χ² of the counts is below its 99.9 % quantile; what is impossible never happens."""
    possible = probabilities > 0
    assert not counts[~possible].any()
    expected = counts.sum() * probabilities[possible]
    statistic = ((counts[possible] - expected) ** 2 / expected).sum()
    assert statistic < chi2.ppf(QUANTILE, possible.sum() - 1)


def test_the_nucleus_is_the_fewest_words_that_are_enough() -> None:
    p = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.25, 0.25, 0.25, 0.25]])
    torch.testing.assert_close(nucleus(p.log()), p.double())
    torch.testing.assert_close(
        nucleus(p.log(), top_p=0.65),
        torch.tensor([[0, 4 / 7, 0, 3 / 7], [1 / 3, 1 / 3, 1 / 3, 0]], dtype=torch.float64),
    )
    assert nucleus(p.log(), top_p=1e-9).tolist() == [[0, 1, 0, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize("top_p", [0.3, 0.8, 1.0])
def test_the_nucleus_by_its_definition(top_p: float) -> None:
    log_p = torch.randn(20, 7).log_softmax(-1)
    for row, kept in zip(log_p.double().exp(), nucleus(log_p, top_p=top_p), strict=True):
        chosen, total = [], 0.0
        for word in sorted(range(7), key=lambda w: -row[w].item()):
            if total < top_p:
                chosen.append(word)
                total += row[word].item()
        expected = [row[w].item() / total if w in chosen else 0 for w in range(7)]
        assert kept.tolist() == pytest.approx(expected, rel=1e-6)


def test_temperature_raises_probabilities_to_a_power() -> None:
    log_p = torch.randn(3, 5).log_softmax(-1)
    power = log_p.double().exp() ** (1 / 0.7)
    torch.testing.assert_close(nucleus(log_p, temperature=0.7), power / power.sum(-1, keepdim=True))


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 1.0), (1.0, 0.6), (1.5, 0.8)])
def test_words_are_drawn_as_often_as_they_are_likely(temperature: float, top_p: float) -> None:
    log_p = torch.randn(9).log_softmax(-1)
    log_p[4] = -torch.inf
    size, stream = 20_000, torch.Generator().manual_seed(1)
    settings = GenerateOptions(temperature=temperature, top_p=top_p)
    choose = sampling(settings, lambda: torch.rand(size, generator=stream))
    rows, words = choose(log_p.expand(size, -1), torch.zeros(size))
    assert rows.tolist() == list(range(size))
    fits(np.bincount(words, minlength=9), nucleus(log_p[None], temperature, top_p)[0].numpy())


def test_the_ends_of_the_unit_interval_are_words_that_are_possible() -> None:
    p = torch.tensor([[0.0, 0.5, 0.5, 0.0]], dtype=torch.float64)
    largest = torch.rand(()).new_tensor(1 - 2**-24)
    assert draw(p, torch.zeros(1)).tolist() == [1]
    assert draw(p, largest[None]).tolist() == [2]


def test_a_search_takes_the_best_sums() -> None:
    log_p, total = torch.randn(3, 5).log_softmax(-1), torch.tensor([0.0, -1.0, -0.3])
    log_p[0, 2] = -torch.inf
    rows, words = searching(4)(log_p, total)
    sums = sorted((total[:, None] + log_p).flatten().tolist(), reverse=True)
    assert (total[rows] + log_p[rows, words]).tolist() == sums[:4]
    assert len(searching(100)(log_p, total)[0]) == 14  # what is forbidden is never taken


def test_what_is_forbidden() -> None:
    vocabulary = toy_model().vocabulary
    unknown, missing = vocabulary.unknown, vocabulary.missing
    events = torch.tensor([[[5, 6, 7, 8], [5, 6, 7, 9]], [[5, 6, 7, 8], [5, 6, 2, 3]]])

    def banned(words: list[list[int]], **settings: Any) -> list[set[int]]:
        tokens = torch.tensor(words, dtype=torch.long).reshape(2, -1)
        mask = forbidden(events, tokens, vocabulary, GenerateOptions(**settings))
        assert mask.shape == (2, WORDS)
        return [set(row.nonzero()[:, 0].tolist()) for row in mask]

    assert banned([[], []]) == [{unknown, missing}] * 2
    assert banned([[5], [5]]) == [{unknown}] * 2
    assert banned([[5, 6], [5, missing]]) == [{unknown}] * 2
    assert banned([[5, 6], [5, missing]], distinct_roles=True) == [{unknown, 6}, {unknown}]
    rare = Vocabulary(vocabulary.names, vocabulary.counts, np.ones((4, WORDS), np.int64), repeats=0)
    tokens = torch.tensor([[5, 6], [5, missing]])
    mask = forbidden(events, tokens, rare, GenerateOptions())
    assert [set(row.nonzero()[:, 0].tolist()) for row in mask] == [{unknown, 6}, {unknown}]
    assert banned([[5, 6, 7], [5, 6, 7]]) == [{unknown}] * 2
    assert banned([[5, 6, 7], [5, 6, 7]], repeat=False) == [{unknown, 8, 9}, {unknown, 8}]
