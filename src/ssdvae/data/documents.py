"""Documents of any length as arrays: the events of a split one after another, and where each document is.

A document is a slice of the events, so that cutting it, or reading it in overlapping windows, copies nothing.
What belongs to an event, such as its observed frame, is the same in every window that contains it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, repeat
from typing import Annotated, Any, Self, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ssdvae.data.events import Document, Event
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.io.errors import Malformed
from ssdvae.io.records import LARGEST, Record
from ssdvae.training.options import ReadingOptions

Number = TypeVar("Number", np.int32, np.int64, np.float32, np.float64, np.bool_)


@dataclass(frozen=True)
class Documents:
    """Documents as slices of one sequence of events; events that belong to none of them are ignored."""

    ids: pa.ChunkedArray  # N
    tokens: NDArray[np.int32]  # E S: the words in the slots of each event
    frames: NDArray[np.int32]  # E, −1 where there is none
    starts: NDArray[np.int64]  # N: the first event of each document
    lengths: NDArray[np.int32]  # N: the number of its events, at least 1
    soft_frames: NDArray[np.int32] | None = None  # E K: of the annotator, the likeliest first
    soft_weights: NDArray[np.float32] | None = None  # E K
    ends: NDArray[np.bool_] | None = None  # E: the last event of a case that is over; None where none ends
    times: NDArray[np.float64] | None = None  # E: seconds since 1970; None where they are not known

    @classmethod
    def of_events(
        cls,
        ids: pa.ChunkedArray,
        tokens: NDArray[np.int32],
        frames: NDArray[np.int32],
        lengths: NDArray[np.int32],
        ends: NDArray[np.bool_] | None = None,
        times: NDArray[np.float64] | None = None,
    ) -> Self:
        """Return documents whose events stand one after another."""
        starts = np.cumsum(lengths, dtype=np.int64) - lengths
        return cls(ids, tokens, frames, starts, lengths, ends=ends, times=times)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Return the documents of several files, one file after another."""
        if len(parts) == 1:
            return parts[0]
        keys = ("tokens", "frames", "soft_frames", "soft_weights", "ends", "times")
        columns = {key: [getattr(part, key) for part in parts] for key in keys}
        joined = {key: lazy_concat(arrays) for key, arrays in columns.items() if arrays[0] is not None}
        before = np.cumsum([0, *(len(part.frames) for part in parts)])
        starts = np.concatenate([part.starts + n for part, n in zip(parts, before, strict=False)])
        ids = pa.chunked_array([chunk for part in parts for chunk in part.ids.chunks], pa.string())
        lengths = np.concatenate([part.lengths for part in parts])
        return cls(ids=ids, starts=starts, lengths=lengths, **joined)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def events(self) -> int:
        """The number of events of all documents."""
        return int(self.lengths.sum(dtype=np.int64))

    @property
    def longest(self) -> int:
        """The number of events of the longest document."""
        return int(self.lengths.max(initial=0))

    def count_slots(self, vocabulary: Vocabulary) -> Vocabulary:
        """Return the vocabulary with the counts of these documents: words by slot, repeated arguments."""
        places = self.in_order()
        slots = [self.tokens[places, slot] for slot in range(self.tokens.shape[1])]
        counts = np.stack([np.bincount(words, minlength=len(vocabulary)) for words in slots])
        repeated = np.zeros(len(places), dtype=np.bool_)
        for one, other in combinations(slots[1:], 2):
            repeated |= (one == other) & (one != vocabulary.missing) & (one != vocabulary.unknown)
        return Vocabulary(vocabulary.names, vocabulary.counts, counts, int(repeated.sum()))

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Return some of the documents, in this order."""
        ids = self.ids.take(pa.array(rows))
        return replace(self, ids=ids, starts=self.starts[rows], lengths=self.lengths[rows])

    def first(self, events: int | None) -> Self:
        """Return the first events of each document; None for all."""
        most = self.longest if events is None else events
        return replace(self, lengths=np.minimum(self.lengths, most).astype(np.int32))

    def windows(self, size: int, stride: int) -> Self:
        """Return each document as windows of ``size`` events, of which one begins every ``stride`` events.

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
        """Return the indices of the events of some documents, padded to the longest [B M], and their mask."""
        lengths = self.lengths[rows]
        number = np.arange(int(lengths.max(initial=0)))
        mask = number < lengths[:, None]
        # At padding it is an event of the document, so that there is something to be masked.
        return self.starts[rows][:, None] + np.minimum(number, lengths[:, None] - 1), mask

    def gather(
        self, values: NDArray[Number], rows: NDArray[np.int64], padding: int | float
    ) -> NDArray[Number]:
        """Return the values of the events of some documents: [E …] → [B M …]."""
        places, mask = self.places(rows)
        found = values[places]
        found[~mask] = padding
        return found

    def padded(self, values: NDArray[Number], padding: int | float) -> NDArray[Number]:
        """Return the values of the events of all documents: [E …] → [N M …]."""
        return self.gather(values, np.arange(len(self)), padding)

    def parts(self) -> list[slice]:
        """Return the slice of the events of each document."""
        return [slice(s, s + n) for s, n in zip(self.starts.tolist(), self.lengths.tolist(), strict=True)]

    def rows(self) -> NDArray[np.int64]:
        """Return the document of each event, one document after another."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def in_order(self) -> NDArray[np.int64]:
        """Return the indices of the events, one document after another, aligned with ``rows``."""
        before = np.cumsum(self.lengths, dtype=np.int64) - self.lengths
        rows = self.rows()
        return self.starts[rows] + np.arange(len(rows)) - before[rows]

    def decode(self, vocabulary: Vocabulary, frames: Inventory) -> list[Document]:
        """Return the documents in words; out-of-vocabulary words are ``<unk>``, as a model sees them."""

        def event(tokens: Sequence[int], frame: int, time: float | None) -> Event:
            words = [vocabulary.name(word) for word in tokens]
            found = Event.of_words(words, frames.name(frame) if frame >= 0 else None)
            return found if time is None else found.changed(time=time)

        def times(part: slice) -> Iterable[float | None]:
            return repeat(None) if self.times is None else self.times[part].tolist()

        return [
            Document(
                str(id),
                tuple(map(event, self.tokens[part].tolist(), self.frames[part].tolist(), times(part))),
            )
            for id, part in zip(self.ids.to_pylist(), self.parts(), strict=True)
        ]


def describe_cut(documents: Documents, events: int | None) -> str | None:
    """Return a sentence about the events that are lost if only the first ones are read; None if none are."""
    kept, total = documents.first(events).events, documents.events
    if kept == total:
        return None
    first = "the first event" if events == 1 else f"the first {events} events"
    lost = total - kept
    return f"{first} of each document: leaves out {lost / total:.0%} of the events ({lost:,} of {total:,})"


def lazy_concat(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return several arrays as one that reads from disk only the rows that are used."""
    return parts[0] if len(parts) == 1 else cast("NDArray[Any]", LazyConcat(parts))


class LazyConcat(NDArrayOperatorsMixin):
    """A concatenation of arrays. Rows and columns are copied on demand; other operations copy all of it."""

    def __init__(self, parts: Sequence[NDArray[Any]]) -> None:
        self.parts = list(parts)
        self.ends = np.cumsum([len(part) for part in self.parts])

    def __len__(self) -> int:
        return int(self.ends[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self.parts[0].shape[1:])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and isinstance(key[0], np.ndarray):
            return self[:, *key[1:]][key[0]]
        if isinstance(key, tuple) and key[0] in (Ellipsis, slice(None)):
            return LazyConcat([part[key] for part in self.parts])
        if isinstance(key, slice):
            return self._rows(np.arange(*key.indices(len(self))))
        if isinstance(key, np.ndarray) and key.dtype.kind == "i":
            return self._rows(key)
        return np.asarray(self)[key]

    def _rows(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the rows of an array of indices of any shape."""
        found = np.empty((*rows.shape, *self.shape[1:]), self.parts[0].dtype)
        places = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(places):
            here, part = places == number, self.parts[number]
            found[here] = part[rows[here] - (self.ends[number] - len(part))]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.concatenate(self.parts, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(x) if isinstance(x, LazyConcat) else x for x in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)


Length = Annotated[int, Field(ge=1, lt=LARGEST)]
"""A number of events."""


class ContextWindow(Record):
    """The part of a document that a model reads at once, as in its training; all None if that is unknown."""

    events: Length | None = None  # only the first ones of each document
    window: Length | None = None  # longer documents are read in windows of this length
    stride: Length | None = None  # events between the beginnings of two windows
    longest: Length | None = None  # sequence in training

    @classmethod
    def of(cls, options: ReadingOptions) -> Self:
        """Return the context window that these options ask for."""
        return cls(events=options.events, window=options.window, stride=options.window_stride)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.window is None) != (self.stride is None):
            raise Malformed(f"a window of {self.window} and a stride of {self.stride}", "both, or none")
        if self.window is not None and self.stride is not None and self.stride > self.window:
            raise Malformed(f"a stride of {self.stride}", f"at most {self.window}, the window")
        return self

    @property
    def measured(self) -> int | None:
        """The number of events of each document that evaluation reads by default; None for all."""
        return self.events or self.window

    @property
    def sentence(self) -> str:
        """A sentence for the model card."""
        if self.longest is None:
            return ""
        first = "" if self.events is None else f"the first {self.events} events of "
        if self.window is None:
            pieces = f"at most {self.longest} events in one piece"
        else:
            pieces = f"in windows of {self.window} events, one every {self.stride}"
        return f"It was trained on {first}documents, {pieces}."

    def beyond(self, events: int) -> str | None:
        """Return a warning for a document of this length, if the model was trained on none so long."""
        if self.longest is None or self.window is not None or events <= self.longest:
            return None
        return (
            f"a document has {events} events, and the model was trained on at most {self.longest}: "
            "beyond them its frames lose their place\n"
            "train ssdvae-exact, the default model, or with --window"
        )

    def parts(self, documents: Documents) -> Documents:
        """Return the sequences to train on."""
        cut = documents.first(self.events)
        if self.window is None or self.stride is None:
            return cut
        return cut.windows(self.window, self.stride)
