"""Vector quantisation (van den Oord et al., 2017), without parameters."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Quantized:
    """A query q, the nearest code e of a codebook, and its number."""

    query: Float[Tensor, "B d"]
    nearest: Float[Tensor, "B d"]
    code: Int[Tensor, " B"]

    @property
    def vector(self) -> Float[Tensor, "B d"]:
        """e, with the gradient of q: straight through the choice, which has none."""
        return self.query + (self.nearest - self.query).detach()

    def codebook_loss(self) -> Float[Tensor, " B"]:
        """‖sg(q) − e‖²: moves the code towards the query."""
        return (self.query.detach() - self.nearest).square().sum(-1)

    def commit_loss(self, query: Float[Tensor, "B d"] | None = None) -> Float[Tensor, " B"]:
        """‖q − sg(e)‖²: keeps the query near its code; or another query near the same code."""
        return ((self.query if query is None else query) - self.nearest.detach()).square().sum(-1)


def quantize(query: Float[Tensor, "B d"], codebook: Float[Tensor, "K d"]) -> Quantized:
    """The code at the smallest distance ‖q − e_k‖ for each query."""
    # ‖q − e‖² without its part ‖q‖², which is the same for all codes.
    distance = codebook.square().sum(-1) - 2 * query @ codebook.T
    code = distance.argmin(-1)
    return Quantized(query, codebook[code], code)
