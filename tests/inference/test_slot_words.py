"""Each slot of a log has its own words: names with blanks are read, and nothing else is suggested."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ssdvae.data.events import HOLE, MISSING, SLOTS, Document, Event, event_from_text
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.inference.forecast import next_events
from ssdvae.inference.generation import generate
from ssdvae.inference.infill import fill_documents
from ssdvae.inference.lookup import lookup
from ssdvae.inference.options import GenerateOptions
from ssdvae.inference.prefixes import every_prefix
from ssdvae.inference.sentences import read_text
from ssdvae.inference.surprisal import score_documents
from ssdvae.models.exact import ExactModel
from ssdvae.models.options import ExactOptions

COUNTS = {
    # word: as activity, as resource
    MISSING: (0, 2),
    UNKNOWN: (1, 1),
    "Take in charge ticket": (9, 0),
    "Take": (3, 0),
    "Wait": (4, 1),
    "Value 1": (0, 9),
    "charge ticket": (0, 3),
    "Bo, Ann": (0, 2),
}
ACTIVITIES = {"Take in charge ticket", "Take", "Wait"}
RESOURCES = {"None", "Wait", "Value 1", "charge ticket", "Bo, Ann"}


def log_model(slots: tuple[str, ...] = ("activity", "resource")) -> ExactModel:
    names, counts = list(COUNTS), np.array(list(COUNTS.values())).T
    counts = np.concatenate([counts, np.tile(counts[1:], (len(slots) - 2, 1))])
    torch.manual_seed(2)
    vocabulary = Vocabulary(names, counts.sum(0).tolist(), counts)
    options = ExactOptions(embedding=4, hidden=5, candidates=2)
    return ExactModel(options, vocabulary, Inventory(["A", "B"], [1, 1]), slots).eval()


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("Take in charge ticket Value 1", ("Take in charge ticket", "Value 1")),
        ("take in charge ticket, value 1", ("Take in charge ticket", "Value 1")),
        ("Take in charge ticket", ("Take in charge ticket",)),
        ("Take charge ticket", ("Take", "charge ticket")),
        ("Wait - ", ("Wait",)),
        ("Wait Bo, Ann", ("Wait", "Bo, Ann")),
        ("Send the letter, Value 1", ("Send the letter", "Value 1")),
        ("Send, Someone new", ("Send", "Someone new")),
        ("Send him", ("Send", "him")),
    ],
)
def test_typed_names_may_have_blanks(typed: str, words: tuple[str, ...]) -> None:
    (event,) = read_text(typed, log_model())
    assert event == Event.of_words(words)


@pytest.mark.parametrize(
    "event", [Event("Take in charge ticket", "Value 1"), Event("a", "b"), Event("a b", "c")]
)
def test_a_printed_event_is_read_again(event: Event) -> None:
    assert read_text(str(event), log_model()) == [event]


def test_words_of_a_text_have_no_blanks() -> None:
    assert event_from_text("met she him", SLOTS) == Event("met", "she", "him")


def test_a_resource_in_the_place_of_an_activity_is_unknown() -> None:
    known = lookup(log_model())
    read = known.read(Event("Value 1", "Take"))
    assert read.words == (UNKNOWN, UNKNOWN)
    assert not read.head_known
    assert known.read(Event("Wait", "Wait")).words == ("Wait", "Wait")


def test_only_words_of_the_slot_are_suggested() -> None:
    model = log_model()
    document = Document("a", (Event("Wait", "Value 1"), Event("Take")))
    (ahead,) = next_events(model, [document], top=100)
    (each,) = every_prefix(model, [document], top=100)
    for heads in (ahead.heads, *(prefix.heads for prefix in each.prefixes)):
        assert {head.name for head in heads} == ACTIVITIES | {UNKNOWN}
    (filled,) = fill_documents(model, [Document("a", (Event(HOLE), *document.events))], top=100)
    written = generate(model, GenerateOptions(events=30, scripts=5, seed=1))
    events = [
        *(found.event for found in ahead.events),
        *(found.event for found in filled.holes[0].fillings),
        *(found.event for script in written for found in script.events),
    ]
    assert {event.head for event in events} == ACTIVITIES
    assert {event.padded(2)[1] for event in events} == RESOURCES


def test_likelihoods_do_not_know_of_it() -> None:
    model, other = log_model(SLOTS), log_model(SLOTS)
    other.vocabulary = Vocabulary(model.vocabulary.names, model.vocabulary.counts)
    document = Document("a", (Event("Wait", "Value 1"), Event("Take")))
    (mine,), (theirs,) = score_documents(model, [document]), score_documents(other, [document])
    assert mine.nats == pytest.approx(theirs.nats)
