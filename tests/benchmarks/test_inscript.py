"""The parts of benchmarks/inscript.py: tasks without leaks, figures as defined, cells that are kept."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score

from benchmarks.inscript import (
    FOLDS,
    KINDS,
    Cells,
    Confusion,
    Story,
    Words,
    agreement,
    bigrams,
    bootstrap_weights,
    majority,
    make_task,
    next_figures,
    regression,
    run_cell,
    tagger,
)
from benchmarks.story_tagger import best_labels, log_partition
from ssdvae.data.events import Document, Event

STEPS = ("fill", "wash", "dry")


def story(number: int, scenario: str) -> Story:
    """Three steps in order, with an event that is none and one without a label."""
    events = [Event(step, "i", "tub", frame=f"ScrEv_{step}_{scenario}") for step in STEPS]
    events.insert(number % 3, Event("think", "i", frame=f"UnrelEv_{scenario}"))
    return Story.of(Document("s", (*events, Event("rain", "it"))), number)


STORIES = [story(number, "bath" if number % 2 else "cake") for number in range(60)]


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Words:
    path = tmp_path_factory.mktemp("vectors") / "v.txt"
    names = (*STEPS, "think", "i", "tub", "it")
    path.write_text("".join(f"{name} {n} {n % 2} 1\n" for n, name in enumerate(names)))
    return Words(STORIES, path)


def test_labels_that_are_no_step_lose_their_scenario() -> None:
    assert set(STORIES[1].gold) == {*(f"ScrEv_{step}_bath" for step in STEPS), "UnrelEv", None}
    document = STORIES[1].document(STORIES[1].gold)
    assert {event.padded(5)[-1] for event in document.events} == {"bath"}


def test_folds_part_the_stories_and_nothing_leaks() -> None:
    tested: list[str] = []
    for fold in range(FOLDS):
        task = make_task(STORIES, fold, "stories", 0.9)
        parts = [{s.id for s in part} for part in (task.train, task.valid, task.test)]
        assert sum(map(len, parts)) == len(set.union(*parts)) == len(STORIES)
        assert len(task.valid) == 5
        tested += [s.id for s in task.test]
    assert len(set(tested)) == len(tested) == len(STORIES)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_of_a_lower_share_are_among_those_of_a_higher(kind: str) -> None:
    low, high = (make_task(STORIES, 0, kind, share) for share in (0.3, 0.6))
    assert [s.id for s in low.train] == [s.id for s in high.train]
    counts = [sum(label is not None for labels in task.known for label in labels) for task in (low, high)]
    assert 0 < counts[0] < counts[1]
    for few, many, gold in zip(low.known, high.known, (s.gold for s in low.train), strict=True):
        assert all(a in (None, b) and b in (None, c) for a, b, c in zip(few, many, gold, strict=True))
        if kind == "stories":
            assert few in (gold, (None,) * len(gold))


def test_figures_are_those_of_scikit_learn() -> None:
    random = np.random.default_rng(1)
    names = sorted({label for s in STORIES for label in s.gold if label})
    guesses = [[str(random.choice(names)) for _ in s.gold] for s in STORIES]
    counts = Confusion(STORIES, guesses)
    pairs = [
        (label, guess)
        for s, own in zip(STORIES, guesses, strict=True)
        for label, guess in zip(s.gold, own, strict=True)
        if label
    ]
    gold, found = zip(*pairs, strict=True)
    steps = [name for name in names if name.startswith("ScrEv")]
    assert counts.accuracy() == pytest.approx(accuracy_score(gold, found))
    assert counts.macro_f1() == pytest.approx(f1_score(gold, found, labels=steps, average="macro"))
    weights = bootstrap_weights(len(STORIES), 50)
    assert (weights.sum(1) == len(STORIES)).all()
    assert counts.macro_f1(np.ones((1, len(STORIES))))[0] == pytest.approx(counts.macro_f1())
    row = weights[0]
    drawn = [place for place, times in enumerate(row) for _ in range(times)]
    again = Confusion([STORIES[i] for i in drawn], [guesses[i] for i in drawn])
    assert counts.macro_f1(weights)[0] == pytest.approx(again.macro_f1())


def test_agreement_is_within_a_scenario() -> None:
    """Classes that tell the scenario alone tell nothing; those of the labels tell all, by whatever name."""
    assert agreement(STORIES, [[s.scenario] * len(s.gold) for s in STORIES]) == pytest.approx(0, abs=1e-6)
    assert agreement(STORIES, [[hash(label) for label in s.gold] for s in STORIES]) == pytest.approx(1)


@pytest.mark.parametrize("labels", [2, 3])
def test_the_sums_of_the_crf_are_those_of_an_enumeration(labels: int) -> None:
    random = torch.Generator().manual_seed(labels)
    scores = torch.randn(2, 4, labels, generator=random, dtype=torch.float64)
    transitions = torch.randn(labels, labels, generator=random, dtype=torch.float64)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    for row, length in enumerate((4, 2)):
        paths = list(itertools.product(range(labels), repeat=length))
        values = torch.stack(
            [
                sum(
                    (scores[row, m, y] for m, y in enumerate(path)),
                    sum((transitions[a, b] for a, b in itertools.pairwise(path)), torch.zeros(())),
                )
                for path in paths
            ]
        )
        assert torch.isclose(log_partition(scores, transitions, mask)[row], values.logsumexp(0))
        assert best_labels(scores, transitions, mask)[row] == list(paths[int(values.argmax())])


def test_the_plain_systems_learn_what_heads_tell(words: Words) -> None:
    """Each head has one label in a scenario, so that all but the event without a label is told by it."""
    task = make_task(STORIES, 0, "events", 0.5)
    quick = {"epochs": 15, "hidden": 16, "dropout": 0.0, "learning_rate": 0.02}
    for found in (majority(task), regression(task, words), tagger(task, words, 1, **quick)):
        assert [len(own) for own in found] == [len(s.gold) for s in task.test]
        assert Confusion(task.test, found).accuracy() > 0.95


def test_bigrams_know_an_order_that_never_changes() -> None:
    assert bigrams(make_task(STORIES, 0, "stories", 0.5)) == {"next_accuracy": 1, "next_mrr": 1}
    assert next_figures([1, 2, 10**9])["next_mrr"] == pytest.approx(0.5)


def test_a_cell_is_computed_once(tmp_path: Path, words: Words) -> None:
    key = (0, "stories", 0.5, "majority", 1)
    run_cell(Cells(tmp_path), STORIES, words, tmp_path, key)
    before = (tmp_path / "cells.csv").read_text()
    cells = Cells(tmp_path)
    assert cells.has(*key)
    run_cell(cells, STORIES, words, tmp_path, key)
    assert (tmp_path / "cells.csv").read_text() == before
    assert cells.rows[0]["macro_f1"] == "1.0"
