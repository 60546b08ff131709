"""Folders of shards: part-00000.jsonl.gz, part-00001.jsonl.gz, …, or the same in Parquet.

A shard is written under another name and then renamed. While a folder is being made, its subfolder
``.unfinished`` records the command, and has a note for each shard that is done. So any process on any machine
that sees the folder can make a shard, and a command that was stopped is resumed with the missing ones.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ssdvae.io.errors import UserError
from ssdvae.io.files import open_text_for_writing, translate_os_errors, write_text
from ssdvae.io.locks import lock_path
from ssdvae.io.records import Count, Record, from_json, parse

UNFINISHED = ".unfinished"

SHARD = re.compile(r"part-\d+.*\.((jsonl|ndjson|csv|tsv)(\.gz)?|parquet)", re.IGNORECASE)
"""The names of shards, also of other tools."""


def shard_name(number: int, ending: str) -> str:
    return f"part-{number:05d}.{ending}"


def is_file_name(out: Path) -> bool:
    """Tell whether output goes into one file; any other name is that of a folder of shards."""
    return out.name.endswith((".jsonl", ".jsonl.gz"))


def list_shards(folder: Path) -> list[Path]:
    """Return the shards of a folder, in order; none if it is not a folder, or has none."""
    if not folder.is_dir():
        return []
    if (folder / UNFINISHED).exists():
        raise UserError(
            f"{folder} is unfinished: some of its shards are not there yet\n"
            "give the command again that was making it; it goes on where it stopped"
        )
    with translate_os_errors(folder, "read"):
        return sorted(path for path in folder.iterdir() if SHARD.fullmatch(path.name))


class Note(Record, extra="ignore"):
    """The counts and errors of a shard that is done."""

    read: Count
    counts: dict[str, Count]
    errors: list[str]
    bytes: Count


def read_note(shard: Path) -> Note | None:
    """Return the note of a shard, if it is done and has not changed."""
    with contextlib.suppress(OSError, ValueError):
        note = parse(Note, from_json(_note(shard).read_bytes()))
        if shard.stat().st_size == note.bytes:
            return note
    return None


def write_note(shard: Path, read: int, counts: Mapping[str, int], errors: Iterable[str]) -> None:
    """Record that a shard, which is in its place, is done."""
    note = Note(read=read, counts=dict(counts), errors=list(errors), bytes=shard.stat().st_size)
    write_text(_note(shard), json.dumps(note.model_dump()))


def _note(shard: Path) -> Path:
    return shard.parent / UNFINISHED / f"{shard.name}.json"


@contextlib.contextmanager
def unfinished(folder: Path, header: Mapping[str, Any]) -> Iterator[None]:
    """Hold a folder of shards while it is made; mark it as finished if no error is raised.

    ``header`` describes the work: only the same work is resumed.
    """
    notes, done = folder / UNFINISHED, folder / f"{UNFINISHED}.done"
    shutil.rmtree(done, ignore_errors=True)  # left by a process that was killed at its very end
    with contextlib.ExitStack() as stack:
        with translate_os_errors(folder, "write"):
            if folder.exists() and not notes.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise UserError(f"{folder} is already there; remove it, or choose another --out")
            notes.mkdir(parents=True, exist_ok=True)
            busy = f"another process is writing {folder}\nwait for it, or choose another --out"
            stack.enter_context(lock_path(notes / "lock", busy))
            _same_work(folder, notes / "work.json", header)
        try:
            yield
        except BaseException:
            if not any(SHARD.fullmatch(path.name) for path in folder.iterdir()):
                stack.callback(_remove, folder)  # nothing was done: leave nothing behind
            raise
    with translate_os_errors(folder, "write"):
        notes.rename(done)
        shutil.rmtree(done)


def _remove(folder: Path) -> None:
    shutil.rmtree(folder / UNFINISHED, ignore_errors=True)
    with contextlib.suppress(OSError):
        folder.rmdir()


def _same_work(folder: Path, path: Path, header: Mapping[str, Any]) -> None:
    if not path.exists():
        write_text(path, json.dumps(header))
    elif path.read_text(encoding="utf-8") != json.dumps(header):
        raise UserError(
            f"{folder} is unfinished, and was begun with other input or settings\n"
            "go on with the command that began it, or remove the folder"
        )


def write_shard(path: Path, lines: Iterable[str]) -> None:
    """Write records, given as lines of JSON, in the format of the shard."""
    if path.suffix.lower() == ".parquet":
        write_parquet(path, lines)
    else:
        with open_text_for_writing(path) as file:
            file.writelines(line + "\n" for line in lines)


def write_parquet(path: Path, lines: Iterable[str]) -> None:
    """Write records of JSON as a table, a row each; nested values stay nested."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.Table.from_pylist([json.loads(line) for line in lines])
    # A column without values in this shard may have some in another.
    layout = pa.schema(filled(pa.struct(table.schema)))
    parquet.write_table(table.cast(layout), path, compression="zstd")


def filled(kind: Any) -> Any:
    """Return a type with text for the null type, which not every program reads."""
    import pyarrow as pa

    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(filled(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(f.name, filled(f.type)) for f in kind])
    return kind
