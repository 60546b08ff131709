"""The default model reads a story as well in the middle of a long document as by itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from ssdvae.data.events import Document
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.inference.posterior import infer_documents
from ssdvae.models.base import Model
from ssdvae.storyworld.world import World
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import train

LONG = 40


def trained(folder: Path, documents: int, **settings: object) -> Model:
    events = folder / "events.jsonl"
    write_jsonl(events, World.embedded().documents(documents, seed=1))
    corpus = prepare(events, folder / "corpus", PrepareOptions(vocabulary=2_000, cloze_items=0))
    sizes = {"embedding": 64, "layers": 1, "batch": 32, **settings}
    chosen = TrainOptions.chosen({"preset": None, "observe": 0.9, **sizes})
    return Model.read(train(corpus, folder / "run", chosen).folder)


def right(model: Model, documents: Sequence[Document]) -> list[bool]:
    """Of all events, one document after another."""
    found = infer_documents(model, documents)
    return [event.frame == event.gold for document in found for event in document.events]


def joined(stories: Sequence[Document]) -> list[Document]:
    """All events of the stories, in documents of 40."""
    events = [event for story in stories for event in story.events]
    return [
        Document(str(start), tuple(events[start : start + LONG])) for start in range(0, len(events), LONG)
    ]


def test_stories_are_read_as_well_in_a_long_document(tmp_path: Path) -> None:
    """A small model of few documents: within 3 points in the mean, where losing its place costs 40."""
    model = trained(tmp_path, 1_500, hidden=64, epochs=3, learning_rate=8e-3)
    stories = list(World.embedded().documents(300, seed=2))
    alone, together = right(model, stories), right(model, joined(stories))
    assert np.mean(alone) > 0.6
    assert np.mean(together) > np.mean(alone) - 0.03


@pytest.mark.journey
def test_every_place_of_a_story_is_read_as_well_in_a_long_document(tmp_path: Path) -> None:
    """Within 3 points in the mean and 4 at each place of 2,500 stories, though nothing tells where one story
    ends and the next begins; and alone, within 5 points of the best possible model at each place.
    """
    model = trained(tmp_path, 14_000, hidden=128, epochs=1, learning_rate=5e-3)
    stories, world = list(World.embedded().documents(2_500, seed=777)), World.embedded()
    place = np.array([number for story in stories for number in range(len(story.events))])
    alone, together = (np.array(right(model, some)) for some in (stories, joined(stories)))
    best = np.array(
        [
            world.frames[guess] == event.frame
            for story in stories
            for guess, event in zip(world.frame_posterior(story.events).argmax(-1), story.events, strict=True)
        ]
    )
    assert together.mean() > alone.mean() - 0.03
    for number in range(place.max() + 1):
        here = place == number
        assert together[here].mean() > alone[here].mean() - 0.04
        assert alone[here].mean() > best[here].mean() - 0.05
