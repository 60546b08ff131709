"""Frame prediction: accuracy, macro precision and F1, calibration, and the confusions that matter.

Beside it the majority baseline, and warnings where frames carry little information.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.data import frame_counts
from ssdvae.data.batches import Batch, mask_frames
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.vocabulary import Inventory
from ssdvae.evaluation.task import FRAMES, Data, Figure, Floor, Result, Task
from ssdvae.io.errors import UserError
from ssdvae.io.run import Run
from ssdvae.models.latents import FramePosterior
from ssdvae.training.options import TrainOptions

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation


BINS = 15


def reliability(
    confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS
) -> list[dict[str, Any]]:
    """Return the mean confidence and accuracy of each bin of equal width that is not empty."""
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    events, sure, correct = (np.bincount(place, values, bins) for values in (None, confidence, right))
    return [
        {"events": int(n), "confidence": float(c / n), "accuracy": float(r / n)}
        for n, c, r in zip(events, sure, correct, strict=True)
        if n
    ]


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Return the expected calibration error: the mean |confidence − accuracy| over the bins."""
    gaps = (b["events"] * abs(b["confidence"] - b["accuracy"]) for b in reliability(confidence, right, bins))
    return float(sum(gaps) / max(len(confidence), 1))


CONFUSIONS = 20


class FramePredictions:
    """The known and inferred frames of labelled events, with the confidence of the model."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []

    def add(self, posterior: FramePosterior, batch: Batch) -> None:
        labelled = posterior.mask & (batch.frames >= 0)
        best = posterior.log_q[labelled].max(-1)
        confidence = best.values.double().exp()
        self._parts.append(
            (batch.frames[labelled].cpu().numpy(), best.indices.cpu().numpy(), confidence.cpu().numpy())
        )

    def scores(self, frames: Inventory) -> dict[str, Any]:
        """Return the scores; macro figures are over the frames that occur in the reference (table 3)."""
        if not sum(len(known) for known, *_ in self._parts):
            return {}
        # Not at the top: it is slow to import, and most measurements go without it.
        from sklearn.metrics import adjusted_mutual_info_score, precision_recall_fscore_support

        known, inferred, confidence = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        precision, recall, f1, _ = precision_recall_fscore_support(
            known, inferred, labels=np.unique(known), average="macro", zero_division=0
        )
        return {
            "frame_accuracy": float((known == inferred).mean()),
            "frame_precision": float(precision),
            "frame_recall": float(recall),
            "frame_f1": float(f1),
            "frame_ami": float(adjusted_mutual_info_score(known, inferred)),
            "frame_ece": calibration_error(confidence, known == inferred),
            "frame_reliability": reliability(confidence, known == inferred),
            "frame_events": len(known),
            "frame_confusions": confusions(known, inferred, frames),
        }


def confusions(
    known: NDArray[np.int64], inferred: NDArray[np.int64], frames: Inventory
) -> list[dict[str, Any]]:
    """Return the most frequent confusions."""
    wrong = known != inferred
    pairs, counts = np.unique(np.stack([known[wrong], inferred[wrong]], 1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CONFUSIONS]
    return [
        {"known": frames.name(int(k)), "inferred": frames.name(int(i)), "count": int(count)}
        for (k, i), count in zip(pairs[order], counts[order], strict=True)
    ]


LITTLE = 0.1
"""Nats of information below which frames carry next to nothing: a yes-no answer has 0.69."""


def majority_frames(documents: Documents, settings: TrainOptions, words: int) -> NDArray[np.int64]:
    """Return the majority frame of each word as a head, among the frames that a run observes."""
    observed = mask_frames(documents, settings.observe, settings.seed)
    return frame_counts.majority_frames(documents.tokens[..., 0], observed, words)


def majority_frames_of_run(folder: Path, corpus: Corpus) -> NDArray[np.int64] | None:
    """Return the majority frames of a run folder; None if its training split is gone.

    ``corpus`` is tried first: that of the run may have moved.
    """
    try:
        run = Run(folder)
        own, settings = run.config()
        trained_on = run.state().corpus
        if corpus.fingerprint != trained_on:
            corpus = Corpus(own)
        if corpus.fingerprint != trained_on:
            return None
        return majority_frames(corpus.split("train"), settings, len(corpus.vocabulary))
    except UserError:
        return None


def majority_accuracy(table: NDArray[np.int64] | None, documents: Documents) -> float | None:
    """Return the accuracy of the majority frame of each head on a split."""
    if table is None:
        return None
    return frame_counts.majority_accuracy(table, documents.tokens[..., 0], documents.frames)


def warnings_for(scores: Mapping[str, Any], frames: int) -> Iterator[str]:
    """Yield warnings about the frames of a model that has ``frames`` of them."""
    information = scores.get("latent_information")
    if information is not None and frames > 1 and information < LITTLE:
        yield (
            f"the frames carry next to nothing: {information:.2g} nats of information about their events, "
            f"where {math.log(frames):.1f} are possible\n"
            "do not read anything into them; label more events, observe more of the labels (--observe), or "
            "give ssdvae-exact a --lexicon"
        )
    accuracy, by_head = scores.get("frame_accuracy"), scores.get("frame_majority")
    if accuracy is not None and by_head is not None and accuracy <= by_head:
        yield (
            f"the inferred frames are no better than the majority baseline, the most frequent known frame of "
            f"the head: {accuracy:.1%} are right, by the baseline {by_head:.1%}\n"
            "train longer, or label more events"
        )


NAME = "frames"


def run(evaluation: Evaluation, data: Data) -> Result | None:
    """Return None if no event of the split has a known frame."""
    predictions: FramePredictions = evaluation.split_pass.observers[NAME]
    scores = predictions.scores(evaluation.model.frames)
    if not scores:
        return None
    scores["frame_majority"] = majority_accuracy(evaluation.majority(), evaluation.documents)
    for name in ("frame_accuracy_reader", "frame_accuracy_exact", "latent_information"):
        if (value := evaluation.split_pass.scores[name]) is not None:
            scores[name] = value
    return Result(scores["frame_events"], scores)


TASK = Task(
    name=NAME,
    title="Frame prediction",
    explanation="Higher is better, except for the calibration error; precision and F1 are macro. No frame "
    "was observed. The majority baseline is the frame that the head of an event had most often in training, "
    "as far as frames were observed. The paper classifies single events: only a "
    "corpus of one event a document compares with it. Its classifiers, unlike SSDVAE, learn from the frames "
    "of all training events. Agreement is the adjusted mutual information of inferred and known frames: 1 if "
    "one tells the other, by whatever name, and 0 by chance.",
    figures=(
        Figure(
            "frame_accuracy",
            "accuracy",
            "higher",
            share=True,
            paper="3",
            headline="frames that are right",
            floor=Floor("frame_majority", "majority baseline"),
        ),
        Figure(
            "frame_majority",
            "majority baseline",
            share=True,
            compared=False,
            note="what the head's most frequent frame gets",
        ),
        Figure("frame_precision", "macro precision", "higher", share=True, paper="3"),
        Figure("frame_f1", "macro F1", "higher", share=True, paper="3"),
        Figure("frame_ami", "agreement (AMI)", "higher", compared=False),
        Figure("frame_ece", "calibration error", "lower", share=True, compared=False),
        Figure("frame_accuracy_reader", "by the reader alone", "higher", share=True, compared=False),
        Figure("frame_accuracy_exact", "by the exact posterior alone", "higher", share=True, compared=False),
    ),
    run=run,
    default=True,
    reproduced=True,
    needs=(FRAMES,),
    settings=(
        "events",
        "eval_batch",
    ),
    observer=lambda model: FramePredictions(),
    single_events=True,
)
