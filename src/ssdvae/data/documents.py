"""Documents of any length in numbers: the events of a split one after another, and where each document is.

A document is a stretch of events, so that cutting it, or reading it as windows that overlap, copies nothing.
What belongs to an event, such as whether its frame is observed, is the same in all stretches that have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssdvae.data.joined import joined

Number = TypeVar("Number", np.int32, np.int64, np.float32, np.float64)


@dataclass(frozen=True)
class Documents:
    """Some documents; events that are in none of them are passed over."""

    ids: pa.ChunkedArray  # N
    tokens: NDArray[np.int32]  # E S: the words in the slots of each event
    frames: NDArray[np.int32]  # E, −1 where there is none
    starts: NDArray[np.int64]  # N: the first event of each document
    lengths: NDArray[np.int32]  # N: and how many it has, at least 1

    @classmethod
    def of_events(
        cls,
        ids: pa.ChunkedArray,
        tokens: NDArray[np.int32],
        frames: NDArray[np.int32],
        lengths: NDArray[np.int32],
    ) -> Self:
        """Documents whose events stand one after another, with nothing between."""
        ends = np.cumsum(lengths, dtype=np.int64)
        return cls(ids, tokens, frames, ends - lengths, lengths)

    @classmethod
    def of_padded(
        cls,
        ids: pa.ChunkedArray,
        tokens: NDArray[np.int32],
        frames: NDArray[np.int32],
        lengths: NDArray[np.int32],
    ) -> Self:
        """Documents that are padded to as many events each: ``tokens`` N M S, ``frames`` N M."""
        count, most = frames.shape
        starts = most * np.arange(count, dtype=np.int64)
        return cls(ids, tokens.reshape(count * most, tokens.shape[-1]), frames.reshape(-1), starts, lengths)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Documents of several files, one file after another."""
        if len(parts) == 1:
            return parts[0]
        tokens, frames = (joined([getattr(part, key) for part in parts]) for key in ("tokens", "frames"))
        before = np.cumsum([0, *(len(part.frames) for part in parts)])
        starts = np.concatenate([part.starts + n for part, n in zip(parts, before, strict=False)])
        ids = pa.chunked_array([chunk for part in parts for chunk in part.ids.chunks], pa.string())
        return cls(ids, tokens, frames, starts, np.concatenate([part.lengths for part in parts]))

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def events(self) -> int:
        """Of all documents together."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def longest(self) -> int:
        """Events of the longest document."""
        return int(self.lengths.max(initial=0))

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Some of the documents, in this order."""
        ids = self.ids.take(pa.array(rows))
        return replace(self, ids=ids, starts=self.starts[rows], lengths=self.lengths[rows])

    def first(self, events: int | None) -> Self:
        """The first events of each document; None for all."""
        most = self.longest if events is None else events
        return replace(self, lengths=np.minimum(self.lengths, most).astype(np.int32))

    def windows(self, size: int, stride: int) -> Self:
        """Each document as stretches of ``size`` events, of which one begins every ``stride`` events.

        The last one ends where the document ends. A document of no more than ``size`` events is one window.
        """
        assert 1 <= stride <= size, "no event may be between two windows"
        beyond = np.maximum(self.lengths.astype(np.int64) - size, 0)
        counts = 1 + -(-beyond // stride)
        rows = np.repeat(np.arange(len(self)), counts)
        number = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
        parts = self.take(rows)
        return replace(
            parts,
            starts=parts.starts + np.minimum(number * stride, beyond[rows]),
            lengths=np.minimum(parts.lengths, size).astype(np.int32),
        )

    def places(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where the events of some documents stand, padded to the longest: [B M], and what is no padding."""
        lengths = self.lengths[rows]
        number = np.arange(int(lengths.max(initial=0)))
        mask = number < lengths[:, None]
        # At padding it is an event of the document, so that there is something to be masked.
        return self.starts[rows][:, None] + np.minimum(number, lengths[:, None] - 1), mask

    def gathered(
        self, values: NDArray[Number], rows: NDArray[np.int64], padding: int | float
    ) -> NDArray[Number]:
        """What belongs to the events of some documents: [E …] → [B M …]."""
        places, mask = self.places(rows)
        found = values[places]
        found[~mask] = padding
        return found

    def padded(self, values: NDArray[Number], padding: int | float) -> NDArray[Number]:
        """The same of all documents: [E …] → [N M …]."""
        return self.gathered(values, np.arange(len(self)), padding)

    def parts(self) -> list[slice]:
        """Where the events of each document stand."""
        return [slice(s, s + n) for s, n in zip(self.starts.tolist(), self.lengths.tolist(), strict=True)]

    def rows(self) -> NDArray[np.int64]:
        """Which document each event belongs to, one document after another."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def in_order(self) -> NDArray[np.int64]:
        """Where these events stand, one document after another: what ``rows`` speaks of."""
        before = np.cumsum(self.lengths, dtype=np.int64) - self.lengths
        rows = self.rows()
        return self.starts[rows] + np.arange(len(rows)) - before[rows]
