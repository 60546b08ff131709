"""The likeliest events: a beam search over the slots of the next one, with what is latent summed out.

Every hypothesis keeps its joint probability with each draw of the latent variables, so what a word does to
the belief in a draw is counted. Where the model is exact there is one draw, and the masses are exact: what
the beam may miss is an event, not its probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssdvae.models.base import EventModel, refuse_nan
from ssdvae.models.foresight import Foresight

NUMBERS = 6_000_000
"""Probabilities of words that are held at once."""


@dataclass(frozen=True)
class Found:
    """The likeliest next events of B documents, H of each, with log p; the likeliest first."""

    tokens: Int[Tensor, "B H slots"]
    log_p: Float[Tensor, "B H"]  # of the whole event, what was fixed included; −∞ where none was left
    heads: Float[Tensor, "B V"]  # log p of every head, given what was fixed
    log_fixed: Float[Tensor, " B"]  # log p of what was fixed: exact if it is the first slots
    bayes: bool  # whether something was fixed after what was free: then ``log_fixed`` is a sum over the beam

    @property
    def log_share(self) -> Float[Tensor, "B H"]:
        """log p given what was fixed."""
        return self.log_p - self.log_fixed[:, None]


def documents_at_once(model: EventModel, beam: int, draws: int) -> int:
    """How many documents to search for at once."""
    return max(1, NUMBERS // (beam * draws * len(model.vocabulary)))


def search(model: EventModel, ahead: Foresight, fixed: Int[Tensor, "B slots"], beam: int) -> Found:
    """The next event, slot by slot; ``fixed`` has the words that are known of it, −1 where one is not.

    ``<unk>`` is no word, and an event has a head.
    """
    (size, draws), V = ahead.log_weights.shape, len(model.vocabulary)
    state, plan = ahead.state, ahead.plan
    joint = ahead.log_weights.double()[:, None]  # B H S
    words = fixed.new_zeros(size, 1, 0)
    document = torch.arange(size, device=fixed.device)[:, None]
    every, draw = torch.arange(V, device=fixed.device), torch.arange(draws, device=fixed.device)
    last_fixed = int((fixed >= 0).any(0).nonzero().max()) if bool((fixed >= 0).any()) else -1
    log_fixed = joint.new_zeros(size)
    heads = joint.new_zeros(size, V)
    for slot in range(fixed.shape[1]):
        width = joint.shape[1]
        read = words[:, :, -1:].expand(-1, -1, draws).flatten() if slot else None
        log_p, state = model.next_word(state, plan, read, slot)
        refuse_nan(log_p)
        log_p = log_p.view(size, width, draws, V)
        mass = (joint[..., None] + log_p).logsumexp(2)  # B H V
        if slot == 0:
            heads = mass[:, 0]
        known = fixed[:, slot, None, None]
        free = (every != model.vocabulary.unknown) & ((every != model.vocabulary.missing) | (slot > 0))
        mass = mass.masked_fill(~torch.where(known >= 0, every == known, free), -torch.inf)
        if slot == last_fixed:
            log_fixed = mass.flatten(1).logsumexp(1)
            if slot:
                head = words[:, :, 0]
                shares = (mass.logsumexp(2) - log_fixed[:, None]).exp()
                heads = torch.zeros_like(heads).scatter_add(1, head, shares.to(heads)).log()
            else:
                heads = mass[:, 0] - log_fixed[:, None]
        most = width if bool((known >= 0).all()) else width * V
        best = mass.flatten(1).topk(min(beam, most))
        parent, word = best.indices // V, best.indices % V
        joint = joint[document, parent] + log_p[document, parent, :, word].double()
        # Where fewer were left than the beam has places, what is forbidden stays so.
        joint = joint.masked_fill(best.values[..., None] == -torch.inf, -torch.inf)
        words = torch.cat([words[document, parent], word[..., None]], dim=2)
        rows = (((document * width + parent) * draws)[..., None] + draw).flatten()
        state, plan = state.rows(rows), plan.rows(rows)
    log_p = joint.logsumexp(2)
    order = log_p.argsort(dim=1, descending=True, stable=True)
    bayes = last_fixed >= 0 and bool((fixed[:, :last_fixed] < 0).any())
    return Found(words[document, order], log_p.gather(1, order), heads, log_fixed, bayes)
