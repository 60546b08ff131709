"""Beam search for the most likely next event, slot by slot.

Where the model is exact, so are the probabilities: the beam may miss an event, never misjudge one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssdvae.data.batches import Batch
from ssdvae.models.base import LanguageModel, State
from ssdvae.models.latents import LatentQuery, Latents, refuse_nan

NUMBERS = 6_000_000
"""Probabilities that are held at once."""


@dataclass(frozen=True)
class Rollout:
    """Documents that were read once, before their next event: latent variables, state and p(frame)."""

    latents: Latents
    state: State
    log_frames: Float[Tensor, "B F"] | None  # log p(next frame); None in a model without frames

    @classmethod
    @torch.no_grad()
    def after(cls, model: LanguageModel, read: Batch, frame: int = -1) -> Rollout:
        """Encode documents of the same length and roll out the next event, whose frame may be given."""
        frames = None if frame < 0 else torch.full((len(read),), frame, device=model.device)
        latents = model.latents(LatentQuery.roll_out(read, 1, frames))
        state, latents = model.start(read, latents), latents.after(read.mask.shape[1])
        return cls(latents, state, model.next_frame(latents, state) if len(model.frames) else None)


@dataclass(frozen=True)
class SearchResult:
    """The H most likely next events of each of B documents, the most likely first."""

    tokens: Int[Tensor, "B H slots"]
    log_p: Float[Tensor, "B H"]  # of the whole event, what was fixed included; −∞ where none was left
    heads: Float[Tensor, "B V"]  # log p of every head, given what was fixed
    log_fixed: Float[Tensor, " B"]  # log p of what was fixed: exact if it is the first slots
    bayes: bool  # True if a free slot comes before a fixed one: then ``log_fixed`` is a sum over the beam

    @property
    def log_share(self) -> Float[Tensor, "B H"]:
        """log p given the fixed words."""
        return self.log_p - self.log_fixed[:, None]


def documents_at_once(model: LanguageModel, beam: int) -> int:
    """Return how many documents to search for at once."""
    return max(1, NUMBERS // (beam * len(model.vocabulary)))


def search(model: LanguageModel, rollout: Rollout, fixed: Int[Tensor, "B slots"], beam: int) -> SearchResult:
    """Return the most likely next events; ``fixed`` has the known words, −1 where one is searched for.

    The unknown word is never proposed, and an event always has a head.
    """
    size, V = len(fixed), len(model.vocabulary)
    state, latents = rollout.state, rollout.latents
    total = torch.zeros(size, 1, dtype=torch.float64, device=fixed.device)  # B H
    words = fixed.new_zeros(size, 1, 0)
    document = torch.arange(size, device=fixed.device)[:, None]
    every = torch.arange(V, device=fixed.device)
    last_fixed = int((fixed >= 0).any(0).nonzero().max()) if bool((fixed >= 0).any()) else -1
    log_fixed, heads = total.new_zeros(size), total.new_zeros(size, V)
    for slot in range(fixed.shape[1]):
        width = total.shape[1]
        log_p, state = model.next_word(state, latents, words[:, :, -1].flatten() if slot else None, slot)
        refuse_nan(log_p)
        mass = total[..., None] + log_p.view(size, width, V)  # B H V
        if slot == 0:
            heads = mass[:, 0]
        known = fixed[:, slot, None, None]
        free = (every != model.vocabulary.unknown) & ((every != model.vocabulary.missing) | (slot > 0))
        mass = mass.masked_fill(~torch.where(known >= 0, every == known, free), -torch.inf)
        if slot == last_fixed:
            log_fixed = mass.flatten(1).logsumexp(1)
            if slot:
                shares = (mass.logsumexp(2) - log_fixed[:, None]).exp()
                heads = torch.zeros_like(heads).scatter_add(1, words[:, :, 0], shares).log()
            else:
                heads = mass[:, 0] - log_fixed[:, None]
        most = width if bool((known >= 0).all()) else width * V
        best = mass.flatten(1).topk(min(beam, most))
        parent, word = best.indices // V, best.indices % V
        total = best.values
        words = torch.cat([words[document, parent], word[..., None]], dim=2)
        rows = (document * width + parent).flatten()
        state, latents = state.select(rows), latents.select(rows)
    bayes = last_fixed >= 0 and bool((fixed[:, :last_fixed] < 0).any())
    return SearchResult(words, total, heads, log_fixed, bayes)
