"""Whether confidence can be taken at its word."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 15


def reliability(
    confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS
) -> list[dict[str, Any]]:
    """Mean confidence and accuracy of each bin of equal width that has any events."""
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    events, sure, correct = (np.bincount(place, values, bins) for values in (None, confidence, right))
    return [
        {"events": int(n), "confidence": float(c / n), "accuracy": float(r / n)}
        for n, c, r in zip(events, sure, correct, strict=True)
        if n
    ]


def calibration_error(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Expected calibration error: how far confidence is from accuracy, over the bins."""
    gaps = (b["events"] * abs(b["confidence"] - b["accuracy"]) for b in reliability(confidence, right, bins))
    return float(sum(gaps) / max(len(confidence), 1))
