"""Attention of the encoder: which words does it attend to when it infers a frame?

The paper reports that with many observed frames attention has little entropy and mostly goes to the verb of
the event itself, and that with few it is spread a little wider.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from ssdvae.data.batches import Batch
from ssdvae.evaluation.task import ATTENTION, FRAMES, Data, Figure, Result, Task
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.latents import FramePosterior

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation


@dataclass(frozen=True)
class AttentionMeans:
    """Means over some events: shares of the attention α_m, which add up to one, and its entropy in nats."""

    events: int
    own: dict[str, float]  # on each slot of the event itself
    elsewhere: dict[str, float]  # on each slot of all other events
    entropy: float
    most_entropy: float  # ln T, that of uniform attention

    @property
    def own_event(self) -> float:
        return sum(self.own.values())

    @property
    def own_head(self) -> float:
        return next(iter(self.own.values()))

    @property
    def heads(self) -> float:
        """The share on heads, of the event itself and of other events."""
        return self.own_head + next(iter(self.elsewhere.values()))


class AttentionSummary:
    """Sums over the events of each inferred frame; their size does not depend on the number of documents."""

    def __init__(self, model: Model) -> None:
        self.model, self.frames, self.slots = model, model.frames, model.slots
        F = len(model.frames)
        self.counts, self.entropy, self.most_entropy = (np.zeros(F) for _ in range(3))
        self.shares = np.zeros((F, 2, len(model.slots)))  # on the event itself and elsewhere, by slot

    def add(self, posterior: FramePosterior, batch: Batch) -> None:
        if posterior.attention is None:
            raise UserError(f"{self.model.config.model} infers frames without attention over words")
        B, M = batch.mask.shape
        # By event, event attended to, slot.
        attention = posterior.attention.weights.double().view(B, M, M, -1)
        own = attention.diagonal(dim1=1, dim2=2).transpose(1, 2)
        shares = torch.stack([own, attention.sum(2) - own], dim=2)
        entropy = torch.special.entr(attention).sum((2, 3))
        most = batch.words.double().log()[:, None].expand(B, M)
        frames = posterior.value[batch.mask].cpu()
        sums = (self.counts, self.shares, self.entropy, self.most_entropy)
        for total, part in zip(sums, (torch.ones_like(entropy), shares, entropy, most), strict=True):
            torch.from_numpy(total).index_add_(0, frames, part[batch.mask].cpu())

    def overall(self) -> AttentionMeans:
        return self._means(slice(None))

    def of(self, frame: str) -> AttentionMeans:
        number = self.frames.find(frame, "frame")
        if not self.counts[number]:
            raise UserError(f"no event of these documents is inferred as {frame}")
        return self._means(slice(number, number + 1))

    def _means(self, rows: slice) -> AttentionMeans:
        events = self.counts[rows].sum()
        own, elsewhere = (
            dict(zip(self.slots, shares.tolist(), strict=True))
            for shares in self.shares[rows].sum(0) / events
        )
        entropy, most = (float(x[rows].sum() / events) for x in (self.entropy, self.most_entropy))
        return AttentionMeans(int(events), own, elsewhere, entropy, most)


NAME = "attention"


def run(evaluation: Evaluation, data: Data) -> Result:
    summary: AttentionSummary = evaluation.split_pass.observers[NAME]
    means = summary.overall()
    scores = {
        "attention_entropy": means.entropy,
        "attention_most_entropy": means.most_entropy,
        "attention_verbs": means.heads,
        "attention_own_verb": means.own_head,
        "attention_own_event": means.own_event,
    }
    return Result(means.events, scores)


TASK = Task(
    name=NAME,
    title="Attention of the encoder",
    explanation="Which words the encoder attends to when it infers the frame of an event: the entropy of its "
    "attention, in nats, and the shares that go to heads, to the head of the event itself, and to that "
    "event. Attention that is spread evenly gives heads no more than any other slot. The paper prints no "
    "figures for this: it says that entropy is low and attention on the verb where ε is high.",
    figures=(
        Figure("attention_entropy", "entropy", digits=2),
        Figure("attention_most_entropy", "entropy at most", digits=2),
        Figure("attention_verbs", "on heads", share=True),
        Figure("attention_own_verb", "on the head of the event", share=True),
        Figure("attention_own_event", "on the event", share=True),
    ),
    run=run,
    reproduced=True,
    needs=(FRAMES, ATTENTION),
    settings=("events", "eval_batch"),
    observer=AttentionSummary,
)
