"""Arrays one after another, read as if they were one: what is on the disk is read when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray


def joined(parts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """One array of several, to all who use it; only of what is asked for is there a copy."""
    return parts[0] if len(parts) == 1 else cast("NDArray[np.int32]", Joined(parts))


class Joined(NDArrayOperatorsMixin):
    """Gives some rows, or a column, without reading the others; for anything else it becomes one array."""

    def __init__(self, parts: Sequence[NDArray[np.int32]]) -> None:
        self.parts = list(parts)
        self.ends = np.cumsum([len(part) for part in self.parts])

    def __len__(self) -> int:
        return int(self.ends[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self.parts[0].shape[1:])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, tuple) and key[0] in (Ellipsis, slice(None)):
            return Joined([part[key] for part in self.parts])
        if isinstance(key, slice):
            return self._rows(np.arange(*key.indices(len(self))))
        if isinstance(key, np.ndarray) and key.dtype.kind == "i":
            return self._rows(key)
        return np.asarray(self)[key]

    def _rows(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """Some rows, in any shape of their numbers."""
        found = np.empty((*rows.shape, *self.shape[1:]), np.int32)
        places = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(places):
            here, part = places == number, self.parts[number]
            found[here] = part[rows[here] - (self.ends[number] - len(part))]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.concatenate(self.parts, dtype=dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(x) if isinstance(x, Joined) else x for x in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self), name)
