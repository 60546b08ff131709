"""Groups of documents: a column of a table (.csv, .tsv, .parquet) or of JSON lines that also has their ids.

The files that a corpus was prepared from are such tables, and may have columns that `prepare` does not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ssdvae.data.readers.rows import DOCUMENT, json_records, table_cells
from ssdvae.io.errors import DataError, UserError, shorten, shorten_text
from ssdvae.io.files import AnyPath, sha256, stop_at_first_error

GROUP = "group"
"""The default name of the column of groups."""

FORMATS = {".jsonl": "jsonl", ".csv": "csv", ".tsv": "csv", ".parquet": "parquet"}


def read_groups(path: AnyPath, column: str = GROUP) -> dict[str, str]:
    """Return the group of each document by its id; documents without a group are left out.

    A table of two columns needs no names: the first is the id, the second the group.
    """
    path = Path(path)
    format = FORMATS.get(Path(path.name.lower().removesuffix(".gz")).suffix)
    if format is None:
        expected = ".csv, .tsv, .jsonl (plain or .gz) or .parquet"
        raise DataError(path, None, "a file of groups of an unknown kind", expected, "name it by its ending")
    if format == "jsonl":
        rows = _json_rows(path, column)
    else:
        choose = partial(_find_places, path, column)
        rows = table_cells(path, format, stop_at_first_error, choose)
    groups: dict[str, str] = {}
    for number, cells in rows:
        id, group = (cell.strip() if isinstance(cell, str) else cell for cell in cells)
        if id is None or group in (None, ""):
            continue
        first = groups.setdefault(str(id), str(group))
        if first != str(group):
            found = f"the document {shorten(id)} in the groups {shorten(first)} and {shorten(group)}"
            raise DataError(path, number, found, "one group for each document")
    if not groups:
        raise DataError(path, None, f"no document with a {column!r}", "the id and the group of documents")
    return groups


def groups_of_sources(sources: Sequence[tuple[Path, str]], column: str) -> dict[str, str]:
    """Return the groups in the files that a corpus was prepared from, given their paths and SHA-256."""
    there = [path for path, digest in sources if path.is_file() and sha256(path) == digest]
    if not there:
        raise UserError(
            f"--compare {column}: there is no such file, and those that the corpus was prepared from are not "
            "where they were\nname a file with the ids and groups of documents"
        )
    groups: dict[str, str] = {}
    problem: DataError | None = None
    for path in there:
        try:
            groups |= read_groups(path, column)
        except DataError as error:
            problem = error
    if not groups and problem is not None:
        raise UserError(
            f"--compare {column}: there is no such file, nor such a column in those that the corpus was "
            f"prepared from\n{problem}"
        ) from problem
    return groups


def _find_places(path: Path, column: str, header: list[str]) -> tuple[int, int]:
    """Return the indices of the ids and of the groups."""
    names = [name.strip().lower() for name in header]
    ids = [names.index(name) for name in DOCUMENT if names.count(name) == 1]
    if ids and names.count(column.lower()) == 1:
        return ids[0], names.index(column.lower())
    if len(names) == 2 and column == GROUP:
        return 0, 1
    found = shorten_text(f"the columns {', '.join(header)}")
    raise DataError(path, None, found, f"the columns {' or '.join(DOCUMENT)}, and {column}")


def _json_rows(path: Path, column: str) -> Iterator[tuple[int, tuple[Any, Any]]]:
    for number, record in json_records(path, stop_at_first_error):
        if not isinstance(record.get("id"), str | int):
            raise DataError(path, number, shorten(dict(record)), f'{{"id": "a", "{column}": "early"}}')
        if not isinstance(record.get(column), str | int | float | None):
            raise DataError(path, number, f"{shorten(record[column])} under {column!r}", "a word or a number")
        yield number, (record["id"], record.get(column))
