"""The best possible scores on the cloze are those of the world's own probabilities."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from ssdvae.data.events import SLOTS, Event
from ssdvae.data.items import ClozeItem, ItemBuilder, Script
from ssdvae.data.options import PrepareOptions
from ssdvae.storyworld.world import World, best_cloze

# Once somebody ran, the chances of common and rare are .9·⅙ : .1·1 = .6 : .4. So they slept with .6, and
# fell or rose with .2 each; after an unseen event, with .9, .05 and .05.
WORLD = World.parse(
    """
    pool men he him = adam
    scenario common*9
    role hero = men : hero
    start A
    A ran hid*5 | man | - | - | B
    B slept | man | - | - | A
    scenario rare
    role hero = men : hero
    start A
    A ran | man | - | - | C
    C fell rose | man | - | - | A
    """
)


def sequel(*verbs: str) -> Script:
    return tuple((verb, "man", "None", "None") for verb in verbs)


def log_prob(events: Script, unseen: int = 0) -> float:
    return WORLD.log_prob([Event(*words) for words in events], unseen)


def test_probabilities_are_those_found_by_hand() -> None:
    for verb, after_ran, by_itself in (("slept", 0.6, 0.9), ("fell", 0.2, 0.05), ("rose", 0.2, 0.05)):
        given = log_prob(sequel("ran", verb)) - log_prob(sequel("ran"))
        assert math.exp(given) == pytest.approx(after_ran)
        assert math.exp(log_prob(sequel(verb), unseen=1)) == pytest.approx(by_itself)


@pytest.mark.parametrize(
    ("truth", "distractors", "nll", "pmi"),
    [
        ("slept", ["fell"], 1, 0),  # .6 against .2, but .6/.9 against .2/.05
        ("fell", ["slept"], 0, 1),
        ("fell", ["rose"], 1 / 2, 1 / 2),  # ties share the credit
        ("fell", ["rose", "slept"], 0, 1 / 2),
        ("slept", ["rose", "fell"], 1, 0),
        ("slept", ["ran", "hid"], 1, 1),  # which cannot follow
    ],
)
def test_choices_are_those_found_by_hand(truth: str, distractors: list[str], nll: float, pmi: float) -> None:
    found = best_cloze(WORLD, [ClozeItem(sequel("ran", truth), tuple(sequel(verb) for verb in distractors))])
    assert found == {"nll": nll, "pmi": pmi, "items": 1, "impossible": 0}


def test_rounding_breaks_no_tie() -> None:
    """Every event is drawn alike, so the order of a sequel makes no difference but to the last bits."""
    step = "ran*.1 sat*.3 hid*.7 fell*1.3 | man | - | - |"
    alike = World.parse(
        f"pool men he him = adam\nscenario s\nrole hero = men : hero\nstart A\nA {step} B\nB {step} A\n"
    )
    orders = [sequel(*verbs) for verbs in itertools.permutations(("ran", "sat", "hid", "fell"))]
    logs = {alike.log_prob([Event(*words) for words in order]) for order in orders}
    assert len(logs) > 1
    items = [
        ClozeItem((*sequel("ran"), *truth), tuple(order for order in orders if order != truth))
        for truth in orders
    ]
    for item in items:
        assert best_cloze(alike, [item])["nll"] == best_cloze(alike, [item])["pmi"] == 1 / len(orders)


def test_what_the_world_cannot_tell_is_left_to_chance() -> None:
    foreign = ClozeItem(sequel("flew", "sang"), (sequel("sat"), sequel("dived"), sequel("ran")))
    found = best_cloze(WORLD, [foreign])
    assert found == {"nll": 0.25, "pmi": 0.25, "items": 1, "impossible": 1}
    assert math.isnan(best_cloze(WORLD, [])["pmi"])


def test_pmi_knows_how_often_it_is_right() -> None:
    """If distractors come from p(c), exp(pmi) is the chance of an option, up to a factor."""
    world = World.embedded()
    builder = ItemBuilder(PrepareOptions(cloze_options=3, cloze_events=3))
    for document in world.documents(400, seed=2):
        builder.add(document.id, [event.padded(len(SLOTS)) for event in document.events])
    items, chances = builder.cloze(), []
    for item in items:
        odds = []
        for option in item.options:
            events = [Event(*words) for words in (item.seed, *option)]
            odds.append(math.exp(world.log_prob(events) - world.log_prob(events[1:], unseen=1)))
        chances.append(max(odds) / sum(odds))
    found = best_cloze(world, items)
    deviation = math.sqrt(sum(chance * (1 - chance) for chance in chances)) / len(chances)
    assert found["items"] == 400
    assert abs(found["pmi"] - np.mean(chances)) < 4 * deviation
    assert found["nll"] < found["pmi"] + 4 * deviation
