"""Quality of predicted frames: accuracy beside the majority baseline, accuracy at coverage, calibration.

    python benchmarks/annotate.py EXAMPLES.jsonl LEXICON.json TEXTS.jsonl

trains a classifier on annotated examples and measures it on full texts, before and after adaptation to the
other texts (docs/extraction.md has the results).
"""

from __future__ import annotations

import hashlib
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdvae.data.events import Document, Event
from ssdvae.data.readers import read_documents
from ssdvae.evaluation.frames import calibration_error
from ssdvae.extraction.annotate import read_events
from ssdvae.extraction.classifier import FrameClassifier, most_likely, read_lexicon

BINS = 10
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9)


class Prediction(NamedTuple):
    """A prediction for an event with a gold frame. An unknown verb is an error with probability 0."""

    event: Event
    correct: bool
    majority_correct: bool  # of the most frequent frame of the verb in training
    probability: float
    ambiguous: bool  # the verb has several candidate frames


def predict(classifier: FrameClassifier, events: Iterable[Event]) -> Iterator[Prediction]:
    """Yield a prediction for each event."""
    for event in events:
        candidates = classifier.lexicon.candidates(event)
        predicted, majority = most_likely(classifier.probabilities(event)), most_likely(candidates)
        frame, probability = predicted or (None, 0.0)
        yield Prediction(
            event,
            frame == event.frame,
            majority is not None and majority[0] == event.frame,
            float(probability or 0),
            len(candidates) > 1,
        )


def cross_validate(
    classifier: FrameClassifier, documents: Iterable[Document], group: Callable[[str], object]
) -> Iterator[Prediction]:
    """Yield predictions for running text by the classifier adapted to the documents of all other groups.

    ``group`` maps the id of a document to its group.
    """
    groups: defaultdict[object, list[Event]] = defaultdict(list)
    for document in documents:
        groups[group(document.id)] += [event for event in document.events if event.frame is not None]
    for held_out, events in groups.items():
        others = [event for name, rest in groups.items() if name != held_out for event in rest]
        yield from predict(classifier.adapt(others), events)


def tenth_of(id: str) -> int:
    """Return one of ten groups, by the hash of a document's id."""
    return hashlib.sha256(id.encode()).digest()[-1] % 10


def collection_of(id: str) -> str:
    """Return the collection of a full text of FrameNet: ANC of ANC__110CYL067."""
    return id.partition("__")[0]


def scores(predictions: Sequence[Prediction]) -> dict[str, dict[str, float]]:
    """Return the scores of all verbs, and of those with several candidate frames."""
    ambiguous = [prediction for prediction in predictions if prediction.ambiguous]
    return {"all": _scores(predictions), "ambiguous": _scores(ambiguous)}


def _scores(predictions: Sequence[Prediction]) -> dict[str, float]:
    count = max(len(predictions), 1)
    predicted = [prediction for prediction in predictions if prediction.probability > 0]
    return {
        "events": len(predictions),
        "accuracy": sum(prediction.correct for prediction in predictions) / count,
        "majority": sum(prediction.majority_correct for prediction in predictions) / count,
        "ece": calibration_error(
            np.array([prediction.probability for prediction in predicted]),
            np.array([prediction.correct for prediction in predicted], dtype=bool),
            BINS,
        ),
    }


def accuracy_at_coverage(
    predictions: Sequence[Prediction], thresholds: Iterable[float]
) -> list[tuple[float, float, float]]:
    """Return for each threshold the fraction of events at or above it, and their accuracy."""
    curve = []
    for threshold in thresholds:
        covered = [prediction.correct for prediction in predictions if prediction.probability >= threshold]
        coverage = len(covered) / max(len(predictions), 1)
        curve.append((threshold, coverage, sum(covered) / max(len(covered), 1)))
    return curve


def frames_by_verb(documents: Iterable[Document]) -> dict[str, Counter[str | None]]:
    """Return the frames of each verb, the most frequent verb first; None counts latent events."""
    frames: defaultdict[str, Counter[str | None]] = defaultdict(Counter)
    for document in documents:
        for event in document.events:
            frames[(event.lemma or event.head).lower()][event.frame] += 1
    return dict(sorted(frames.items(), key=lambda item: (-item[1].total(), item[0])))


def main(examples: Path, lexicon: Path, texts: Path) -> None:
    """Print the scores on full texts: by examples alone, and adapted to other tenths and collections."""
    classifier = FrameClassifier.fit(read_events(examples), read_lexicon(lexicon).frames)
    documents = list(read_documents(texts))
    runs = {
        "examples": predict(classifier, (event for document in documents for event in document.events)),
        "and texts of other tenths": cross_validate(classifier, documents, tenth_of),
        "and texts of other collections": cross_validate(classifier, documents, collection_of),
    }
    for name, run in runs.items():
        predictions = list(run)
        print(name)
        for verbs, figures in scores(predictions).items():
            print(f"  {verbs:<10}", "  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
        for threshold, coverage, accuracy in accuracy_at_coverage(predictions, THRESHOLDS):
            print(f"  from {threshold}: {coverage:.0%} of the verbs, {accuracy:.1%} correct")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
