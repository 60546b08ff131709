"""Folders of shards: part-00000.jsonl.gz, part-00001.jsonl.gz, …, or the same in Parquet.

A shard is there or not: it is written under another name and then renamed. While a folder is being made,
``.unfinished`` in it says by which command, and has a note for each shard that is done. So any process on any
machine that sees the folder can make a shard, and the same command goes on with those that are missing.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from ssdvae.errors import UserError
from ssdvae.files import atomic_write, open_text_for_writing, translate_os_errors
from ssdvae.locks import held
from ssdvae.records import from_json
from ssdvae.shapes import check_shape

UNFINISHED = ".unfinished"

SHARD = re.compile(r"part-\d+.*\.((jsonl|ndjson|csv|tsv)(\.gz)?|parquet)", re.IGNORECASE)
"""The names of shards, ours and those of other tools."""


def shard_name(number: int, ending: str) -> str:
    return f"part-{number:05d}.{ending}"


def is_file_name(out: Path) -> bool:
    """Whether output goes into one file; any other name is that of a folder of shards."""
    return out.name.endswith((".jsonl", ".jsonl.gz"))


def list_shards(folder: Path) -> list[Path]:
    """The shards of a folder, in their order; none where it is not a folder, or one of other files."""
    if not folder.is_dir():
        return []
    if (folder / UNFINISHED).exists():
        raise UserError(
            f"{folder} is unfinished: some of its shards are not there yet\n"
            "give the command again that was making it; it goes on where it stopped"
        )
    with translate_os_errors(folder, "read"):
        return sorted(path for path in folder.iterdir() if SHARD.fullmatch(path.name))


class Note(TypedDict):
    """What is known of a shard that is done."""

    read: int
    counts: dict[str, int]
    errors: list[str]
    bytes: int


def read_note(shard: Path) -> Note | None:
    """The note of a shard, if that is done and still as it was left."""
    with contextlib.suppress(OSError, ValueError):
        note: Note = from_json(_note(shard).read_bytes())
        check_shape(note, Note)
        if shard.stat().st_size == note["bytes"]:
            return note
    return None


def write_note(shard: Path, read: int, counts: Mapping[str, int], errors: Iterable[str]) -> None:
    """Say that a shard, which is in its place, is done."""
    note = Note(read=read, counts=dict(counts), errors=list(errors), bytes=shard.stat().st_size)
    with atomic_write(_note(shard)) as path:
        path.write_text(json.dumps(note), encoding="utf-8")


def _note(shard: Path) -> Path:
    return shard.parent / UNFINISHED / f"{shard.name}.json"


@contextlib.contextmanager
def unfinished(folder: Path, header: Mapping[str, Any]) -> Iterator[None]:
    """A folder of shards while it is being made; it is finished if all goes well.

    ``header`` says of what and how: only the same work is gone on with.
    """
    notes = folder / UNFINISHED
    with contextlib.ExitStack() as stack:
        with translate_os_errors(folder, "write"):
            if folder.exists() and not notes.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise UserError(f"{folder} is already there; remove it, or choose another --out")
            notes.mkdir(parents=True, exist_ok=True)
            busy = f"another process is writing {folder}\nwait for it, or choose another --out"
            stack.enter_context(held(notes / "lock", busy))
            _same_work(folder, notes / "work.json", header)
        try:
            yield
        except BaseException:
            if not any(SHARD.fullmatch(path.name) for path in folder.iterdir()):
                stack.callback(_remove, folder)  # nothing was done, so nothing is left behind
            raise
    with translate_os_errors(folder, "write"):
        done = folder / f"{UNFINISHED}.done"
        notes.rename(done)
        shutil.rmtree(done)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _same_work(folder: Path, path: Path, header: Mapping[str, Any]) -> None:
    if not path.exists():
        with atomic_write(path) as temporary:
            temporary.write_text(json.dumps(header), encoding="utf-8")
    elif path.read_text(encoding="utf-8") != json.dumps(header):
        raise UserError(
            f"{folder} is unfinished, and was begun with other input or settings\n"
            "go on with the command that began it, or remove the folder"
        )


@contextlib.contextmanager
def open_shard(path: Path) -> Iterator[list[str] | _Lines]:
    """Where the records of a shard go, as lines of JSON, whatever its format is."""
    if path.suffix.lower() == ".parquet":
        lines: list[str] = []
        yield lines
        write_parquet(path, lines)
    else:
        with open_text_for_writing(path) as file:
            yield _Lines(file)


class _Lines:
    """A file of text to which lines are added."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def extend(self, lines: Iterable[str]) -> None:
        self.file.writelines(line + "\n" for line in lines)


def write_parquet(path: Path, lines: Iterable[str]) -> None:
    """Records of JSON as a table: a row each, and what is nested stays nested."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pylist([json.loads(line) for line in lines])
    # A column that has nothing in this shard may have words in another.
    layout = pa.schema([pa.field(f.name, _filled(f.type)) for f in table.schema])
    parquet.write_table(table.cast(layout), path, compression="zstd")


def _filled(kind: Any) -> Any:
    """A type without "nothing" in it, which not every program reads."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_filled(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, _filled(f.type)) for f in kind])
    return kind
