"""What `prepare` says about the corpus it made: ``manifest.json``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from ssdvae.config import SPLITS, PrepareSettings
from ssdvae.config.slots import SLOTS, checked_slots
from ssdvae.data.columns import Columns, ColumnsRecord
from ssdvae.errors import DataError, Malformed, UserError, shorten
from ssdvae.records import read_json
from ssdvae.shapes import check_shape

MOST_EVENTS = 2**20
"""Of a document."""

NEEDED = ("vocab.json", "frames.json", *(f"{split}.arrow" for split in SPLITS))


class _SplitCounts(TypedDict):
    read: int
    documents: int
    too_short: int
    events: int
    dropped_events: int
    frameless_events: int
    unknown_words: int


class SplitCounts(_SplitCounts, total=False):
    """What is counted of a split; older corpora have no more than the above."""

    cut_events: int
    longest: int
    one_event: int


class Splits(TypedDict):
    train: SplitCounts
    valid: SplitCounts
    test: SplitCounts


class ItemCounts(TypedDict):
    valid: int
    test: int


class SourceFile(TypedDict):
    path: str
    sha256: str


class _Always(TypedDict):
    format: int
    version: str
    sources: list[SourceFile]
    settings: dict[str, Any]
    words: int
    frames: int
    splits: Splits
    skipped: dict[str, int]
    sha256: dict[str, str]


class Manifest(_Always, total=False):
    """What stands in a manifest; older ones have no more than the above."""

    cloze: ItemCounts
    masked: ItemCounts
    order: ItemCounts
    bytes: dict[str, int]
    slots: list[str]
    columns: ColumnsRecord


def read_manifest(path: Path, formats: Sequence[int]) -> Manifest:
    """The manifest of a corpus; whatever it lacks, or has in another shape, is named."""
    manifest: Manifest = read_json(path, dict, "a manifest that `ssdvae prepare` wrote")
    again = "prepare the corpus again"
    found = manifest.get("format")
    if type(found) is not int or found not in formats:
        expected = f"format {' or '.join(map(str, formats))}"
        raise DataError(path, None, f"format {shorten(found)}", expected, again)
    try:
        check_shape(manifest, Manifest)
        _check_counts(manifest)
        _check_fingerprints(manifest)
        slots = checked_slots(manifest.get("slots", SLOTS))
        if "columns" in manifest and (mine := Columns.from_record(manifest["columns"]).slots) != slots:
            raise Malformed(
                f"columns for the slots {', '.join(mine)}", f"{', '.join(slots)}, as under 'slots'"
            )
        settings = manifest["settings"]
        needed = {name: settings[name] for name in _Needed.__annotations__ if name in settings}
        check_shape(needed, _Needed, "settings")
        if manifest["format"] == 1:
            check_shape(settings["events"], int, "settings.events")  # that of the padding
        if settings["events"] is not None and not 1 <= settings["events"] <= MOST_EVENTS:
            raise Malformed(f"{settings['events']} at settings.events", f"from 1 to {MOST_EVENTS:,}")
        PrepareSettings.of(settings)
    except Malformed as error:
        raise DataError(path, None, error.found, error.expected, again) from error
    except UserError as error:
        raise DataError(path, None, str(error), "the settings of `ssdvae prepare`", again) from error
    return manifest


class _Needed(TypedDict):
    """The settings that are read later on."""

    events: int | None
    lowercase: bool


def _check_counts(manifest: Manifest) -> None:
    """What is counted is counted from 0."""
    counts: dict[str, Any] = {"words": manifest["words"], "frames": manifest["frames"]}
    counts |= {f"bytes.{name}": count for name, count in manifest.get("bytes", {}).items()}
    made: Any = {kind: manifest[kind] for kind in ("cloze", "masked", "order") if kind in manifest}
    for kind, items in made.items():
        counts |= {f"{kind}.{split}": count for split, count in items.items() if split in SPLITS}
    for split in SPLITS:
        mine: Any = manifest["splits"][split]
        counts |= {
            f"splits.{split}.{name}": mine[name] for name in SplitCounts.__annotations__ if name in mine
        }
    for place, count in counts.items():
        if count < 0:
            raise Malformed(f"{count} at {place}", "0 or more")


def _check_fingerprints(manifest: Manifest) -> None:
    """The files that make up a corpus have theirs."""
    if missing := [name for name in NEEDED if name not in manifest["sha256"]]:
        raise Malformed(f"no {missing[0]} at sha256", "one for each file of a corpus")
    for name, digest in manifest["sha256"].items():
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise Malformed(f"{shorten(digest)} at sha256.{name}", "64 hexadecimal digits")
