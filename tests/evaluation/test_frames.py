"""Frame prediction: figures against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ssdvae.data.batches import Batch
from ssdvae.data.vocabulary import Inventory
from ssdvae.evaluation.frames import FramePredictions, calibration_error, reliability
from ssdvae.models.latents import FramePosterior

FRAMES = Inventory(["A", "B", "C", "D"], [1] * 4)


def predictions(known: list[int], inferred: list[int], confidence: float = 0.7) -> FramePredictions:
    """One event a document."""
    size = len(known)
    q = torch.full((size, 1, 4), (1 - confidence) / 3, dtype=torch.float64)
    q[torch.arange(size), 0, torch.tensor(inferred)] = confidence
    frames = torch.tensor(known)[:, None]
    mask = torch.ones(size, 1, dtype=torch.bool)
    result = FramePredictions()
    result.add(FramePosterior(q.log(), mask), Batch(torch.zeros(size, 1, 4).long(), frames, frames, mask))
    return result


def test_macro_figures_are_means_over_the_frames_of_the_reference() -> None:
    known, inferred = [0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 3, 3]
    scores = predictions(known, inferred).scores(FRAMES)
    precision = [2 / 2, 1 / 2, 0]  # of A, B and C; D is never right to infer and has no class of its own
    recall = [2 / 3, 1 / 2, 0]
    f1 = [2 * p * r / (p + r) if p + r else 0 for p, r in zip(precision, recall, strict=True)]
    assert scores["frame_accuracy"] == pytest.approx(3 / 6)
    assert scores["frame_precision"] == pytest.approx(np.mean(precision))
    assert scores["frame_recall"] == pytest.approx(np.mean(recall))
    assert scores["frame_f1"] == pytest.approx(np.mean(f1))
    assert scores["frame_events"] == 6


def test_confusions_come_most_frequent_first() -> None:
    scores = predictions([0, 0, 0, 1, 2], [1, 1, 0, 3, 3]).scores(FRAMES)
    first, *rest = scores["frame_confusions"]
    assert first == {"known": "A", "inferred": "B", "count": 2}
    assert [c["count"] for c in rest] == [1, 1]
    assert predictions([1], [1]).scores(FRAMES)["frame_confusions"] == []


def test_calibration_error_is_the_gap_between_confidence_and_accuracy() -> None:
    confidence = np.array([0.9] * 10 + [0.6] * 10)
    right = np.array([True] * 9 + [False] + [True] * 3 + [False] * 7)
    assert calibration_error(confidence, right) == pytest.approx((0 + 0.3) / 2)
    assert calibration_error(np.ones(4), np.ones(4, dtype=bool)) == 0
    assert calibration_error(np.array([0.9, 0.3]), np.array([True, False])) == pytest.approx(0.2)
    assert calibration_error(np.zeros(0), np.zeros(0, dtype=bool)) == 0
    assert predictions([0] * 4, [0, 0, 0, 1], 0.75).scores(FRAMES)["frame_ece"] == pytest.approx(0)


def test_the_bins_of_the_reliability_plot_hold_every_event_once() -> None:
    confidence = np.array([0.0, 0.31, 0.32, 0.95, 1.0])
    right = np.array([False, True, False, True, True])
    bins = reliability(confidence, right)
    assert [b["events"] for b in bins] == [1, 2, 2]  # fifteen bins: 0.31 and 0.32 are in the fifth
    assert [b["accuracy"] for b in bins] == [0, 0.5, 1]
    assert [b["confidence"] for b in bins] == pytest.approx([0, 0.315, 0.975])


def test_events_without_a_known_frame_are_left_out() -> None:
    assert predictions([-1, 0, -1], [1, 0, 1]).scores(FRAMES)["frame_accuracy"] == 1
    assert predictions([-1], [1]).scores(FRAMES) == {}
