"""Perplexities and frame accuracy: sums of nats and counts, divided once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import Tensor

from ssdvae.config import EvaluateSettings
from ssdvae.data.batches import Noise, collate, generator, in_order
from ssdvae.data.corpus import Documents
from ssdvae.models.base import EventModel


@dataclass
class Tally:
    """What is summed over documents, and over processes."""

    documents: float = 0
    words: float = 0
    separators: float = 0
    nats: float = 0  # −log p(w | f) with frames inferred from the words themselves
    bound_nats: float = 0  # −(bound on log p(w))
    labelled: float = 0  # events whose frame is known to the evaluation
    correct: float = 0  # … and inferred

    def add(self, other: Tally) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def reduced(self, reduce: Callable[[Tensor], Tensor]) -> Tally:
        """The sum over processes."""
        return Tally(*reduce(torch.tensor(astuple(self), dtype=torch.float64)).tolist())

    def scores(self, bounded: bool = True, frames: bool = True) -> dict[str, Any]:
        """``ppl`` over the words; ``ppl_official`` counts separators too, which cost nothing;

        ``ppl_bound`` is the one to compare between models: ``ppl`` of a latent-variable model conditions on
        frames read off the very words it predicts.
        """
        return {
            "ppl": _exp(self.nats / self.words),
            "ppl_official": _exp(self.nats / (self.words + self.separators)),
            "ppl_bound": _exp(self.bound_nats / self.words) if bounded else None,
            "frame_accuracy": self.correct / self.labelled if frames and self.labelled else None,
            "words": int(self.words),
            "documents": int(self.documents),
        }


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf


@torch.no_grad()
def evaluate(
    model: EventModel,
    documents: Documents,
    settings: EvaluateSettings,
    *,
    bounded: bool = True,
    process: int = 0,
    processes: int = 1,
    reduce: Callable[[Tensor], Tensor] = lambda tally: tally,
    tick: Callable[[int], None] = lambda documents: None,
) -> dict[str, Any]:
    """Score every document, with no frame observed. Each process takes every n-th batch."""
    training = model.training
    model.eval()
    total, has_frames = Tally(), True
    for number, rows in enumerate(in_order(len(documents), settings.eval_batch)):
        if number % processes != process:
            continue
        batch = collate(documents, rows).to(model.device)
        # The noise of a batch depends on its place alone: any number of processes gives the same figures.
        noise = Noise(generator(settings.eval_seed, "evaluate", number), len(batch))
        events = int(batch.mask.sum())
        tally = Tally(documents=len(batch), words=4 * events, separators=events - len(batch))
        tally.nats = -model.word_log_probs(batch, noise).double().sum().item()
        if bounded:
            tally.bound_nats = -model.bound(batch, settings.bound_samples, noise).double().sum().item()
        inferred = model.infer(batch)
        has_frames = inferred is not None
        if inferred is not None:
            labelled = batch.mask & (batch.frames >= 0)
            tally.labelled = labelled.sum().item()
            tally.correct = ((inferred == batch.frames) & labelled).sum().item()
        total.add(tally)
        tick(len(batch))
    model.train(training)
    return total.reduced(reduce).scores(bounded, has_frames)
