"""Groups of documents: a column of a table (.csv, .tsv, .parquet) or of JSON lines that has their ids, too.

The files that a corpus was prepared from are such tables, and may have columns that `prepare` does not read.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ssdvae.data.readers.tabular import DOCUMENT
from ssdvae.errors import DataError, Malformed, UserError, shorten, shorten_text
from ssdvae.files import AnyPath, sha256, text_lines, translate_os_errors
from ssdvae.records import from_json

GROUP = "group"
"""What the column of groups is called in a file of them."""

Row = tuple[int, Any, Any]
"""The number of a line, an id and a group."""


def read_groups(path: AnyPath, column: str = GROUP) -> dict[str, str]:
    """The group of each document by its id; documents with none are left out.

    A table of two columns needs no names: first the id, then the group.
    """
    name = str(path).lower().removesuffix(".gz")
    rows: Iterable[Row]
    if name.endswith(".jsonl"):
        rows = _json_rows(path, column)
    elif name.endswith((".csv", ".tsv")):
        rows = _table_rows(path, column, "\t" if name.endswith(".tsv") else ",")
    elif name.endswith(".parquet"):
        rows = _parquet_rows(Path(path), column)
    else:
        hint = "name it by its ending"
        expected = ".csv, .tsv, .jsonl (plain or .gz) or .parquet"
        raise DataError(path, None, "a file of groups of an unknown kind", expected, hint)
    groups: dict[str, str] = {}
    for number, id, group in rows:
        if id is None or group is None or group == "":
            continue
        if groups.setdefault(str(id), str(group)) != str(group):
            found = (
                f"the document {shorten(id)} in the groups {shorten(groups[str(id)])} and {shorten(group)}"
            )
            raise DataError(path, number, found, "one group for each document")
    if not groups:
        raise DataError(path, None, f"no document with a {column!r}", "the id and the group of documents")
    return groups


def groups_of_sources(sources: Sequence[tuple[Path, str]], column: str) -> dict[str, str]:
    """The same from the files that a corpus was prepared from: their paths, and their SHA-256 then."""
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


def _table_rows(path: AnyPath, column: str, delimiter: str) -> Iterator[Row]:
    places: tuple[int, int] | None = None
    for number, text in text_lines(path):
        try:
            row = next(csv.reader([text.rstrip("\r\n")], delimiter=delimiter, strict=True), [])
        except csv.Error as error:
            raise DataError(path, number, str(error), "a line of a table") from error
        if not any(cell.strip() for cell in row):
            continue
        if places is None:
            places = _places(path, [cell.strip() for cell in row], column)
            continue
        if len(row) <= max(places):
            raise DataError(path, number, f"{len(row)} cells", f"at least {max(places) + 1}")
        yield number, row[places[0]].strip(), row[places[1]].strip()


def _places(path: AnyPath, head: list[str], column: str) -> tuple[int, int]:
    """Where the ids and the groups are."""
    folded = [name.lower() for name in head]
    ids = [folded.index(name) for name in DOCUMENT if folded.count(name) == 1]
    if ids and folded.count(column.lower()) == 1:
        return ids[0], folded.index(column.lower())
    if len(head) == 2 and column == GROUP:
        return 0, 1
    found = shorten_text(f"the columns {', '.join(head)}")
    raise DataError(path, None, found, f"the columns {' or '.join(DOCUMENT)}, and {column}")


def _json_rows(path: AnyPath, column: str) -> Iterator[Row]:
    for number, text in text_lines(path):
        if not text.strip():
            continue
        try:
            record = from_json(text)
            if not isinstance(record, dict) or not isinstance(record.get("id"), str | int):
                raise Malformed(shorten(record), f'{{"id": "a", "{column}": "early"}}')
            if not isinstance(record.get(column), str | int | float | None):
                raise Malformed(f"{shorten(record[column])} under {column!r}", "a word or a number")
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected) from error
        yield number, record["id"], record.get(column)


def _parquet_rows(path: Path, column: str) -> Iterator[Row]:
    with translate_os_errors(path, "read"):
        try:
            names = pq.read_schema(path).names
            place = _places(path, names, column)
            table = pq.read_table(path, columns=[names[place[0]], names[place[1]]])
        except pa.ArrowException as error:
            raise DataError(path, None, shorten_text(str(error)), "a Parquet file") from error
    rows = zip(*(table.column(n).to_pylist() for n in range(2)), strict=True)
    yield from ((number, id, group) for number, (id, group) in enumerate(rows, start=1))
