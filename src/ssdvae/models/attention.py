"""Attention of a query over a memory, and the two ways of joining query and context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssdvae.models.flops import attention_flops, linear_flops


def attend(
    query: Float[Tensor, "B Q d"],
    memory: Float[Tensor, "B K d"],
    mask: Bool[Tensor, "B K"],
    allowed: Bool[Tensor, "Q K"] | None = None,
    zeroed: bool = False,
) -> tuple[Float[Tensor, "B Q d"], Float[Tensor, "B Q K"]]:
    """c = Kᵀ α and α = softmax(K q / √d); masked places get nothing, nor those not ``allowed`` to a query.

    ``zeroed``: the memory has zeros at masked places already. Who asks often need not copy it each time.
    """
    scores = torch.einsum("bqd,bkd->bqk", query, memory) * memory.shape[-1] ** -0.5
    visible = mask[:, None] if allowed is None else mask[:, None] & allowed
    attention = scores.masked_fill(~visible, -torch.inf).softmax(-1)
    # NaN · 0 is NaN: masked places must be no number that spreads.
    values = memory if zeroed else memory.masked_fill(~mask[..., None], 0)
    context = torch.einsum("bqk,bkd->bqd", attention, values)
    return context, attention


@dataclass(frozen=True)
class Looks:
    """The attention of M queries over T places, of which only the queries are kept: M · T is much to hold."""

    query: Float[Tensor, "B M d"]
    memory: Float[Tensor, "B T d"]
    mask: Bool[Tensor, "B T"]
    allowed: Bool[Tensor, "M T"] | None = None  # by default a query sees all places

    @property
    def shares(self) -> Float[Tensor, "B M T"]:
        return attend(self.query, self.memory, self.mask, self.allowed)[1]

    def of(self, row: int, queries: int) -> Float[Tensor, "Q T"]:
        """Those of the first queries of one document."""
        one = slice(row, row + 1)
        allowed = None if self.allowed is None else self.allowed[:queries]
        return attend(self.query[one, :queries], self.memory[one], self.mask[one], allowed)[1][0]


class Attention(nn.Module):
    """A query joined with the context that it finds: tanh(q) + tanh(c), or tanh(W [c; q]).

    Addition keeps query and context apart up to the output matrix, which is what makes the clusters β
    readable (paper, section 4.2); concatenation is the ablation of its appendix.
    """

    def __init__(self, width: int, kind: Literal["addition", "concatenation"]) -> None:
        super().__init__()
        self.width = width
        self.join = nn.Linear(2 * width, width, bias=False) if kind == "concatenation" else None

    def forward(
        self,
        query: Float[Tensor, "B Q d"],
        memory: Float[Tensor, "B K d"],
        mask: Bool[Tensor, "B K"],
        allowed: Bool[Tensor, "Q K"] | None = None,
        zeroed: bool = False,
    ) -> tuple[Float[Tensor, "B Q d"], Float[Tensor, "B Q K"]]:
        """The joined vector of each query, and its attention."""
        context, attention = attend(query, memory, mask, allowed, zeroed)
        return self.joined(query, context), attention

    def joined(
        self, query: Float[Tensor, "*rows d"], context: Float[Tensor, "*rows d"]
    ) -> Float[Tensor, "*rows d"]:
        if self.join is None:
            return query.tanh() + context.tanh()
        together: Tensor = self.join(torch.cat([context, query], -1)).tanh()
        return together

    def flops(self, queries: int, memory: int) -> int:
        joining = 0 if self.join is None else linear_flops(self.join, queries)
        return attention_flops(queries, memory, self.width) + joining
