"""The reader's head-frame bias: what was observed with a head, or is in a lexicon, and no more."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from ssdvae.models.reader import SMOOTHING, HeadFrameCounts
from tests.toys import FRAMES, WORDS, toy_batch, toy_exact

UNKNOWN = 1


def learned(
    pairs: list[tuple[int, int]],
    lexicon: list[tuple[int, int]] | None = None,
    lemmas: list[int] | None = None,
) -> HeadFrameCounts:
    counts = HeadFrameCounts(WORDS, FRAMES, 16)
    heads, frames = torch.tensor(pairs, dtype=torch.long).view(-1, 2).T
    counts.initialize_from_data(
        heads,
        frames,
        UNKNOWN,
        None if lexicon is None else torch.tensor(lexicon),
        None if lemmas is None else torch.tensor(lemmas),
    )
    return counts


def log_odds(counts: HeadFrameCounts, heads: list[int], own: list[int] | None = None) -> Tensor:
    return counts.log_odds(
        torch.tensor(heads), torch.tensor(SMOOTHING), None if own is None else torch.tensor(own)
    )


PAIRS = st.lists(st.tuples(st.integers(0, WORDS - 1), st.integers(0, FRAMES - 1)), min_size=1, max_size=30)


@given(PAIRS)
def test_it_is_the_smoothed_log_odds_of_what_was_counted(pairs: list[tuple[int, int]]) -> None:
    found = log_odds(learned(pairs), list(range(WORDS)))
    frequency = [1 + sum(f == frame for _, f in pairs) for frame in range(FRAMES)]
    for head in range(WORDS):
        mine = [f for v, f in pairs if v == head and head != UNKNOWN]
        for frame in range(FRAMES):
            p = frequency[frame] / sum(frequency)
            joint = (mine.count(frame) + SMOOTHING * p) / (len(mine) + SMOOTHING)
            assert found[head, frame].item() == pytest.approx(math.log(joint / p) if mine else 0, abs=1e-4)


@given(PAIRS)
def test_an_event_does_not_count_for_its_own_head(pairs: list[tuple[int, int]]) -> None:
    """Training infers an event as a corpus without it does, but for the frequency of frames."""
    whole = learned(pairs)
    for number, (head, frame) in enumerate(pairs):
        rest = pairs[:number] + pairs[number + 1 :]
        without = learned(rest)
        without.frequency.copy_(whole.frequency)
        torch.testing.assert_close(log_odds(whole, [head], [frame]), log_odds(without, [head]))


def test_a_lexicon_favours_its_frames_and_leaves_other_heads_free() -> None:
    counts = learned([], lexicon=[(3, 0), (3, 2)])
    known, free = log_odds(counts, [3, 4])
    assert known.topk(2).indices.sort().values.tolist() == [0, 2]
    assert not free.any()


def test_what_is_in_a_lexicon_stays_known_when_its_only_example_is_left_out() -> None:
    counts = learned([(3, 0)], lexicon=[(3, 0), (3, 2)])
    left_out = log_odds(counts, [3], [0])
    never_seen = learned([], lexicon=[(3, 0), (3, 2)])
    never_seen.frequency.copy_(counts.frequency)
    torch.testing.assert_close(left_out, log_odds(never_seen, [3]))


def test_forms_of_a_lemma_share_what_is_known() -> None:
    lemmas = list(range(WORDS))
    lemmas[4] = 3
    counts = learned([(3, 0), (3, 0), (4, 2)], lemmas=lemmas)
    one, other = log_odds(counts, [3, 4])
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(one, log_odds(learned([(3, 0), (3, 0), (3, 2)]), [3])[0])


@given(PAIRS, st.floats(0.05, 5))
def test_a_frame_that_no_event_had_counts_by_the_smoothing_alone(
    pairs: list[tuple[int, int]], smoothing: float
) -> None:
    """s = log (α / (n_v + α)) there, and a head without counts is neutral."""
    found = learned(pairs).log_odds(torch.arange(WORDS), torch.tensor(smoothing))
    for head in range(WORDS):
        mine = [f for v, f in pairs if v == head and head != UNKNOWN]
        for frame in set(range(FRAMES)) - set(mine):
            expected = math.log(smoothing / (len(mine) + smoothing)) if mine else 0
            assert found[head, frame].item() == pytest.approx(expected, abs=1e-4)


def test_a_label_that_was_never_counted_takes_nothing_away() -> None:
    """An event without an observed frame, or with one that its head was never counted with."""
    counts = learned([(3, 0), (3, 0), (3, 2), (UNKNOWN, 1)])
    for own in (-1, 1):
        torch.testing.assert_close(log_odds(counts, [3, UNKNOWN], [own, own]), log_odds(counts, [3, UNKNOWN]))


def test_the_bias_changes_what_the_reader_says_by_its_strength() -> None:
    """q(f) ∝ exp(network + σ s): the difference to σ = 0 is σ s, up to a constant."""
    model, batch = toy_exact(), toy_batch([3, 2], observe=0)
    assert model.counts is not None
    with torch.no_grad():
        model.reader.strength.fill_(1.7)
        biased = model._read(model.reader, batch, batch.observed)
        model.reader.strength.zero_()
        plain = model._read(model.reader, batch, batch.observed)
        s = model.counts.log_odds(batch.tokens[..., 0][batch.mask], model.reader.log_smoothing.exp())
    torch.testing.assert_close(biased, (plain + 1.7 * s).log_softmax(-1))


def test_in_training_an_event_is_not_counted_for_its_own_head() -> None:
    model, batch = toy_exact(), toy_batch([4] * 10, observe=1)
    assert model.counts is not None
    with torch.no_grad():
        evaluated = model._read(model.reader, batch, batch.observed)
        trained = model.train()._read(model.reader, batch, batch.observed)
        heads, smoothing = batch.tokens[..., 0][batch.mask], model.reader.log_smoothing.exp()
        own = batch.observed[batch.mask]
        difference = model.counts.log_odds(heads, smoothing, own) - model.counts.log_odds(heads, smoothing)
    assert difference.any()
    expected = (evaluated + model.reader.strength.detach() * difference).log_softmax(-1)
    torch.testing.assert_close(trained, expected)
