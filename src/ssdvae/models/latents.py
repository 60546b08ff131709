"""Latent variables: how they are drawn, what decoders read of them, queries for them, and posteriors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from ssdvae.data.batches import Batch, Noise
from ssdvae.io.errors import UserError
from ssdvae.models.layers import LazyAttention

Sampler = Callable[[Float[Tensor, "B F"], Noise], Float[Tensor, "B F"]]
"""From logits of a latent variable to a point of the simplex."""


def categorical(logits: Float[Tensor, "B F"], noise: Noise) -> Float[Tensor, "B F"]:
    """Draw a one-hot vector from softmax(logits): the largest of logits + Gumbel noise."""
    noisy = logits + noise.gumbel(logits.shape[-1], device=logits.device)
    return functional.one_hot(noisy.argmax(-1), logits.shape[-1]).to(logits.dtype)


def most_likely(logits: Float[Tensor, "B F"], noise: Noise) -> Float[Tensor, "B F"]:
    """Return the most likely value as a one-hot vector; uses no noise."""
    return functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)


def probabilities(logits: Float[Tensor, "B F"], noise: Noise) -> Float[Tensor, "B F"]:
    """Return softmax(logits), the mean of a hard draw; uses no noise."""
    return logits.softmax(-1)


@dataclass(frozen=True)
class Latents:
    """The latent variables that the words of a document condition on, as a vector each.

    A plain language model has none (N = 0). ``frames`` names the frame of each vector, −1 where it is summed
    out; None in a model whose variables are not frames. ``event`` is the position of the next event.
    ``word_offsets`` are added to the logits of all words. ``frame_logits`` are those of the frames before any
    is observed, in a model that infers them from what it read.
    """

    vectors: Float[Tensor, "B N e"]
    mask: Bool[Tensor, "B N"]
    frames: Int[Tensor, "B N"] | None = None
    event: int = 0
    word_offsets: Float[Tensor, "B V"] | None = None
    frame_logits: Float[Tensor, "B N F"] | None = None

    def select(self, rows: Int[Tensor, " K"]) -> Latents:
        """Return some of the documents, each as often as it is named."""
        optional = (self.frames, self.word_offsets, self.frame_logits)
        frames, offsets, logits = (None if x is None else x[rows] for x in optional)
        return Latents(self.vectors[rows], self.mask[rows], frames, self.event, offsets, logits)

    def after(self, events: int) -> Latents:
        """Return the same latents, some events later."""
        return replace(self, event=self.event + events)


@dataclass(frozen=True)
class LatentQuery:
    """A query for the latent variables of documents of N events, of which K are read; K may be 0."""

    read: Batch  # the K events
    observed: Int[Tensor, "B N"]  # observed frames of the N events; −1: latent
    mask: Bool[Tensor, "B N"]
    sampler: Sampler
    noise: Noise

    @classmethod
    def whole(cls, batch: Batch, sampler: Sampler, noise: Noise) -> LatentQuery:
        """Read all events of each document."""
        return cls(batch, batch.observed, batch.mask, sampler, noise)

    @classmethod
    def continuing(
        cls, seed: Batch, observed: Int[Tensor, "B N"], sampler: Sampler, noise: Noise
    ) -> LatentQuery:
        """Read the events of ``seed``, with which documents of N events begin."""
        return cls(seed, observed, torch.ones_like(observed, dtype=torch.bool), sampler, noise)

    @classmethod
    def roll_out(cls, seed: Batch, events: int, frames: Int[Tensor, " B"] | None = None) -> LatentQuery:
        """Read ``seed`` and roll out the distributions of further events; uses no noise.

        ``frames`` are the observed frames of the first of these, −1 where latent.
        """
        size, count = seed.mask.shape
        observed = torch.full((size, count + events), -1, device=seed.tokens.device)
        if frames is not None:
            observed[:, count] = frames
        return cls.continuing(seed, observed, probabilities, Noise(torch.Generator(), size))


def refuse_nan(log_p: Tensor) -> None:
    """Refuse NaN probabilities: finite weights that are too large give them."""
    if bool(log_p.isnan().any()):
        raise UserError(
            "the model gives probabilities that are not finite: its training has diverged\n"
            "train it again with a smaller --learning-rate"
        )


@dataclass(frozen=True)
class LatentPosterior:
    """q of discrete latent variables. ``mask`` says which there are."""

    log_q: Float[Tensor, "B N K"]
    mask: Bool[Tensor, "B N"]

    def check_finite(self) -> None:
        refuse_nan(self.log_q[self.mask])

    @property
    def value(self) -> Int[Tensor, "B N"]:
        """The most likely values; −1 at padding."""
        return self.log_q.argmax(-1).masked_fill(~self.mask, -1)


@dataclass(frozen=True)
class SoftClusters:
    """Soft clusters of words and frames (paper, section 4.2).

    β_enc = W_out tanh(Hᵀ)        β_dec = Ŵ_out tanh(E^Mᵀ)

    Kept as factors: the mean of β is the matrix times the mean of the other factor. W_out and Ŵ_out are
    without their biases, which the paper does not have and which only say what is frequent.
    """

    hidden: Float[Tensor, "B T h"]  # H
    log_q: Float[Tensor, "B M F"]
    frame_embedding: Float[Tensor, "F e"]  # E^F
    w_frames: Float[Tensor, "F h"]  # W_out
    w_words: Callable[[], Float[Tensor, "V e"]]  # Ŵ_out

    @property
    def states(self) -> Float[Tensor, "B T h"]:
        """tanh(H)"""
        return self.hidden.tanh()

    @property
    def memory(self) -> Float[Tensor, "B M e"]:
        """tanh(E^M) with the expected embedding of each frame."""
        return (self.log_q.exp().to(self.frame_embedding.dtype) @ self.frame_embedding).tanh()


@dataclass(frozen=True)
class FramePosterior(LatentPosterior):
    """q of the frame of each event.

    ``parts`` are the distributions that it combines, by name, if there are several.
    """

    attention: LazyAttention | None = None
    clusters: SoftClusters | None = None
    parts: Mapping[str, Float[Tensor, "B N K"]] | None = None
