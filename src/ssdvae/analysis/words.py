"""Words and frames by the posterior of the model, summed over the events of a split.

With q_e(f) the probability of frame f for event e, and N(w) the events that have the word w in a slot (by
default as their head):

    p(f | w) = Σ_{e: w} q_e(f) / N(w)          the mean posterior of the frame, over the word's occurrences
    p(w | f) = Σ_{e: w} q_e(f) / Σ_e q_e(f)    the share of the word among the events of the frame
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from ssdvae.data.batches import Batch
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.latents import FramePosterior

Array = NDArray[np.float64]
Shares = list[tuple[str, float]]
"""Names with their probabilities, the largest first."""


@dataclass(frozen=True)
class WordPosteriors:
    """Expected counts of events by word in the slot and frame."""

    vocabulary: Vocabulary
    frames: Inventory
    joint: Array  # V F
    word_counts: NDArray[np.int64]  # V: events that have the word in the slot

    @cached_property
    def frame_counts(self) -> Array:
        """Expected events of each frame (F)."""
        return np.asarray(self.joint.sum(0))

    def frames_of(self, word: str, k: int = 5) -> Shares:
        """Return the frames of a word by p(frame | word)."""
        number = self.vocabulary.find(word, "word")
        if not self.word_counts[number]:
            raise UserError(
                f"the word {word!r} is in no event of these documents in the slot that is looked at\n"
                "by default that is the head of an event; --slot names another"
            )
        return _top(self.joint[number] / self.word_counts[number], self.frames, k)

    def words_of(self, frame: str, k: int = 5) -> Shares:
        """Return the words of a frame by p(word | frame)."""
        number = self.frames.find(frame, "frame")
        if not self.frame_counts[number]:
            raise UserError(f"no event of these documents may be {frame}")
        return _top(self.joint[:, number] / self.frame_counts[number], self.vocabulary, k)

    def times_of_word(self, word: str) -> int:
        return int(self.word_counts[self.vocabulary.find(word, "word")])

    def times_of_frame(self, frame: str) -> float:
        return float(self.frame_counts[self.frames.find(frame, "frame")])


def _top(shares: Array, names: Inventory, k: int) -> Shares:
    best = np.argsort(-shares, kind="stable")[:k]
    return [(names.name(int(number)), float(shares[number])) for number in best]


class WordPosteriorSums:
    """Sums behind ``WordPosteriors``; their size does not depend on the number of documents."""

    def __init__(self, model: Model, slot: int = 0) -> None:
        self.model, self.slot = model, slot
        self.joint = torch.zeros(len(model.vocabulary), len(model.frames), dtype=torch.float64)
        self.counts = torch.zeros(len(model.vocabulary), dtype=torch.long)

    def add(self, posterior: FramePosterior, batch: Batch) -> None:
        words = batch.tokens[..., self.slot][batch.mask].cpu()
        self.joint.index_add_(0, words, posterior.log_q[batch.mask].double().exp().cpu())
        self.counts += torch.bincount(words, minlength=len(self.counts))

    def result(self) -> WordPosteriors:
        return WordPosteriors(
            self.model.vocabulary, self.model.frames, self.joint.numpy(), self.counts.numpy()
        )
