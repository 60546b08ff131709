"""A table or a log as documents for `prepare`: read once, by its columns, into JSON lines that pass away."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ssdvae.config import ColumnSettings
from ssdvae.data.columns import Columns, columns_of
from ssdvae.data.readers import Skipped, known_format
from ssdvae.data.readers.grouped import grouped
from ssdvae.data.readers.jsonl import write_jsonl
from ssdvae.data.readers.rows import column_names, has_rows
from ssdvae.data.shards import list_shards
from ssdvae.data.source import Source
from ssdvae.errors import Malformed, UserError, shorten_text
from ssdvae.files import stop_at_first_error
from ssdvae.progress import Progress, track


def asked_columns(settings: ColumnSettings, path: Path, format: str | None) -> Columns | None:
    """The columns that the settings name, of a file of that kind; None if they name none."""
    if path.is_dir():
        if not settings.named_columns:
            return None
        path = _first_of(path, format)
    choice = known_format(path, format)
    try:
        columns = columns_of(settings, log=choice == "xes")
    except Malformed as error:
        there = shorten_text(", ".join(column_names(path, choice)) if has_rows(path, choice) else "none", 400)
        raise UserError(f"{error}\nthe columns of {path} are: {there}") from error
    if columns is not None and not has_rows(path, choice):
        flags = ", ".join(f"--{name}" for name in settings.named_columns)
        raise UserError(f"{path} has documents, not the rows of a table: leave out {flags}")
    return columns


def _first_of(folder: Path, format: str | None) -> Path:
    """The first shard of a table in many files, which are all of one kind."""
    shards = list_shards(folder)
    if not shards:
        raise UserError(
            f"{folder} is a folder without shards (part-00000.csv, …; or .tsv, .jsonl, .parquet)\n"
            "a table whose columns are named is one file, or a folder of such"
        )
    formats = {known_format(shard, format): shard.name for shard in shards}
    if len(formats) > 1:
        raise UserError(f"{folder} has shards of different kinds: {', '.join(formats.values())}")
    return shards[0]


@dataclass(frozen=True)
class Given:
    """What there is to prepare: documents, and the columns that they are from."""

    source: Source
    columns: Columns | None = None
    skipped: Mapping[str, int] = field(default_factory=dict)  # rows, by the file


@contextmanager
def as_documents(source: Source, folder: Path, progress: Progress) -> Iterator[Given]:
    """The same source, if it has documents; the documents of its rows, if it is a table.

    The rows are read first from the file of the training split, of which the bins are.
    """
    train = source.path("train")
    columns = asked_columns(source.settings, train, source.format)
    if columns is None:
        yield Given(source)
        return
    settings = replace(source.settings, slots=",".join(columns.slots))
    folder.mkdir()
    try:
        files: dict[Path, Path] = {}
        skipped = {}
        for path in dict.fromkeys([train, *source.given]):
            bad = Skipped()
            files[path] = folder / f"{len(files)}.jsonl"
            columns = _write(source, path, columns, files[path], bad, progress)
            skipped[str(path)] = bad.count
        sources = source.sources
        written = (
            files[sources] if isinstance(sources, Path) else {split: files[p] for split, p in sources.items()}
        )
        yield Given(Source(written, settings, "jsonl", False), columns, skipped if source.skip_bad else {})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(
    source: Source, path: Path, columns: Columns, out: Path, bad: Skipped, progress: Progress
) -> Columns:
    """Write the documents of a table; returns the columns with the edges of their bins."""
    bins = source.settings.bins

    def in_training(case: str) -> bool:
        return "train" in source.splits(path, case)

    with grouped(
        path,
        known_format(_first_of(path, source.format) if path.is_dir() else path, source.format),
        columns,
        bad if source.skip_bad else stop_at_first_error,
        binned=frozenset(bins),
        counts=in_training,
        folder=out.parent,
        progress=progress,
    ) as rows:
        if not columns.bins:
            columns = replace(columns, bins=rows.edges(bins))
        write_jsonl(out, track(progress, rows.documents(columns), "sorting"), columns.slots)
    return columns
