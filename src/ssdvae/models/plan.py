"""What the words of a document follow, and what a model is asked when it is to make such a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ssdvae.data.batches import Batch, Noise
from ssdvae.models.latent import Sampler


@dataclass(frozen=True)
class Plan:
    """What the words of a document follow beside the words before them: a vector for each latent variable.

    A language model has none: N = 0. ``frames`` names the frame of each vector, if these are frames.
    ``event`` is the place in the document of the event that is read or written next. ``word_offsets`` are
    added to the logits of all words, by a model that has a vector of the whole document. ``weights`` say how
    much of each frame is in a vector, to a model whose heads look at frames themselves.
    """

    vectors: Float[Tensor, "B N e"]
    mask: Bool[Tensor, "B N"]
    frames: Int[Tensor, "B N"] | None = None
    event: int = 0
    word_offsets: Float[Tensor, "B V"] | None = None
    weights: Float[Tensor, "B N F"] | None = None

    @classmethod
    def together(cls, plans: Sequence[Plan]) -> Plan:
        """Plans of the same model and the same number of variables, one after another."""

        def joined(name: str) -> Any:
            parts = [getattr(plan, name) for plan in plans]
            return None if parts[0] is None else torch.cat(parts)

        names = ("vectors", "mask", "frames", "word_offsets", "weights")
        return replace(plans[0], **{name: joined(name) for name in names})

    def rows(self, rows: Int[Tensor, " K"]) -> Plan:
        """Some of the documents, each as often as wanted."""
        some = (self.frames, self.word_offsets, self.weights)
        frames, offsets, weights = (None if part is None else part[rows] for part in some)
        return Plan(self.vectors[rows], self.mask[rows], frames, self.event, offsets, weights)

    def after(self, events: int) -> Plan:
        """The same plan, some events later."""
        return replace(self, event=self.event + events)


@dataclass(frozen=True)
class PlanRequest:
    """The latent variables of scripts of N events are wanted, after reading K events of each.

    The K events may be the whole script, or the first events of one that is to be continued.
    """

    read: Batch  # the K events that are read
    observed: Int[Tensor, "B N"]  # the frames that are known, of the N events of the script; −1: latent
    mask: Bool[Tensor, "B N"]  # which of the N events there are
    sampler: Sampler
    noise: Noise

    @classmethod
    def whole(cls, batch: Batch, sampler: Sampler, noise: Noise) -> PlanRequest:
        """All events of each document are read, and the frames that its batch observes are known."""
        return cls(batch, batch.observed, batch.mask, sampler, noise)

    @classmethod
    def continuing(
        cls, seed: Batch, observed: Int[Tensor, "B N"], sampler: Sampler, noise: Noise
    ) -> PlanRequest:
        """The events of ``seed`` are read, and a script of N events begins with them."""
        return cls(seed, observed, torch.ones_like(observed, dtype=torch.bool), sampler, noise)
