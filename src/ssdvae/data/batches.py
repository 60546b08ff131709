"""Batches of tensors, and their random numbers.

Documents of a corpus go through ``within_bounds`` (rows of a batch that fits the memory) and ``collate``;
typed ones through ``inference.inputs.to_batch``; words alone through ``Batch.of_words``.

Random numbers are a function of the run's seed and of their purpose (weights, order, masks, the noise of step
n), never of how many were drawn before. So a resumed run needs no saved generator, and two processes draw
what one would.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ssdvae.data.documents import Documents
from ssdvae.io.progress import checkpoint

EVENTS = 20
"""The length of an ordinary document; batches with a longer one have fewer documents."""

CHUNK = 2**20
"""Events whose masks are drawn at once; the draws do not depend on it."""


def generator(seed: int, *purpose: str | int) -> torch.Generator:
    """Return a generator for one purpose: ``generator(seed, "noise", step)``."""
    digest = hashlib.blake2b(repr((seed, *purpose)).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


@dataclass(frozen=True)
class Noise:
    """Random numbers for some rows of a larger batch.

    All ``size`` rows are drawn, on the CPU, and ``rows`` of them are kept: the numbers of a document depend
    neither on the process nor on the device.
    """

    generator: torch.Generator
    size: int
    rows: slice | None = None

    def uniform(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
        draws = torch.rand((self.size, *shape), generator=self.generator)
        return (draws if self.rows is None else draws[self.rows]).to(device)

    def gumbel(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
        """Return draws from Gumbel(0, 1): −log(−log u)."""
        # The smallest positive float stands in for u = 0, whose logarithm is −∞.
        u = self.uniform(*shape, device=device).clamp_min_(torch.finfo(torch.float32).tiny)
        return -torch.log(-torch.log(u))


@dataclass(frozen=True)
class Batch:
    """A batch of documents, padded where ``mask`` is False.

    ``ends`` marks the last event of cases that are over; None where no end is known. ``times`` are seconds
    since 1970, NaN where they are not known and at padding.
    """

    tokens: Int[Tensor, "B M S"]
    frames: Int[Tensor, "B M"]
    observed: Int[Tensor, "B M"]
    mask: Bool[Tensor, "B M"]
    soft_frames: Int[Tensor, "B M K"] | None = None
    soft_weights: Float[Tensor, "B M K"] | None = None
    ends: Bool[Tensor, "B M"] | None = None
    times: Float[Tensor, "B M"] | None = None

    @classmethod
    def of_words(cls, tokens: Int[Tensor, "B M S"]) -> Batch:
        """Return documents without padding, whose frames are all latent."""
        nothing = torch.full_like(tokens[..., 0], -1)
        return cls(tokens, nothing, nothing, nothing < 0)

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def words(self) -> Int[Tensor, " B"]:
        """The number of words of each document."""
        return self.tokens.shape[-1] * self.mask.sum(1)

    def first(self, events: int) -> Batch:
        """Return the first events of each document."""
        return self.each(lambda part: part[:, :events])

    def to(self, device: torch.device | str) -> Batch:
        return self.each(lambda part: part.to(device))

    def rows(self, rows: Int[Tensor, " K"]) -> Batch:
        """Return some of the documents, each any number of times."""
        return self.each(lambda part: part[rows])

    def part(self, rows: slice) -> Batch:
        """Return some of the documents, with the same padding, since each position takes its noise."""
        return self.each(lambda part: part[rows])

    def each(self, change: Callable[[Tensor], Tensor]) -> Batch:
        """Return the batch with each of its parts changed."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: change(part) for name, part in parts.items() if part is not None})

    def labels(
        self, hard: Int[Tensor, "B M"] | None = None
    ) -> tuple[Int[Tensor, "N K"], Float[Tensor, "N K"]]:
        """Return the frames of the real events and their weights, which sum to 1, or to 0 where latent.

        A soft label counts where its first frame is the ``hard`` one, by default the observed one; any other
        hard label is certain.
        """
        label = (self.observed if hard is None else hard)[self.mask][:, None]
        frames, weights = label.clamp_min(0), (label >= 0).float()
        if self.soft_frames is None or self.soft_weights is None:
            return frames, weights
        soft, shares = self.soft_frames[self.mask], self.soft_weights[self.mask]
        agrees, more = (label >= 0) & (soft[:, :1] == label), soft.shape[1] - 1
        certain = functional.pad(frames, (0, more)), functional.pad(weights, (0, more))
        return soft.clamp_min(0).where(agrees, certain[0]), shares.where(agrees, certain[1])


def mask_frames(documents: Documents, observe: float, seed: int) -> NDArray[np.int32]:
    """Return the observed frames I of all events: each is kept with probability ε = ``observe``, else −1.

    They are drawn once per run for every event of the split, so that they depend neither on how documents are
    cut nor on windows. The draws do not depend on ε: frames observed at a lower ε are observed at a higher
    one.
    """
    draws, observed = generator(seed, "masks"), np.empty(len(documents.frames), np.int32)
    for start in range(0, len(observed), CHUNK):
        frames = documents.frames[start : start + CHUNK]
        kept = torch.rand(len(frames), generator=draws).numpy() < observe
        observed[start : start + CHUNK] = np.where(kept, frames, -1)
    return observed


def collate(
    documents: Documents,
    rows: NDArray[np.int64],
    observed: NDArray[np.int32] | None = None,
) -> Batch:
    """Return the documents ``rows``, padded to the longest of them.

    ``observed`` has the observed frames of all events, as ``mask_frames`` returns them; by default none is.
    """

    def gathered(values: Any, padding: int | float) -> Tensor:
        found = torch.from_numpy(documents.gather(values, rows, padding))
        return found.long() if found.dtype == torch.int32 else found

    frames = gathered(documents.frames, -1)
    padding = {"soft_frames": -1, "soft_weights": 0, "ends": False, "times": math.nan}
    further = {name: getattr(documents, name) for name in padding}
    return Batch(
        tokens=gathered(documents.tokens, 0),
        frames=frames,
        observed=torch.full_like(frames, -1) if observed is None else gathered(observed, -1),
        mask=torch.from_numpy(documents.places(rows)[1]),
        **{name: gathered(values, padding[name]) for name, values in further.items() if values is not None},
    )


def epoch_batches(count: int, batch: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Return the rows of each batch of an epoch: a permutation in parts whose sizes differ by at most one.

    A tiny last batch would have a noisy gradient, and fewer documents than there are processes.
    """
    order = torch.randperm(count, generator=generator(seed, "order", epoch)).numpy()
    return np.array_split(order, -(-count // batch))


def in_order(count: int, batch: int) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each batch in order, for evaluation."""
    for start in range(0, count, batch):
        checkpoint()
        yield np.arange(start, min(start + batch, count))


def within_bounds(lengths: NDArray[np.int32], batch: int) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of each batch in order, fewer of them if documents are long."""
    start = longest = 0
    for row, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if row > start and (row - start == batch or (row - start + 1) * longest > batch * EVENTS):
            checkpoint()
            yield np.arange(start, row)
            start, longest = row, length
    if start < len(lengths):
        yield np.arange(start, len(lengths))


def process_slice(rows: NDArray[np.int64], process: int, processes: int) -> slice:
    """Return the part of a batch for one of several processes."""
    start, stop = (len(rows) * p // processes for p in (process, process + 1))
    return slice(start, stop)
