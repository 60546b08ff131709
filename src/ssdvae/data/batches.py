"""Batches of tensors, and the randomness that goes with them.

Everything random is a function of the run's seed and of what it is for (weights, order, masks, the noise of
step n), never of how many numbers were drawn before. That is why a resumed run needs no saved generator, and
why two processes draw what one would.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Int
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.data.documents import Documents

EVENTS = 20
"""Events of an ordinary document, at most: fewer documents are read at once where one is longer."""


DRAWN = 2**20
"""Events for which it is drawn at once whether their frame is observed; the draws are those of all."""


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """A generator for one purpose: ``generator(seed, "noise", step)``."""
    digest = hashlib.blake2b(repr((seed, *purpose)).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


@dataclass(frozen=True)
class Noise:
    """Random numbers for some rows of a larger batch.

    All ``size`` rows are drawn and ``rows`` of them are kept, so that the numbers of a document do not depend
    on how the batch is shared out; and drawn on the CPU, so that they do not depend on the device.
    """

    generator: torch.Generator
    size: int
    rows: slice | None = None

    def uniform(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
        draws = torch.rand((self.size, *shape), generator=self.generator)
        return (draws if self.rows is None else draws[self.rows]).to(device)

    def gumbel(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
        """Draws from Gumbel(0, 1): −log(−log u)."""
        # The smallest positive float stands in for u = 0, whose logarithm is −∞.
        u = self.uniform(*shape, device=device).clamp_min_(torch.finfo(torch.float32).tiny)
        return -torch.log(-torch.log(u))


@dataclass(frozen=True)
class Batch:
    """Some documents. Where ``mask`` is False an event is padding, and nothing looks at it."""

    tokens: Int[Tensor, "B M S"]
    frames: Int[Tensor, "B M"]
    observed: Int[Tensor, "B M"]
    mask: Bool[Tensor, "B M"]

    @classmethod
    def of_words(cls, tokens: Int[Tensor, "B M S"]) -> Batch:
        """Documents without padding, of which no frame is known."""
        nothing = torch.full_like(tokens[..., 0], -1)
        return cls(tokens, nothing, nothing, nothing < 0)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def words(self) -> Int[Tensor, " B"]:
        """Words of each document."""
        return self.tokens.shape[-1] * self.mask.sum(1)

    def first(self, events: int) -> Batch:
        """Return the first events of each document."""
        return self.each(lambda part: part[:, :events])

    def to(self, device: torch.device | str) -> Batch:
        return self.each(lambda part: part.to(device))

    def rows(self, rows: Int[Tensor, " K"]) -> Batch:
        """Some of the documents, each as often as wanted."""
        return self.each(lambda part: part[rows])

    def part(self, rows: slice) -> Batch:
        """Some of the documents, padded as before, since each place of the chain takes its noise."""
        return self.each(lambda part: part[rows])

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """Return the batch with each of its parts changed."""
        return Batch(*(change(getattr(self, field.name)) for field in fields(self)))


def mask_frames(documents: Documents, observe: float, seed: int) -> NDArray[np.int32]:
    """The observed frames I of all events: each frame is kept with the chance ε = ``observe``, else −1.

    Drawn once per run, for every event of the split, read or not: what is observed depends neither on how
    documents are cut nor on which windows have an event. Nor do the draws depend on ε, so what is observed at
    a lower ε is at a higher one too.
    """
    draws, observed = generator(seed, "masks"), np.empty(len(documents.frames), np.int32)
    for start in range(0, len(observed), DRAWN):
        frames = documents.frames[start : start + DRAWN]
        kept = torch.rand(len(frames), generator=draws).numpy() < observe
        observed[start : start + DRAWN] = np.where(kept, frames, -1)
    return observed


def collate(
    documents: Documents,
    rows: NDArray[np.int64],
    observed: NDArray[np.int32] | None = None,
) -> Batch:
    """The documents ``rows``, padded to the longest of them; nothing is observed unless ``observed`` says so.

    ``observed`` has the frames of all events, as ``mask_frames`` gives them.
    """
    frames = torch.from_numpy(documents.gathered(documents.frames, rows, -1)).long()
    return Batch(
        tokens=torch.from_numpy(documents.gathered(documents.tokens, rows, 0)).long(),
        frames=frames,
        observed=torch.full_like(frames, -1)
        if observed is None
        else torch.from_numpy(documents.gathered(observed, rows, -1)).long(),
        mask=torch.from_numpy(documents.places(rows)[1]),
    )


def epoch_batches(count: int, batch: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """The rows of each batch of one epoch: a permutation, cut into parts whose sizes differ by at most one.

    Equal parts, rather than full batches and a rest, because a tiny last batch has a noisy gradient and may
    not go round all processes.
    """
    order = torch.randperm(count, generator=generator(seed, "order", epoch)).numpy()
    return np.array_split(order, -(-count // batch))


def in_order(count: int, batch: int) -> Iterator[NDArray[np.int64]]:
    """Rows one after another, as evaluation takes them."""
    for start in range(0, count, batch):
        yield np.arange(start, min(start + batch, count))


def within_bounds(lengths: NDArray[np.int32], batch: int) -> Iterator[NDArray[np.int64]]:
    """The same, but fewer where documents are long: padded to the longest they are no more than a batch."""
    start = longest = 0
    for row, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if row > start and (row - start == batch or (row - start + 1) * longest > batch * EVENTS):
            yield np.arange(start, row)
            start, longest = row, length
    if start < len(lengths):
        yield np.arange(start, len(lengths))


def process_slice(rows: NDArray[np.int64], process: int, processes: int) -> slice:
    """The part of a batch that one of several processes takes."""
    start, stop = (len(rows) * p // processes for p in (process, process + 1))
    return slice(start, stop)
