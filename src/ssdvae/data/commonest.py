"""The commonest known frame of a head: what can be said of frames by counting, and a model has to beat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.integer[Any]]


def commonest_frames(heads: Numbers, observed: Numbers, words: int) -> NDArray[np.int64]:
    """For each of ``words`` words, the frame that was observed most often in events of which it is the head.

    ``heads`` and ``observed`` are those of the training events, in any shape; −1 where no frame is observed.
    A word that was never the head of an event with a known frame has the commonest frame of all, and all
    words have −1 if no frame was observed. Of equally common frames, the first by number.
    """
    seen = observed >= 0
    if not seen.any():
        return np.full(words, -1)
    frames = observed[seen].astype(np.int64)
    width = 1 + frames.max()
    # A number for each pair.
    pairs, counts = np.unique(heads[seen] * width + frames, return_counts=True)
    head, frame = np.divmod(pairs, width)
    table = np.full(words, np.bincount(frames).argmax())
    # The last entry of a head is the one that stays: its most frequent frame.
    order = np.lexsort((-frame, counts))
    table[head[order]] = frame[order]
    return table


def commonest_accuracy(table: NDArray[np.int64], heads: Numbers, frames: Numbers) -> float | None:
    """How often ``table`` has the known frame; None where no frame is known, or none was observed."""
    known = frames >= 0
    if not known.any() or (table < 0).all():
        return None
    return float((table[heads[known]] == frames[known]).mean())
