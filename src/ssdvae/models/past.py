"""A vector of the events so far, for the output layer: what a document is about does not fade in it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssdvae.models.flops import linear_flops


class PastVector(nn.Module):
    """k_m = (1/(m − 1)) Σ_{j<m} tanh(W z_j), z_j the state after event j; slot s adds U_s k_m to its state.

    Only events that are over are in it, so it knows no word that is still to come. Before the first event it
    is zero.
    """

    def __init__(self, hidden: int, width: int, slots: int) -> None:
        super().__init__()
        self.width, self.slots = width, slots
        self.write = nn.Linear(hidden, width)
        self.look = nn.Linear(width, slots * hidden, bias=False)

    def vectors(self, ends: Float[Tensor, "*events h"]) -> Float[Tensor, "*events K"]:
        """What each event leaves behind."""
        written: Tensor = self.write(ends).tanh()
        return written

    def before(
        self, ends: Float[Tensor, "B M h"], sums: Float[Tensor, "B K"]
    ) -> tuple[Float[Tensor, "B M K"], Float[Tensor, "B K"]]:
        """The sum of the vectors before each event, and after the last; ``sums`` came before them all."""
        running = torch.cat([sums[:, None], self.vectors(ends)], dim=1).cumsum(1)
        return running[:, :-1], running[:, -1]

    def forward(self, sums: Float[Tensor, "B M K"], first: int) -> Float[Tensor, "B M S h"]:
        """What is added in each slot; ``first`` is the place in the document of the first of the M events."""
        events = torch.arange(first, first + sums.shape[1], device=sums.device).clamp_min(1)
        added: Tensor = self.look(sums / events[:, None])
        return added.view(*sums.shape[:2], self.slots, -1)

    def flops(self, events: int) -> int:
        return linear_flops(self.write, events) + linear_flops(self.look, events)
