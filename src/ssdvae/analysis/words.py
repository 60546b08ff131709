"""Words and frames by what the model believes: the sums of what `infer` says of each event.

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

from ssdvae.answers.beliefs import accumulate_over_split
from ssdvae.config import ExplainSettings
from ssdvae.data.batches import Batch
from ssdvae.data.corpus import Documents
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import UserError
from ssdvae.models.base import FramePosterior, Model
from ssdvae.progress import Advance, no_advance

Array = NDArray[np.float64]
Shares = list[tuple[str, float]]
"""Names with their probabilities, the largest first."""


@dataclass(frozen=True)
class WordBeliefs:
    """Expected numbers of events that have a word in the slot and a frame."""

    vocabulary: Vocabulary
    frames: Inventory
    joint: Array  # V F
    word_counts: NDArray[np.int64]  # V: events that have the word in the slot

    @cached_property
    def frame_counts(self) -> Array:
        """F: how many events are expected to have each frame."""
        return np.asarray(self.joint.sum(0))

    def frames_of(self, word: str, k: int = 5) -> Shares:
        """p(frame | word)."""
        number = self.vocabulary.find(word, "word")
        if not self.word_counts[number]:
            raise UserError(
                f"the word {word!r} is in no event of these documents in the slot that is looked at\n"
                "by default that is the head of an event; --slot names another"
            )
        return _top(self.joint[number] / self.word_counts[number], self.frames, k)

    def words_of(self, frame: str, k: int = 5) -> Shares:
        """p(word | frame)."""
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


class WordBeliefSums:
    """The sums, whose size does not depend on the number of documents."""

    def __init__(self, model: Model, slot: int = 0) -> None:
        self.model, self.slot = model, slot
        self.joint = torch.zeros(len(model.vocabulary), len(model.frames), dtype=torch.float64)
        self.counts = torch.zeros(len(model.vocabulary), dtype=torch.long)

    def add(self, beliefs: FramePosterior, batch: Batch) -> None:
        words = batch.tokens[..., self.slot][batch.mask].cpu()
        self.joint.index_add_(0, words, beliefs.log_q[batch.mask].double().exp().cpu())
        self.counts += torch.bincount(words, minlength=len(self.counts))

    def result(self) -> WordBeliefs:
        return WordBeliefs(self.model.vocabulary, self.model.frames, self.joint.numpy(), self.counts.numpy())


def word_beliefs(
    model: Model,
    documents: Documents,
    settings: ExplainSettings | None = None,
    advance: Advance = no_advance,
) -> WordBeliefs:
    """What a model believes of the heads of a split, with no frame observed."""
    return accumulate_over_split(WordBeliefSums, model, documents, settings, advance)
