"""Quality of predicted frames: accuracy beside the majority baseline, accuracy at coverage, calibration.

    python benchmarks/annotate.py FRAMENET [--encoder minilm --save FOLDER]

trains an annotator on the examples and full texts of a release of FrameNet without the texts that
``is_held_out`` chooses by a hash, and measures it on those. A sentence of a held-out text is left out of the
examples too. With ``--encoder`` it is the pretrained encoder, measured with sentences and on bare events;
without, the small classifier. A stopped training resumes from FOLDER; a finished one is only measured.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ssdvae.data.events import Document, Event
from ssdvae.evaluation.frames import calibration_error
from ssdvae.extraction.classifier import FrameClassifier, Lexicon, Ranking, ranked
from ssdvae.extraction.encoder import EncoderAnnotator, train_encoder
from ssdvae.extraction.framenet import read_framenet
from ssdvae.io.progress import resolve

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
    events = list(events)
    yield from judge(classifier.lexicon, events, classifier.predict(events))


def judge(lexicon: Lexicon, events: Sequence[Event], predictions: Sequence[Ranking]) -> Iterator[Prediction]:
    """Compare the predicted frame of each event with its gold frame."""
    for event, predicted in zip(events, predictions, strict=True):
        candidates = lexicon.candidates(event)
        majority = ranked(candidates, 1)
        frame, probability = predicted[0] if predicted else (None, 0.0)
        yield Prediction(
            event,
            frame == event.frame,
            bool(majority) and majority[0][0] == event.frame,
            probability,
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


HELD_OUT = 4
"""One full text of so many is held out."""


def is_held_out(id: str) -> bool:
    """Tell whether a full text is measured, and not trained on."""
    return hashlib.sha256(id.encode()).digest()[0] % HELD_OUT == 0


def split_framenet(name: str) -> tuple[list[Event], list[Document], list[Event], dict[str, list[str]]]:
    """Return examples and full texts to train on, held-out verbs, and the frames of each verb."""
    examples, texts, candidates = read_framenet(name)
    held_out = [event for text in texts if is_held_out(text.id) for event in text.events]
    sentences = {_sentence(event) for event in held_out}
    train = [event for event in examples if _sentence(event) not in sentences]
    return train, [text for text in texts if not is_held_out(text.id)], held_out, candidates


def _sentence(event: Event) -> str:
    return " ".join((event.origin.text or "" if event.origin else "").split())


def without_sentence(event: Event) -> Event:
    """Return a bare event: an encoder reads its words alone."""
    return event.changed(origin=None)


def interval(correct: Sequence[bool], seed: int = 1, draws: int = 2_000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean."""
    values, random = np.array(correct, dtype=float), np.random.default_rng(seed)
    means = [values[random.integers(0, len(values), len(values))].mean() for _ in range(draws)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def report(name: str, predictions: Sequence[Prediction], seconds: float) -> None:
    """Print the scores of some predictions."""
    print(f"{name}: {len(predictions) / seconds:,.0f} events a second")
    for verbs, figures in scores(predictions).items():
        print(f"  {verbs:<10}", "  ".join(f"{key} {value:.4g}" for key, value in figures.items()))
    low, high = interval([prediction.correct for prediction in predictions])
    print(f"  accuracy between {low:.1%} and {high:.1%}")
    for threshold, coverage, accuracy in accuracy_at_coverage(predictions, THRESHOLDS):
        print(f"  from {threshold}: {coverage:.0%} of the verbs, {accuracy:.1%} correct", flush=True)


def main(framenet: str, encoder: str | None = None, save: Path | None = None) -> None:
    """Print the scores of an annotator on held-out full texts."""
    events, texts, held_out, candidates = split_framenet(framenet)
    print(f"{len(events):,} examples, {len(texts)} texts; held out: {len(held_out):,} verbs", flush=True)
    annotator: FrameClassifier | EncoderAnnotator
    if encoder is None:
        annotator = FrameClassifier.fit(events, candidates)
        annotator = annotator.adapt(event for text in texts for event in text.events)
    elif save is not None and (save / "config.json").is_file():
        annotator = EncoderAnnotator.load(save)
    else:
        annotator = train_encoder(events, texts, candidates, encoder, save, resolve(True))
        if save is not None:
            annotator.save(save)
    kinds = {"bare events": [without_sentence(event) for event in held_out]}
    if encoder is not None:
        kinds = {"sentences": held_out, **kinds}
    for name, kind in kinds.items():
        start = time.perf_counter()
        found = annotator.predict(kind)
        seconds = time.perf_counter() - start
        report(name, list(judge(annotator.lexicon, kind, found)), seconds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("framenet")
    parser.add_argument("--encoder")
    parser.add_argument("--save", type=Path)
    main(**vars(parser.parse_args()))
