"""Diagnostics of frames: the majority baseline, and warnings where frames carry little information."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.data import frame_counts
from ssdvae.data.batches import mask_frames
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.io.errors import UserError
from ssdvae.io.run import Run
from ssdvae.training.options import TrainOptions

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
    accuracy, by_head = scores.get("frame_accuracy"), scores.get("frame_commonest")
    if accuracy is not None and by_head is not None and accuracy <= by_head:
        yield (
            f"the inferred frames are no better than the majority baseline, the most frequent known frame of "
            f"the head: {accuracy:.1%} are right, by the baseline {by_head:.1%}\n"
            "train longer, or label more events"
        )
