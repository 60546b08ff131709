"""The likeliest of some names, each with its probability: how every answer is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from ssdvae.data.vocabulary import Inventory


@dataclass(frozen=True, slots=True)
class Candidate:
    """A frame or a word, and how probable it is."""

    name: str
    probability: float

    def to_record(self, kind: str) -> dict[str, Any]:
        """For JSON; ``kind`` says what the name is that of."""
        return {kind: self.name, "probability": round(self.probability, 6)}


Ranked = tuple[Candidate, ...]
"""The likeliest first."""


def ranked(log_p: Float[Tensor, " K"], names: Inventory, top: int) -> Ranked:
    """The likeliest names of one distribution."""
    best = log_p.topk(min(top, len(names)))
    pairs = zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    return tuple(Candidate(names.name(place), p) for place, p in pairs)


def ranked_everywhere(log_p: Float[Tensor, "B M K"], names: Inventory, top: int) -> list[list[Ranked]]:
    """The same at every event of some documents."""
    best = log_p.topk(min(top, len(names)))
    return [
        [
            tuple(Candidate(names.name(place), p) for place, p in zip(*event, strict=True))
            for event in zip(*document, strict=True)
        ]
        for document in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    ]
