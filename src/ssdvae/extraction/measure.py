"""How good guessed frames are: accuracy beside the most frequent frame, against coverage, and calibration."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ssdvae.calibration import calibration_error
from ssdvae.data.events import Document, Event
from ssdvae.extraction.classifier import FrameClassifier
from ssdvae.extraction.lexicon import most_probable

BINS = 10


class Answer(NamedTuple):
    """What was said of an event whose frame is known. An unknown verb is an error, of probability 0."""

    event: Event
    right: bool
    usual_right: bool
    """Whether the frame that the verb had most often in training is right."""
    probability: float
    ambiguous: bool


def answers(classifier: FrameClassifier, events: Iterable[Event]) -> Iterator[Answer]:
    for event in events:
        candidates = classifier.lexicon.candidates(event)
        guess, usual = most_probable(classifier.probabilities(event)), most_probable(candidates)
        frame, probability = guess or (None, 0.0)
        yield Answer(
            event,
            frame == event.frame,
            usual is not None and usual[0] == event.frame,
            float(probability or 0),
            len(candidates) > 1,
        )


def left_out(
    classifier: FrameClassifier, documents: Iterable[Document], group: Callable[[str], object]
) -> Iterator[Answer]:
    """Answers about running text by the classifier adapted to it, but for the documents of the same group.

    The group follows from a document's id.
    """
    groups: defaultdict[object, list[Event]] = defaultdict(list)
    for document in documents:
        groups[group(document.id)] += [event for event in document.events if event.frame is not None]
    for held, events in groups.items():
        others = [event for name, rest in groups.items() if name != held for event in rest]
        yield from answers(classifier.adapt(others), events)


def tenth(id: str) -> int:
    """One of ten groups, by the hash of a document's id."""
    return hashlib.sha256(id.encode()).digest()[-1] % 10


def measure(given: Sequence[Answer]) -> dict[str, dict[str, float]]:
    """Scores of all verbs, and of those with several candidate frames."""
    return {"all": _scores(given), "ambiguous": _scores([answer for answer in given if answer.ambiguous])}


def _scores(given: Sequence[Answer]) -> dict[str, float]:
    count = max(len(given), 1)
    guessed = [answer for answer in given if answer.probability > 0]
    return {
        "events": len(given),
        "accuracy": sum(answer.right for answer in given) / count,
        "most_frequent": sum(answer.usual_right for answer in given) / count,
        # Over what has a guess.
        "ece": calibration_error(
            np.array([answer.probability for answer in guessed]),
            np.array([answer.right for answer in guessed], dtype=bool),
            BINS,
        ),
    }


def coverage(given: Sequence[Answer], thresholds: Iterable[float]) -> list[tuple[float, float, float]]:
    """For each threshold, the share of events that keep their frame, and how many of these are right."""
    curve = []
    for threshold in thresholds:
        kept = [answer.right for answer in given if answer.probability >= threshold]
        curve.append((threshold, len(kept) / max(len(given), 1), sum(kept) / max(len(kept), 1)))
    return curve


def commonest(documents: Iterable[Document]) -> dict[str, Counter[str | None]]:
    """The frames of each verb, most frequent first; ``None`` counts the events that are latent."""
    frames: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    for document in documents:
        for event in document.events:
            frames[(event.lemma or event.head).lower()][event.frame] += 1
    return dict(sorted(frames.items(), key=lambda item: (-item[1].total(), item[0])))
