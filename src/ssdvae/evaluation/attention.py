"""Where a model looks when it infers a frame.

The paper reports that with many observed frames attention has little entropy and mostly goes to the verb of
the event itself, and that with few it is spread a little wider.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from ssdvae.answers.beliefs import accumulate_over_split
from ssdvae.config import ExplainSettings, Slots
from ssdvae.data.batches import Batch
from ssdvae.data.corpus import Documents
from ssdvae.data.vocabulary import Inventory
from ssdvae.errors import UserError
from ssdvae.models.base import FramePosterior, Model
from ssdvae.progress import Advance, no_advance


@dataclass(frozen=True)
class AttentionMeans:
    """Means over some events: shares of the attention α_m, which add up to one, and its entropy in nats."""

    events: int
    own: dict[str, float]  # on each slot of the event itself
    elsewhere: dict[str, float]  # on each slot of all other events
    entropy: float
    most_entropy: float  # ln T, if all words were looked at alike

    @property
    def own_event(self) -> float:
        return sum(self.own.values())

    @property
    def own_head(self) -> float:
        return next(iter(self.own.values()))

    @property
    def heads(self) -> float:
        """The share on heads, of the event itself and of others."""
        return self.own_head + next(iter(self.elsewhere.values()))


@dataclass(frozen=True)
class AttentionSummary:
    """Sums over the events of each inferred frame."""

    frames: Inventory
    slots: Slots
    counts: NDArray[np.float64]  # F
    shares: NDArray[np.float64]  # F 2 S: on the event itself and elsewhere, by slot
    entropy: NDArray[np.float64]  # F
    most_entropy: NDArray[np.float64]  # F

    def overall(self) -> AttentionMeans:
        return self._look(slice(None))

    def of(self, frame: str) -> AttentionMeans:
        number = self.frames.find(frame, "frame")
        if not self.counts[number]:
            raise UserError(f"no event of these documents is inferred as {frame}")
        return self._look(slice(number, number + 1))

    def _look(self, rows: slice) -> AttentionMeans:
        events = self.counts[rows].sum()
        own, elsewhere = (
            dict(zip(self.slots, shares.tolist(), strict=True))
            for shares in self.shares[rows].sum(0) / events
        )
        entropy, most = (float(x[rows].sum() / events) for x in (self.entropy, self.most_entropy))
        return AttentionMeans(int(events), own, elsewhere, entropy, most)


class AttentionSums:
    """What the summary is made of: its size does not depend on the number of documents."""

    def __init__(self, model: Model) -> None:
        self.model = model
        shapes = ((), (2, len(model.slots)), (), ())
        self.sums = [torch.zeros(len(model.frames), *shape, dtype=torch.float64) for shape in shapes]

    def add(self, beliefs: FramePosterior, batch: Batch) -> None:
        if beliefs.attention is None:
            raise UserError(f"{self.model.config.model} infers frames without attention over words")
        B, M = batch.mask.shape
        attention = beliefs.attention.weights.double().view(
            B, M, M, -1
        )  # by event, event looked at, and slot
        own = attention.diagonal(dim1=1, dim2=2).transpose(1, 2)
        shares = torch.stack([own, attention.sum(2) - own], dim=2)
        entropy = torch.special.entr(attention).sum((2, 3))
        most = batch.words.double().log()[:, None].expand(B, M)
        frames = beliefs.value[batch.mask].cpu()
        for total, part in zip(self.sums, (torch.ones_like(entropy), shares, entropy, most), strict=True):
            total.index_add_(0, frames, part[batch.mask].cpu())

    def result(self) -> AttentionSummary:
        return AttentionSummary(self.model.frames, self.model.slots, *(total.numpy() for total in self.sums))


def attention_summary(
    model: Model,
    documents: Documents,
    settings: ExplainSettings | None = None,
    advance: Advance = no_advance,
) -> AttentionSummary:
    """Where each frame looks on a split, with no frame observed."""
    return accumulate_over_split(AttentionSums, model, documents, settings, advance)
