"""Some documents of a split, chosen while all of them go by."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Sequence

from ssdvae.data.events import Words

Chosen = tuple[int, str, tuple[Words, ...]]
"""The hash of a document, its id and its events."""


class DocumentSample:
    """At most ``size`` documents: those with the largest hash of (seed, id), whatever their order.

    No others are held in memory.
    """

    def __init__(self, size: int, seed: int) -> None:
        self.size, self.seed = size, seed
        self._heap: list[Chosen] = []

    def add(self, id: str, events: Sequence[Words]) -> None:
        seeded = repr((self.seed, id)).encode()
        rank = int.from_bytes(hashlib.blake2b(seeded, digest_size=8).digest(), "big")
        self._push((rank, id, tuple(events)))

    def add_all(self, other: DocumentSample) -> None:
        """The documents that another one chose among others of the split."""
        for candidate in other._heap:
            self._push(candidate)

    def _push(self, candidate: Chosen) -> None:
        push = heapq.heappush if len(self._heap) < self.size else heapq.heappushpop
        push(self._heap, candidate)

    def chosen(self) -> list[Chosen]:
        """The largest hash first."""
        return sorted(self._heap, reverse=True)
