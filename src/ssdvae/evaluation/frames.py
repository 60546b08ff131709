"""Frame prediction: accuracy, macro precision and F1, calibration, and the confusions that matter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.calibration import calibration_error, reliability
from ssdvae.data.batches import Batch
from ssdvae.data.vocabulary import Inventory
from ssdvae.models.base import FramePosterior

CONFUSIONS = 20


class FramePredictions:
    """The known and the inferred frame of every event that has a known one, with the model's confidence."""

    def __init__(self) -> None:
        self._parts: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []

    def add(self, beliefs: FramePosterior, batch: Batch) -> None:
        labelled = beliefs.mask & (batch.frames >= 0)
        best = beliefs.log_q[labelled].max(-1)
        confidence = best.values.double().exp()
        self._parts.append(
            (batch.frames[labelled].cpu().numpy(), best.indices.cpu().numpy(), confidence.cpu().numpy())
        )

    def scores(self, frames: Inventory) -> dict[str, Any]:
        """Macro figures are over the frames that occur in the reference (SPEC of the paper's table 3)."""
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
    """The most frequent mistakes, first the most frequent."""
    wrong = known != inferred
    pairs, counts = np.unique(np.stack([known[wrong], inferred[wrong]], 1), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:CONFUSIONS]
    return [
        {"known": frames.name(int(k)), "inferred": frames.name(int(i)), "count": int(count)}
        for (k, i), count in zip(pairs[order], counts[order], strict=True)
    ]
