"""Arrays one after another, read as if they were one: what is on the disk is read when it is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Joined:
    """As much of an array as is asked of long ones: some of its rows, a column, or (``np.asarray``) all."""

    def __init__(self, parts: Sequence[NDArray[np.int32]]) -> None:
        self.parts = list(parts)
        self.ends = np.cumsum([len(part) for part in self.parts])

    def __len__(self) -> int:
        return int(self.ends[-1])

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self), *self.parts[0].shape[1:])

    def column(self, number: int) -> Joined:
        return Joined([part[..., number] for part in self.parts])

    def __getitem__(self, rows: NDArray[np.int64] | slice | tuple[EllipsisType, int]) -> Any:
        """Rows, in any shape of their numbers; or ``[..., k]``, a column of all rows, joined again."""
        if isinstance(rows, tuple):
            return self.column(rows[1])
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        found = np.empty((*rows.shape, *self.shape[1:]), np.int32)
        places = np.searchsorted(self.ends, rows, side="right")
        for number in np.unique(places):
            here, part = places == number, self.parts[number]
            found[here] = part[rows[here] - (self.ends[number] - len(part))]
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.concatenate(self.parts, dtype=dtype)
