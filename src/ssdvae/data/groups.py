"""Groups of documents: a table (.csv, .tsv) or JSON lines, with the ``id`` and the ``group`` of each."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from ssdvae.errors import DataError, Malformed, shorten
from ssdvae.files import AnyPath, text_lines
from ssdvae.records import from_json

KEYS = ("id", "group")


def read_groups(path: AnyPath) -> dict[str, str]:
    """The group of each document by its id; plain or .gz. A table of two columns needs no other names."""
    name = str(path).lower().removesuffix(".gz")
    if not name.endswith((".csv", ".tsv", ".jsonl")):
        hint = "name it by its ending, plain or .gz"
        raise DataError(path, None, "a file of groups of an unknown kind", ".csv, .tsv or .jsonl", hint)
    rows = _json_rows(path) if name.endswith(".jsonl") else _table_rows(path, name.endswith(".tsv"))
    groups: dict[str, str] = {}
    for number, (id, group) in rows:
        if groups.setdefault(id, group) != group:
            found = f"the document {shorten(id)} in the groups {shorten(groups[id])} and {shorten(group)}"
            raise DataError(path, number, found, "one group for each document")
    if not groups:
        raise DataError(path, None, "no documents", "the id and the group of a document on each line")
    return groups


def _table_rows(path: AnyPath, tabs: bool) -> Iterator[tuple[int, tuple[str, str]]]:
    places: tuple[int, int] | None = None
    for number, text in text_lines(path):
        try:
            row = next(csv.reader([text.rstrip("\r\n")], delimiter="\t" if tabs else ",", strict=True), [])
        except csv.Error as error:
            raise DataError(path, number, str(error), "a line of a table") from error
        if not any(cell.strip() for cell in row):
            continue
        if places is None:
            places = _places(path, number, [cell.strip().lower() for cell in row])
            continue
        if len(row) <= max(places):
            raise DataError(path, number, f"{len(row)} cells", f"at least {max(places) + 1}")
        yield number, (row[places[0]].strip(), row[places[1]].strip())


def _places(path: AnyPath, number: int, head: list[str]) -> tuple[int, int]:
    if all(head.count(key) == 1 for key in KEYS):
        return head.index("id"), head.index("group")
    if len(head) == 2:
        return 0, 1
    raise DataError(path, number, f"the columns {', '.join(head)}", "the columns id and group")


def _json_rows(path: AnyPath) -> Iterator[tuple[int, tuple[str, str]]]:
    for number, text in text_lines(path):
        if not text.strip():
            continue
        try:
            record = from_json(text)
            if not isinstance(record, dict) or any(not _plain(record.get(key)) for key in KEYS):
                raise Malformed(shorten(record), '{"id": "a", "group": "early"}')
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected) from error
        yield number, (str(record["id"]), str(record["group"]))


def _plain(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)
