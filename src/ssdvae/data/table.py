"""Arrow files of numbers: read as they were written, or refused with the place of what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ssdvae.errors import DataError, shorten

EXPECTED = "a split that `ssdvae prepare` wrote"
AGAIN = "prepare the corpus again"


def read_table(path: Path, layout: pa.Schema) -> pa.Table:
    """The table of a file, which has the columns of ``layout``, and no cell left empty."""
    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, MemoryError) as error:
        raise DataError(path, None, shorten(str(error), 200), EXPECTED, AGAIN) from error
    for column in layout:
        found = table.schema.get_all_field_indices(column.name)
        if len(found) != 1:
            raise DataError(path, None, f"{len(found)} columns {column.name!r}", "one", AGAIN)
        if (kind := table.schema.field(found[0]).type) != column.type:
            raise DataError(path, None, f"{kind} in {column.name!r}", str(column.type), AGAIN)
        if _nulls(table.column(column.name)):
            raise DataError(path, None, f"empty cells in {column.name!r}", "none", AGAIN)
    return table


def _nulls(column: pa.ChunkedArray) -> int:
    inner = 0
    if pa.types.is_list(column.type) or pa.types.is_fixed_size_list(column.type):
        inner = sum(chunk.flatten().null_count for chunk in column.chunks)
    return int(column.null_count) + inner


def numbers(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """All numbers of a column of lists, one list after another."""
    parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate([np.empty(0, np.int32), *parts]) if len(parts) != 1 else np.asarray(parts[0])


def list_lengths(column: pa.ChunkedArray) -> NDArray[np.int32]:
    """How many numbers there are in each row."""
    return np.asarray(pc.list_value_length(column).to_numpy(), dtype=np.int32)


def check_range(
    path: Path,
    name: str,
    values: NDArray[Any],
    lowest: int,
    highest: int,
    starts: NDArray[np.int64] | None = None,
) -> None:
    """Refuse numbers that stand for nothing; the first index of the array is the document.

    With ``starts`` it is an event, and these are the first events of the documents.
    """
    if values.size and (values.min() < lowest or values.max() > highest):
        wrong = (values < lowest) | (values > highest)
        row = int(np.argwhere(wrong)[0][0])
        if starts is not None:
            row = int(np.searchsorted(starts, row, side="right")) - 1
        found = f"{values[wrong][0]} in {name!r}"
        raise DataError(path, row + 1, found, f"from {lowest} to {highest:,}", AGAIN, unit="document")
