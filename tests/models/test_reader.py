"""Preference: what was observed with a head, or stands in a lexicon, and no more."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.models.mixture import UNSEEN
from ssdvae.models.preference import SMOOTHING, Preference
from tests.toys import FRAMES, WORDS, toy_batch, toy_ssdvae

UNKNOWN = 1


def learned(
    pairs: list[tuple[int, int]],
    lexicon: list[tuple[int, int]] | None = None,
    lemmas: list[int] | None = None,
) -> Preference:
    preference = Preference(WORDS, FRAMES)
    heads, frames = torch.tensor(pairs, dtype=torch.long).view(-1, 2).T
    preference.initialize_from_data(
        heads,
        frames,
        UNKNOWN,
        None if lexicon is None else torch.tensor(lexicon),
        None if lemmas is None else torch.tensor(lemmas),
    )
    return preference


PAIRS = st.lists(st.tuples(st.integers(0, WORDS - 1), st.integers(0, FRAMES - 1)), min_size=1, max_size=30)


@given(PAIRS)
def test_it_is_the_smoothed_log_odds_of_what_was_counted(pairs: list[tuple[int, int]]) -> None:
    found = learned(pairs).of(torch.arange(WORDS))
    frequency = [1 + sum(f == frame for _, f in pairs) for frame in range(FRAMES)]
    for head in range(WORDS):
        mine = [f for v, f in pairs if v == head and head != UNKNOWN]
        for frame in range(FRAMES):
            p = frequency[frame] / sum(frequency)
            joint = (mine.count(frame) + SMOOTHING * p) / (len(mine) + SMOOTHING)
            assert found[head, frame].item() == pytest.approx(math.log(joint / p) if mine else 0, abs=1e-4)


@given(PAIRS)
def test_an_event_does_not_count_for_its_own_head(pairs: list[tuple[int, int]]) -> None:
    """What training says of an event is what a corpus without it says, but for the frequency of frames."""
    whole = learned(pairs)
    for number, (head, frame) in enumerate(pairs):
        rest = pairs[:number] + pairs[number + 1 :]
        without = learned(rest)
        without.frequency.copy_(whole.frequency)
        torch.testing.assert_close(
            whole.of(torch.tensor([head]), torch.tensor([frame])), without.of(torch.tensor([head]))
        )


def test_a_lexicon_prefers_its_frames_and_leaves_other_heads_free() -> None:
    preference = learned([], lexicon=[(3, 0), (3, 2)])
    known, free = preference.of(torch.tensor([3, 4]))
    assert known.topk(2).indices.sort().values.tolist() == [0, 2]
    assert not free.any()


def test_what_is_in_a_lexicon_stays_known_when_its_only_example_is_left_out() -> None:
    preference = learned([(3, 0)], lexicon=[(3, 0), (3, 2)])
    left_out = preference.of(torch.tensor([3]), torch.tensor([0]))
    never_seen = learned([], lexicon=[(3, 0), (3, 2)])
    never_seen.frequency.copy_(preference.frequency)
    torch.testing.assert_close(left_out, never_seen.of(torch.tensor([3])))
    assert preference.listed.max() == UNSEEN


def test_forms_of_a_lemma_share_what_is_known() -> None:
    lemmas = list(range(WORDS))
    lemmas[4] = 3
    preference = learned([(3, 0), (3, 0), (4, 2)], lemmas=lemmas)
    one, other = preference.of(torch.tensor([3, 4]))
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(one, learned([(3, 0), (3, 0), (3, 2)]).of(torch.tensor([3]))[0])


def test_a_preference_changes_frames_in_the_encoder_and_heads_in_the_decoder() -> None:
    model, batch = toy_ssdvae(guide="local", preference=True), toy_batch([3, 2], observe=0)
    assert model.preference is not None
    frames, words = model.infer(batch).log_q, model.event_log_probs(batch)
    with torch.no_grad():
        model.preference.encoder_strength.zero_()
    assert not torch.isclose(model.infer(batch).log_q, frames).all()
    with torch.no_grad():
        model.preference.decoder_strength.zero_()
    assert not torch.isclose(model.event_log_probs(batch), words).all()


def test_the_decoder_gives_heads_what_the_encoder_reads_off_them() -> None:
    """s of the frame that an event has, at its head and nowhere else."""
    preference = learned([(3, 0), (4, 2)])
    weights = torch.nn.functional.one_hot(torch.tensor([0, 2]), FRAMES).float()
    every = preference.of(torch.arange(WORDS))
    torch.testing.assert_close(preference.for_decoder(weights), every[:, [0, 2]].T)
