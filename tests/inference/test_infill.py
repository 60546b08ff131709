"""Infilling: from both sides, and better than from one."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor

from ssdvae.data.batches import Batch
from ssdvae.data.events import HOLE, Document, Event
from ssdvae.inference.forecast import next_events
from ssdvae.inference.generation import generate
from ssdvae.inference.infill import fill_documents, missing_slots
from ssdvae.inference.inputs import to_batch
from ssdvae.inference.options import GenerateOptions
from ssdvae.inference.surprisal import kind_of
from ssdvae.models.base import LanguageModel
from tests.toys import WORDS, named_documents, noise, toy_documents, toy_exact, toy_language_model, toy_model

WHOLE = Event(HOLE)


def document_log_probs(model: LanguageModel, batch: Batch) -> Tensor:
    """log p(words) of each document: the sum over its words."""
    with torch.no_grad():
        return model.word_log_probs(batch, noise(len(batch))).sum((1, 2))


def test_a_missing_word_has_the_probability_that_the_whole_document_gives_it() -> None:
    """Bayes by enumeration: every word that could stand there."""
    model = toy_exact()
    (document,) = named_documents(toy_documents([3]), model)
    head, _, *rest = document.events[1].padded(4)
    holed = Document("a", (document.events[0], Event.of_words([head, HOLE, *rest]), document.events[2]))
    (found,) = fill_documents(model, [holed], top=WORDS, beam=WORDS)
    assert found.kind == "exact"
    batch = to_batch(model, [document]).rows(torch.zeros(WORDS, dtype=torch.long))
    batch.tokens[:, 1, 1] = torch.arange(WORDS)
    log_p = document_log_probs(model, batch)
    log_p[model.vocabulary.unknown] = -math.inf
    (hole,) = found.holes
    assert (hole.place, hole.slots) == (1, ("slot1",))
    shares = log_p.softmax(0)
    by_word = {filling.event.padded(4)[1]: filling.probability for filling in hole.fillings}
    assert len(by_word) == WORDS - 1
    assert by_word == pytest.approx({w: shares[model.vocabulary.id(w)].item() for w in by_word})
    assert sum(frame.probability for frame in hole.frames) == pytest.approx(1, abs=1e-6)
    assert found.events[1].padded(4)[1] == max(by_word, key=lambda word: by_word[word])


@pytest.mark.parametrize("settings", [{}, {"tied": False, "context_vector": 3}], ids=str)
@pytest.mark.parametrize("place", [0, 1, 3])
def test_a_missing_event_has_its_share_of_the_documents_with_all_others(
    place: int, settings: dict[str, Any]
) -> None:
    """p(before, c, after) normalised over the candidates c, from the probabilities of words alone."""
    model = toy_exact(slots=2, **settings)
    (document,) = named_documents(toy_documents([4], slots=2), model)
    events = list(document.events)
    holed = Document("a", (*events[:place], WHOLE, *events[place + 1 :]))
    (found,) = fill_documents(model, [holed], top=WORDS**2, beam=WORDS**2, batch=7)
    fillings = found.holes[0].fillings
    assert len(fillings) == (WORDS - 2) * (WORDS - 1)  # all that have a head and no unknown word
    every = [Document("b", (*events[:place], f.event, *events[place + 1 :])) for f in fillings]
    shares = document_log_probs(model, to_batch(model, every)).softmax(0)
    assert [f.probability for f in fillings] == pytest.approx(shares.tolist())
    begun = [Document("b", document.events[: place + 1]) for document in every]
    before = document_log_probs(model, to_batch(model, begun)).softmax(0)
    assert [f.before for f in fillings] == pytest.approx(before.tolist())


def test_at_the_end_it_is_what_comes_next() -> None:
    model = toy_model("rnnlm")
    (document,) = named_documents(toy_documents([2]), model)
    (found,) = fill_documents(model, [Document("a", (*document.events, WHOLE))], top=3, beam=20)
    (ahead,) = next_events(model, [document], top=20, beam=20)
    expected = ahead.events[:3]
    assert [f.event for f in found.holes[0].fillings] == [e.event for e in expected]
    total = sum(event.probability for event in ahead.events)
    assert [f.probability for f in found.holes[0].fillings] == pytest.approx(
        [event.probability / total for event in expected]
    )
    assert [f.before for f in found.holes[0].fillings] == pytest.approx(
        [f.probability for f in found.holes[0].fillings]
    )


def test_both_sides_say_more_than_one() -> None:
    """In the mean over documents that the model itself would write, by Gibbs' inequality."""
    model = toy_model("rnnlm", tied=False)
    for parameter in model.parameters():
        parameter.data *= 2.5  # so that events have something to say of each other
    drawn = generate(model, GenerateOptions(scripts=60, events=3, top_p=1.0, seed=3))
    gain = []
    for script in drawn:
        before, event, after = (one.event for one in script.events)
        head, *rest = event.padded(4)
        holed = Document("a", (before, Event.of_words([HOLE, *rest]), after))
        (found,) = fill_documents(model, [holed], top=WORDS, beam=WORDS)
        (truth,) = (f for f in found.holes[0].fillings if f.event.head == head)
        gain.append(math.log(truth.probability / truth.before))
    assert sum(gain) / len(gain) > 0.01


@pytest.mark.parametrize("name", ["ssdvae", "haqae", "ssdvae-exact"])
def test_several_holes_are_filled_from_the_left(name: str) -> None:
    model = toy_language_model(name)
    (document,) = named_documents(toy_documents([4]), model)
    first, second, third, fourth = document.events
    argument = Event.of_words([third.head, "word1", HOLE, "word2"])
    holed = Document("a", (first, WHOLE, argument, fourth))
    (found,) = fill_documents(model, [holed], top=2, beam=4)
    assert found.kind == kind_of(model) == ("exact" if name == "ssdvae-exact" else "estimate")
    assert [(hole.place, len(hole.slots)) for hole in found.holes] == [(1, 4), (2, 1)]
    assert not any(missing_slots(event, 4) for event in found.events)
    assert [found.events[0], found.events[3]] == [first, fourth]
    assert found.events[2].padded(4)[1::2] == ("word1", "word2")
    assert len(list(found.rows())) == 4
    assert second.head  # what stood there is nothing that it could have seen
    (whole,) = fill_documents(model, [document])
    assert (whole.events, whole.holes) == (document.events, ())


def test_what_is_missing() -> None:
    assert missing_slots(WHOLE, 4) == (0, 1, 2, 3)
    assert missing_slots(Event(HOLE, "she"), 4) == (0,)
    assert missing_slots(Event("met", None, HOLE), 4) == (2,)
    assert missing_slots(Event("met"), 4) == ()
    every = itertools.product([HOLE, "a"], repeat=2)
    assert [missing_slots(Event(*words), 2) for words in every] == [(0, 1), (0,), (1,), ()]
