"""How good guessed frames are: accuracy beside the most frequent frame, and calibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ssdvae.calibration import calibration_error
from ssdvae.data.events import Event
from ssdvae.extraction.classifier import FrameClassifier
from ssdvae.extraction.lexicon import most_probable

BINS = 10

Answer = tuple[bool, bool, float]
"""Whether the classifier is right, whether the most frequent frame is, and the classifier's probability."""


def measure(classifier: FrameClassifier, events: Iterable[Event]) -> dict[str, dict[str, float]]:
    """Scores on events with gold frames: of all verbs, and of those with several candidate frames.

    ``most_frequent`` is the accuracy of the frame that the verb had most often in training. An unknown verb
    is an error of both. ``ece`` is the expected calibration error over what has a guess.
    """
    answers: list[Answer] = []
    ambiguous: list[Answer] = []
    for event in events:
        guess = most_probable(classifier.probabilities(event))
        usual = most_probable(classifier.lexicon.candidates(event))
        if guess is None or usual is None:
            answers.append((False, False, 0.0))
            continue
        answer = (guess[0] == event.frame, usual[0] == event.frame, float(guess[1] or 0))
        answers.append(answer)
        if len(classifier.lexicon.candidates(event)) > 1:
            ambiguous.append(answer)
    return {"all": _scores(answers), "ambiguous": _scores(ambiguous)}


def _scores(answers: Sequence[Answer]) -> dict[str, float]:
    count = max(len(answers), 1)
    return {
        "events": len(answers),
        "accuracy": sum(right for right, _, _ in answers) / count,
        "most_frequent": sum(usual for _, usual, _ in answers) / count,
        "ece": calibration_error(
            np.array([p for _, _, p in answers if p > 0]),
            np.array([right for right, _, p in answers if p > 0], dtype=bool),
            BINS,
        ),
    }
