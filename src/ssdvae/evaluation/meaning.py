"""Do the frames mean something? What they carry, what counting would get, and warnings where it is little."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.config import TrainSettings
from ssdvae.data.batches import mask_frames
from ssdvae.data.commonest import commonest_accuracy, commonest_frames
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.errors import UserError
from ssdvae.runs import Run

LITTLE = 0.1
"""Nats of information below which frames carry next to nothing: a yes-no answer has 0.69."""


def commonest_observed(documents: Documents, settings: TrainSettings, words: int) -> NDArray[np.int64]:
    """The commonest frame of each word as a head, among those that a run observes in its training split."""
    observed = mask_frames(documents, settings.observe, settings.seed)
    return commonest_frames(documents.tokens[..., 0], observed, words)


def commonest_of_run(folder: Path, corpus: Corpus) -> NDArray[np.int64] | None:
    """The same for a run folder; None if its training split is not there any more.

    ``corpus`` is asked first: that of the run may have moved.
    """
    try:
        run = Run(folder)
        own, settings = run.config()
        trained_on = run.state().corpus
        if corpus.fingerprint != trained_on:
            corpus = Corpus(own)
        if corpus.fingerprint != trained_on:
            return None
        return commonest_observed(corpus.split("train"), settings, len(corpus.vocabulary))
    except UserError:
        return None


def accuracy_by_head(table: NDArray[np.int64] | None, documents: Documents) -> float | None:
    """What the commonest observed frame of each head gets on a split."""
    return None if table is None else commonest_accuracy(table, documents.tokens[..., 0], documents.frames)


def doubts(scores: Mapping[str, Any], frames: int) -> Iterator[str]:
    """What speaks against the frames of a model with ``frames`` of them, in words."""
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
            f"the inferred frames are no better than the commonest known frame of the head: {accuracy:.1%} "
            f"are right, by counting {by_head:.1%}\n"
            "train longer, or label more events"
        )
