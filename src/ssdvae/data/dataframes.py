"""Logs as pandas DataFrames: read like a Parquet table, and given back with answers as further columns."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa
import pyarrow.parquet as pq

from ssdvae.data.columns import TRANSITION, Columns, case_name
from ssdvae.io.errors import UserError

if TYPE_CHECKING:
    import pandas

PREFIX = "ssdvae:"
"""Begins the names of columns that answers add to a log."""


def is_dataframe(value: object) -> TypeGuard[pandas.DataFrame]:
    """Tell whether something is a pandas DataFrame, without importing pandas."""
    loaded = sys.modules.get("pandas")
    return loaded is not None and isinstance(value, loaded.DataFrame)


@contextmanager
def dataframe_file(table: pandas.DataFrame, name: str = "dataframe") -> Iterator[Path]:
    """Yield a temporary Parquet file with the rows of a DataFrame, in their order."""
    with tempfile.TemporaryDirectory(prefix="ssdvae-") as folder:
        path = Path(folder) / f"{name}.parquet"
        names = [str(column) for column in table.columns]
        columns = [_array(table.iloc[:, place]) for place in range(len(names))]
        pq.write_table(pa.table(columns, names=names), path)
        yield path


def _array(column: Any) -> pa.Array:
    try:
        return pa.Array.from_pandas(column)
    except pa.ArrowException:  # values of several types: a log has words, and numbers as words
        return pa.array([None if value != value or value is None else str(value) for value in column])


def with_answers(table: pandas.DataFrame, answers: pandas.DataFrame, columns: Columns) -> pandas.DataFrame:
    """Return a log with the columns of answers that have a row per event, in the order of the log.

    Events of a case are numbered from 1 by time, and by row where times are equal.
    """
    rows = table.reset_index(drop=True)
    cases = rows[columns.case].map(case_name)
    left_out = cases.isna()
    if columns.lifecycle == "complete":
        left_out |= ~rows[TRANSITION].fillna("complete").str.strip().str.lower().isin(["complete", ""])
    rows = rows[~left_out]
    ordered = rows if columns.time is None else rows.sort_values(columns.time, kind="stable")
    numbers = cases[ordered.index].groupby(cases[ordered.index]).cumcount() + 1
    keys = list(zip(cases[rows.index], numbers[rows.index], strict=True))
    found = answers.set_index(["id", "event"]).drop(columns=[*columns.slots, "gold"], errors="ignore")
    if missing := [case for case, number in keys if (case, number) not in found.index]:
        raise UserError(f"case {missing[0]} has rows without an answer\nask about the whole DataFrame")
    placed = found.reindex(keys).set_axis(rows.index).reindex(range(len(table))).add_prefix(PREFIX)
    return table.assign(**{name: placed[name].array for name in placed.columns})
