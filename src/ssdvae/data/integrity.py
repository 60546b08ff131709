"""Whether the files of a folder are those that were written: their sizes always, their SHA-256 once.

A file that was found right is remembered with its size and the time of its last change, in the cache of the
user: a corpus may be on a disk that is read-only. $SSDVAE_CACHE names another folder for it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path

from ssdvae.errors import DataError
from ssdvae.files import atomic_write, sha256, translate_os_errors
from ssdvae.shapes import check_shape

Stamp = list[int | str]
"""Size, times of change (content, anything) in nanoseconds, and SHA-256 of a file that was found right."""

CHANGED = "it was changed, or cut short, after it was written: make the folder again, or copy it again"


def cache_folder() -> Path:
    """Where things are kept that can be found out again."""
    chosen = os.environ.get("SSDVAE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ssdvae"


def check_file(path: Path, size: int | None, digest: str, *, anew: bool = False) -> None:
    """Refuse a file that is not the one with this size and SHA-256.

    ``anew``: do not trust what is remembered.
    """
    with translate_os_errors(path, "read"):
        stat = path.stat()
    if size is not None and stat.st_size != size:
        raise DataError(path, None, f"{stat.st_size:,} bytes", f"{size:,}, as manifest.json has it", CHANGED)
    stamp: Stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, digest]
    note = cache_folder() / "checked" / f"{_name(path)}.json"
    if not anew and _remembered(note) == stamp:
        return
    found = sha256(path)
    if found != digest:
        expected = f"{digest[:12]}…, as manifest.json has it"
        raise DataError(path, None, f"the SHA-256 {found[:12]}…", expected, CHANGED)
    # Without a place to write to, it is found out again each time.
    with contextlib.suppress(Exception):
        note.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(note) as temporary:
            temporary.write_text(json.dumps(stamp), encoding="utf-8")


def _name(path: Path) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]


def _remembered(note: Path) -> Stamp | None:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        stamp: Stamp = json.loads(note.read_bytes()[:1000])
        check_shape(stamp, list[int | str])
        return stamp
    return None
