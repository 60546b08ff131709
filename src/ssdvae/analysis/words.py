"""Words and frames by the posterior of the model, summed over the events of a split.

With q_e(f) the probability of frame f for event e, and N(w) the events that have the word w in a slot (by
default as their head):

    p(f | w) = Σ_{e: w} q_e(f) / N(w)          the mean posterior of the frame, over the word's occurrences
    p(w | f) = Σ_{e: w} q_e(f) / Σ_e q_e(f)    the share of the word among the events of the frame

``Clusters`` are the paper's soft clusters of words and frames (its tables 2 and 9).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.data.batches import Batch
from ssdvae.data.vocabulary import Inventory
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.latents import FramePosterior

Array = NDArray[np.float64]
Shares = list[tuple[str, float]]
"""Names with their probabilities, the largest first."""


class WordPosteriors:
    """Expected counts of events by word in the slot and frame, summed over batches.

    Their size does not depend on the number of documents.
    """

    def __init__(self, model: Model, slot: int = 0) -> None:
        self.vocabulary, self.frames, self.slot = model.vocabulary, model.frames, slot
        self.joint: Array = np.zeros((len(self.vocabulary), len(self.frames)))
        self.word_counts = np.zeros(len(self.vocabulary), np.int64)  # events that have the word in the slot

    def add(self, posterior: FramePosterior, batch: Batch) -> None:
        words = batch.tokens[..., self.slot][batch.mask].cpu()
        q = posterior.log_q[batch.mask].double().exp().cpu()
        torch.from_numpy(self.joint).index_add_(0, words, q)
        self.word_counts += np.bincount(words, minlength=len(self.word_counts))

    @cached_property
    def frame_counts(self) -> Array:
        """Expected events of each frame (F), once all batches are added."""
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


def _top(shares: NDArray[Any], names: Inventory, k: int) -> Shares:
    best = np.argsort(-shares, kind="stable")[:k]
    return [(names.name(int(number)), float(shares[number])) for number in best]


Counts = NDArray[np.int64]


class Clusters:
    """The means of β_enc and β_dec over a split; their size does not depend on the number of documents.

    ``slot_counts`` (V S) tell how often a word is the head, the first argument, …; ``frame_counts`` (F) how
    many events are inferred as each frame; ``confusion`` (F F) has the events by known frame (row) and
    inferred frame (column). What never occurs has no mean: NaN, and the count 0.
    """

    def __init__(self, model: Model) -> None:
        self.model, self.vocabulary, self.frames = model, model.vocabulary, model.frames
        V, F = len(model.vocabulary), len(model.frames)
        self.slot_counts: Counts = np.zeros((V, len(model.slots)), np.int64)
        self.frame_counts: Counts = np.zeros(F, np.int64)
        self.confusion: Counts = np.zeros((F, F), np.int64)
        self._states = torch.zeros(V, 0, dtype=torch.float64)  # V h
        self._memory = torch.zeros(F, 0, dtype=torch.float64)  # F e

    @torch.no_grad()
    def add(self, posterior: FramePosterior, batch: Batch) -> None:
        clusters, mask = posterior.clusters, batch.mask
        if clusters is None:
            raise UserError(f"{self.model.config.model} has no clusters: its words and frames are not added")
        words, known, inferred = (x[mask].cpu() for x in (batch.tokens, batch.frames, posterior.value))
        states = clusters.states.view(*batch.tokens.shape, -1)[mask]
        self._states = _added(self._states, words.flatten(), states.flatten(0, 1))
        self._memory = _added(self._memory, inferred, clusters.memory[mask])
        np.add.at(self.slot_counts, (words.numpy(), np.arange(words.shape[-1])), 1)
        np.add.at(self.frame_counts, inferred.numpy(), 1)
        np.add.at(self.confusion, (known[known >= 0].numpy(), inferred[known >= 0].numpy()), 1)
        self._w_frames, self._w_words = clusters.w_frames, clusters.w_words

    @cached_property
    def frames_given_tokens(self) -> NDArray[np.float32]:
        """The mean of β_enc over the occurrences of each word, in whatever slot (V F)."""
        return _beta(self._w_frames, self._states, self.word_counts)

    @cached_property
    def tokens_given_frames(self) -> NDArray[np.float32]:
        """The mean of β_dec over the events whose inferred frame is each one (F V)."""
        return _beta(self._w_words(), self._memory, self.frame_counts)

    @property
    def word_counts(self) -> Counts:
        return np.asarray(self.slot_counts.sum(1))

    def top_frames(self, word: str, k: int = 5) -> list[tuple[str, float]]:
        """Return the frames with the highest β_enc of a word."""
        number = self.vocabulary.find(word, "word")
        if not self.word_counts[number]:
            raise UserError(f"the word {word!r} does not occur in these documents")
        return _top(self.frames_given_tokens[number], self.frames, k)

    def top_words(self, frame: str, k: int = 5) -> list[tuple[str, float]]:
        """Return the words with the highest β_dec of a frame."""
        number = self.frames.find(frame, "frame")
        if not self.frame_counts[number]:
            raise UserError(f"no event of these documents is inferred as {frame}")
        return _top(self.tokens_given_frames[number], self.vocabulary, k)

    def purity(self) -> float | None:
        """Return Σ_i max_k n(k, i) / N: the share of events with the majority known frame of their cluster.

        A cluster is all events inferred as the same frame, whatever its name. None if no frame is known.
        """
        total = self.confusion.sum()
        return float(self.confusion.max(0).sum() / total) if total else None

    def nmi(self) -> float | None:
        """Return the normalised mutual information of known and inferred frames: 2 I(K; I) / (H(K) + H(I)).

        Purity grows with the number of clusters; this does not. 1 if each determines the other.
        """
        total = self.confusion.sum()
        if not total:
            return None
        joint = self.confusion / total
        known, inferred = _entropy(joint.sum(1)), _entropy(joint.sum(0))
        information = known + inferred - _entropy(joint.ravel())
        return 2 * information / (known + inferred) if known + inferred else 1.0


def _entropy(p: NDArray[np.float64]) -> float:
    p = p[p > 0]
    return float(-(p * np.log(p)).sum())


def _added(sums: Tensor, names: Tensor, rows: Tensor) -> Tensor:
    """Add each row to the sum of its name; the first rows decide the width of the sums."""
    if not sums.shape[1]:
        sums = sums.new_zeros(len(sums), rows.shape[1])
    return sums.index_add_(0, names, rows.double().cpu())


def _beta(matrix: Tensor, sums: Tensor, counts: Counts) -> NDArray[np.float32]:
    """Return the matrix times each mean; NaN without counts."""
    means = sums / torch.from_numpy(counts)[:, None]
    return np.asarray((means @ matrix.detach().double().cpu().T).float())
