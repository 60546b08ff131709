"""Rare words stand in for the unknown word where all training words are known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ssdvae.data.batches import Batch, generator
from ssdvae.data.vocabulary import UNKNOWN, Vocabulary
from ssdvae.training.loop import HIDDEN_SHARE, hide_words, rare_words

NAMES = ["None", UNKNOWN, "once", "twice", "in_two_slots", "never"]
COUNTS = np.array([[0, 0, 1, 2, 1, 0], [3, 0, 0, 0, 1, 0]])


def vocabulary(unknown: int = 0) -> Vocabulary:
    counts = COUNTS.copy()
    counts[1, 1] = unknown
    return Vocabulary(NAMES, counts.sum(0).tolist(), counts)


def test_rare_words_occur_once_in_all_slots() -> None:
    rare = rare_words(vocabulary())
    assert rare is not None
    assert [name for name, is_rare in zip(NAMES, rare.tolist(), strict=True) if is_rare] == ["once"]


@pytest.mark.parametrize("known", [vocabulary(unknown=1), Vocabulary(NAMES, COUNTS.sum(0).tolist())])
def test_nothing_is_hidden_where_training_has_unknown_words_or_nothing_was_counted(known: Vocabulary) -> None:
    assert rare_words(known) is None


def test_a_share_of_the_rare_words_is_hidden_and_nothing_else() -> None:
    rare = rare_words(vocabulary())
    assert rare is not None
    tokens = torch.randint(2, len(NAMES), (200, 5, 2), generator=generator(1, "words"))
    batch = Batch.of_words(tokens)
    hidden = hide_words(batch, rare, 1, generator(1, "hidden", 7)).tokens
    assert torch.equal(hidden, hide_words(batch, rare, 1, generator(1, "hidden", 7)).tokens)
    assert not torch.equal(hidden, hide_words(batch, rare, 1, generator(1, "hidden", 8)).tokens)
    assert torch.equal(hidden[tokens != 2], tokens[tokens != 2])
    assert set(hidden[tokens == 2].tolist()) == {1, 2}
    assert (hidden[tokens == 2] == 1).double().mean().item() == pytest.approx(HIDDEN_SHARE, abs=0.06)
