"""What may come after some events, in a form that every model can give: weighted draws of what is latent.

    p(next | events) = Σ_s ω_s p(next | draw s)

A model whose likelihood is exact has one draw, of nothing. One with latent variables draws those of the
events and of the next one, and the sum is an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from ssdvae.models.decoder import DecoderState
from ssdvae.models.plan import Plan


@dataclass(frozen=True)
class Foresight:
    """S draws for each of B documents: rows b · S + s of the plan and the state, at the next event."""

    plan: Plan
    state: DecoderState
    log_weights: Float[Tensor, "B S"]  # log ω, which sum to one over the draws of a document
    log_frames: Float[Tensor, "B F"] | None  # log p(frame of the next event); None without such
