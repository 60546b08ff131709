"""The corpus folder, which `prepare` writes and every later command reads.

train.arrow valid.arrow test.arrow   one row per document (Arrow streams; `datasets.Dataset.from_file`
                                     and `pyarrow.ipc.open_stream` read them too); of many documents also
                                     train-00001.arrow, train-00002.arrow, …
vocab.json frames.json               words and frames of the training split
lemmas.json                          the lemma of each head, where the events have lemmas
process.json                         which activity follows which, variants, durations; of a table or a log
cloze/valid.txt cloze/test.txt       items of the inverse narrative cloze, where documents are long enough
masked/*.jsonl order/*.jsonl         items of the masked-event and ordering tasks
manifest.json                        sources, options, counts, and the SHA-256 of each file
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pydantic import AfterValidator, Field

from ssdvae import __version__
from ssdvae.data.columns import Columns
from ssdvae.data.documents import Documents
from ssdvae.data.events import SLOTS, Slots, check_slots
from ssdvae.data.options import SPLITS, PrepareOptions, Split
from ssdvae.data.process import PROCESS, Process
from ssdvae.data.vocabulary import LEMMAS, Inventory, Vocabulary, load_lemmas
from ssdvae.io.errors import DataError, Malformed, UserError, shorten
from ssdvae.io.files import check_exists, sha256, translate_os_errors, write_text
from ssdvae.io.records import Count, Record, parse, read_json
from ssdvae.options import Counts

__all__ = ["FORMAT", "SCHEMA", "Corpus", "Documents", "write_manifest"]

FORMAT = 1
"""The format of the manifest and of the Arrow files."""

SCHEMA = pa.schema([("id", pa.string()), ("tokens", pa.list_(pa.int32())), ("frames", pa.list_(pa.int32()))])
"""One row per document: the words in all slots of its events, and their frames, −1 where there is none."""

SOFT_FRAMES = 4
"""Frames of a soft label, at most."""

SOFT = pa.schema([("soft_frames", pa.list_(pa.int32())), ("soft_weights", pa.list_(pa.float32()))])
"""Columns of soft labels: for each event ``SOFT_FRAMES`` frames, the label first, and weights that sum to 1.

Unused places have the frame −1 and the weight 0, as all places of an unlabelled event."""

ENDED, TIMES = pa.field("ended", pa.bool_()), pa.field("times", pa.list_(pa.float64()))
"""Columns of cases: whether each is over, and the times of its events."""


def schema(soft: bool = False, ends: bool = False, times: bool = False) -> pa.Schema:
    """Return the columns of a corpus, with those of soft labels, of ends and of times."""
    further = [*(SOFT if soft else ()), *([ENDED] if ends else []), *([TIMES] if times else [])]
    return pa.schema([*SCHEMA, *further])


AGAIN = "prepare the corpus again"

ItemKind = Literal["cloze", "masked", "order"]


@dataclass(frozen=True)
class ItemFile:
    """The ending of a file of items, what a document needs to give one, and a hint if there are none."""

    ending: str
    needs: str
    hint: str = "prepare again with more documents"


ITEMS: dict[ItemKind, ItemFile] = {
    "cloze": ItemFile(
        "txt",
        "--cloze-events events",
        "prepare again with fewer events or more documents, or name a cloze file of your own",
    ),
    "masked": ItemFile("jsonl", "3 events or more"),
    "order": ItemFile("jsonl", "3 events or more"),
}


def item_file(kind: ItemKind, split: Split) -> str:
    """Return the name of the file with the items of a kind."""
    return f"{kind}/{split}.{ITEMS[kind].ending}"


Names = TypeVar("Names", bound=Inventory)


MOST_EVENTS = 2**20
"""The largest number of events of a document."""

NEEDED = ("vocab.json", "frames.json", *(f"{split}.arrow" for split in SPLITS))


class SplitCounts(Record, extra="ignore"):
    """The counts of a split."""

    read: Count
    documents: Count
    too_short: Count
    events: Count
    dropped_events: Count
    frameless_events: Count
    unknown_words: Count
    cut_events: Count
    longest: Count
    one_event: Count


class Splits(Record, extra="ignore"):
    train: SplitCounts
    valid: SplitCounts
    test: SplitCounts


class ItemCounts(Record, extra="ignore"):
    valid: Count
    test: Count


class SourceFile(Record, extra="ignore"):
    path: str
    sha256: str


class Settings(Record, extra="ignore"):
    """The options of `prepare` that are read later on."""

    events: Annotated[int, Field(ge=1, le=MOST_EVENTS)] | None
    lowercase: bool
    soft_labels: bool = False


def _check_digest(digest: str) -> str:
    if not re.fullmatch(r"[0-9a-f]{64}", digest):
        raise Malformed(shorten(digest), "64 hexadecimal digits")
    return digest


class Manifest(Record, extra="ignore"):
    """The contents of a manifest."""

    format: int
    version: str
    sources: list[SourceFile]
    settings: Settings
    words: Count
    frames: Count
    splits: Splits
    skipped: dict[str, Count]
    sha256: dict[str, Annotated[str, AfterValidator(_check_digest)]]
    cloze: ItemCounts
    masked: ItemCounts
    order: ItemCounts
    bytes: dict[str, Count]
    slots: list[str]
    columns: Columns | None = None
    ends: bool = False
    times: bool = False


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a corpus; an error names what it lacks, or has wrong."""
    manifest = read_json(path, dict[str, Any], "a manifest that `ssdvae prepare` wrote", AGAIN)
    found = manifest.get("format")
    if type(found) is not int or found != FORMAT:
        raise DataError(path, None, f"format {shorten(found)}", f"format {FORMAT}", AGAIN)
    try:
        _check(parse(Manifest, manifest))
        PrepareOptions.of(manifest["settings"])
    except Malformed as error:
        raise DataError(path, None, error.found, error.expected, AGAIN) from error
    except UserError as error:
        raise DataError(path, None, str(error), "the options of `ssdvae prepare`", AGAIN) from error
    return manifest


def _check(manifest: Manifest) -> None:
    """Check what must hold between the parts of a manifest."""
    if missing := [name for name in NEEDED if name not in manifest.sha256]:
        raise Malformed(f"no {missing[0]} at sha256", "one for each file of a corpus")
    slots = check_slots(manifest.slots)
    if manifest.columns is not None and (mine := manifest.columns.slots) != slots:
        raise Malformed(f"columns for the slots {', '.join(mine)}", f"{', '.join(slots)}, as under 'slots'")


def write_manifest(
    folder: Path,
    *,
    sources: Mapping[str, str],
    options: PrepareOptions,
    words: int,
    frames: int,
    splits: Mapping[Split, Mapping[str, int]],
    items: Mapping[Split, Mapping[ItemKind, int]],
    skipped: Mapping[str, int],
    columns: Columns | None = None,
    ends: bool = False,
    times: bool = False,
) -> None:
    """Write the last file of a corpus folder. ``sources`` has the SHA-256 of each input file."""
    files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "sources": [{"path": path, "sha256": digest} for path, digest in sources.items()],
        "settings": options.to_dict(),
        "slots": options.slot_names,
        "words": words,
        "frames": frames,
        "splits": splits,
        **{str(kind): {split: counts[kind] for split, counts in items.items()} for kind in ITEMS},
        "skipped": skipped,
        "sha256": {name: sha256(path) for name, path in files.items()},
        "bytes": {name: path.stat().st_size for name, path in files.items()},
    }
    if columns is not None:
        manifest["columns"] = columns.model_dump(mode="json")
        manifest |= {"ends": ends, "times": times}
    # In ASCII: a path need not be text.
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def split_file(split: Split, number: int) -> str:
    """Return the name of a file of a split: those after the first have a number."""
    return f"{split}-{number:05d}.arrow" if number else f"{split}.arrow"


class Corpus:
    """A corpus folder, opened for reading."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        path = self.folder / "manifest.json"
        check_exists(self.folder)
        if not path.is_file():
            raise UserError(
                f"{folder} is not a corpus folder: it has no manifest.json\nmake one with `ssdvae prepare`"
            )
        self.manifest: Any = read_manifest(path)

    def checked(self, name: str, *, anew: bool = False) -> Path:
        """Return the path of a file after verifying its checksum; ``anew`` ignores earlier verifications."""
        path, digest = self.folder / name, self.manifest["sha256"].get(name)
        if digest is not None:
            check_file(path, self.manifest["bytes"].get(name), digest, anew=anew)
        return path

    def __repr__(self) -> str:
        return f"Corpus({str(self.folder)!r})"

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return self._inventory("words", Vocabulary.load(self.checked("vocab.json")))

    @cached_property
    def frames(self) -> Inventory:
        return self._inventory("frames", Inventory.load(self.checked("frames.json")))

    @cached_property
    def lemmas(self) -> dict[str, str]:
        """The most frequent lemma of each head in the training split."""
        return load_lemmas(self.checked(LEMMAS)) if LEMMAS in self.manifest["sha256"] else {}

    @cached_property
    def process(self) -> Process | None:
        """The process of the log that the corpus was made from, if it was one."""
        if PROCESS not in self.manifest["sha256"]:
            return None
        return read_json(self.checked(PROCESS), Process, "the process that `ssdvae prepare` wrote", AGAIN)

    def _inventory(self, kind: Literal["words", "frames"], found: Names) -> Names:
        if len(found) != self.manifest[kind]:
            path = self.folder / "manifest.json"
            raise DataError(path, None, f"{self.manifest[kind]} {kind}", f"{len(found)}, as there are names")
        return found

    @property
    def fingerprint(self) -> str:
        """A hash of all documents, words and frames."""
        contents = json.dumps(self.manifest["sha256"], sort_keys=True)
        return hashlib.sha256(contents.encode()).hexdigest()

    @property
    def counts(self) -> Counts:
        """The size of the training split."""
        train = self.manifest["splits"]["train"]
        return Counts(train["documents"], train["events"], self.manifest["words"])

    @property
    def events(self) -> int | None:
        """The number of events of each document that `prepare` kept, at most (M); None if it kept all."""
        events: int | None = self.manifest["settings"]["events"]
        return events

    @property
    def slots(self) -> Slots:
        """The names of the slots of an event; the first is the head."""
        return tuple(self.manifest["slots"])

    @property
    def columns(self) -> Columns | None:
        """The columns that the events are from, if they are from a table or a log."""
        record = self.manifest.get("columns")
        return None if record is None else parse(Columns, record)

    @property
    def ends(self) -> bool:
        """True if documents are cases, whose ends are known."""
        return bool(self.manifest.get("ends", False))

    @property
    def times(self) -> bool:
        """True if the time of every event is known."""
        return bool(self.manifest.get("times", False))

    def longest(self, split: Split) -> int:
        """Return the number of events of the longest document of a split."""
        return int(self.manifest["splits"][split]["longest"])

    @property
    def lowercase(self) -> bool:
        """True if the words were converted to lower case."""
        return bool(self.manifest["settings"]["lowercase"])

    def check_names(self, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS) -> None:
        """Raise an error if a model has other words, frames or slots."""
        if self.slots != slots:
            raise UserError(
                f"the slots of {self.folder} are {', '.join(self.slots)}; the model has {', '.join(slots)}\n"
                "evaluate on the corpus that the model was trained on"
            )
        for kind, mine, theirs in (
            ("words", self.vocabulary.names, vocabulary.names),
            # After the names of the corpus come those that the model has made.
            ("frames", self.frames.names, frames.names[: len(self.frames)]),
        ):
            if mine != theirs:
                raise UserError(
                    f"the {kind} of {self.folder} are not those of the model\n"
                    "evaluate on the corpus that the model was trained on"
                )

    def has_items(self, kind: ItemKind, split: Split) -> bool:
        return item_file(kind, split) in self.manifest["sha256"]

    def items(self, kind: ItemKind, split: Split) -> Path:
        """Return the file with the items of a kind for a split."""
        if not self.has_items(kind, split):
            raise UserError(
                f"{self.folder} has no {kind} items for the split {split!r}\n"
                f"`ssdvae prepare` makes them for valid and test from documents with {ITEMS[kind].needs}:\n"
                f"{ITEMS[kind].hint}"
            )
        return self.checked(item_file(kind, split))

    def split_files(self, name: Split) -> list[str]:
        """Return the names of the files of a split, in order."""
        further = sorted(f for f in self.manifest["sha256"] if re.fullmatch(rf"{name}-\d+\.arrow", f))
        return [split_file(name, 0), *further]

    def split_fingerprint(self, name: Split) -> str:
        """Return a hash of the files of a split."""
        digests = [self.manifest["sha256"][file] for file in self.split_files(name)]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def split(self, name: Split) -> Documents:
        """Return the documents of a split."""
        if name not in SPLITS:
            raise UserError(f"no split {name!r}; there are: {', '.join(SPLITS)}")
        documents = Documents.concat([self._read(self.checked(file)) for file in self.split_files(name)])
        path, rows = self.folder / f"{name}.arrow", self.manifest["splits"][name]["documents"]
        if len(documents) != rows:
            found, expected = f"{len(documents):,} documents", f"{rows:,}, as manifest.json has it"
            raise DataError(path, None, found, expected, AGAIN)
        if not len(documents):
            raise UserError(
                f"{path} has no documents\n"
                "prepare again with a larger --valid-share or --test-share, or with a file for each split"
            )
        return documents

    def _read(self, path: Path) -> Documents:
        soft = bool(self.manifest["settings"].get("soft_labels"))
        table = read_table(path, schema(soft, self.ends, self.times))
        tokens, frames = (_flat_numbers(table.column(key)) for key in ("tokens", "frames"))
        words, lengths = (_list_lengths(table.column(key)) for key in ("tokens", "frames"))
        check_range(path, "events", lengths, 1, self.events or np.iinfo(np.int32).max)
        slots = len(self.slots)
        if (wrong := np.flatnonzero(words != slots * lengths)).size:
            row = wrong[0]
            found, expected = (
                f"{words[row]} numbers in 'tokens'",
                f"{slots * lengths[row]}, for {lengths[row]} events",
            )
            raise DataError(path, int(row) + 1, found, expected, unit="document")
        ends = times = None
        if self.ends:
            ends = np.zeros(len(frames), np.bool_)
            ends[np.cumsum(lengths, dtype=np.int64) - 1] = table.column("ended").to_numpy()
        if self.times:
            times = _flat_numbers(table.column("times"), np.float64)
            if (odd := np.flatnonzero(_list_lengths(table.column("times")) != lengths)).size:
                found = "another number of 'times' than of events"
                raise DataError(path, int(odd[0]) + 1, found, "as many", unit="document")
            if not np.isfinite(times).all():
                raise DataError(path, None, "a time that is not finite", "seconds since 1970", AGAIN)
        ids, words_of = table.column("id"), tokens.reshape(-1, slots)
        documents = Documents.of_events(ids, words_of, frames, lengths, ends, times)
        for key, values, lowest, highest in (
            ("tokens", documents.tokens, 0, len(self.vocabulary) - 1),
            ("frames", documents.frames, -1, len(self.frames) - 1),
        ):
            check_range(path, key, values, lowest, highest, documents.starts)
        return self._with_soft_labels(documents, path, table) if soft else documents

    def _with_soft_labels(self, documents: Documents, path: Path, table: pa.Table) -> Documents:
        for key in SOFT.names:
            if (_list_lengths(table.column(key)) != SOFT_FRAMES * documents.lengths).any():
                raise DataError(
                    path, None, f"lists in {key!r}", f"{SOFT_FRAMES} numbers for each event", AGAIN
                )
        frames, weights = (_flat_numbers(table.column(key)).reshape(-1, SOFT_FRAMES) for key in SOFT.names)
        check_range(path, "soft_frames", frames, -1, len(self.frames) - 1, documents.starts)
        check_range(path, "soft_weights", weights, 0, 1, documents.starts)
        return replace(documents, soft_frames=frames, soft_weights=weights)


def read_table(path: Path, layout: pa.Schema) -> pa.Table:
    """Return the table of an Arrow file, which has the columns of ``layout`` and no empty cell."""
    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_stream(source).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError, TypeError, MemoryError) as error:
        expected = "a split that `ssdvae prepare` wrote"
        raise DataError(path, None, shorten(str(error), 200), expected, AGAIN) from error
    for column in layout:
        found = table.schema.get_all_field_indices(column.name)
        if len(found) != 1:
            raise DataError(path, None, f"{len(found)} columns {column.name!r}", "one", AGAIN)
        if (kind := table.schema.field(found[0]).type) != column.type:
            raise DataError(path, None, f"{kind} in {column.name!r}", str(column.type), AGAIN)
        cells = table.column(column.name)
        inner = cells.chunks if pa.types.is_list(cells.type) else ()
        if cells.null_count or any(chunk.flatten().null_count for chunk in inner):
            raise DataError(path, None, f"empty cells in {column.name!r}", "none", AGAIN)
    return table


def _flat_numbers(column: pa.ChunkedArray, kind: Any = np.int32) -> NDArray[Any]:
    """Return all numbers of a column of lists, one list after another."""
    parts = [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate([np.empty(0, kind), *parts]) if len(parts) != 1 else np.asarray(parts[0])


def _list_lengths(column: pa.ChunkedArray) -> NDArray[np.int32]:
    return np.asarray(pc.list_value_length(column).to_numpy(), dtype=np.int32)


def check_range(
    path: Path,
    name: str,
    values: NDArray[Any],
    lowest: int,
    highest: int,
    starts: NDArray[np.int64] | None = None,
) -> None:
    """Raise an error for numbers out of range; the first axis of the array is that of the documents.

    With ``starts``, the first event of each document, it is that of the events.
    """
    if values.size and (values.min() < lowest or values.max() > highest):
        wrong = (values < lowest) | (values > highest)
        row = int(np.argwhere(wrong)[0][0])
        if starts is not None:
            row = int(np.searchsorted(starts, row, side="right")) - 1
        found = f"{values[wrong][0]} in {name!r}"
        raise DataError(path, row + 1, found, f"from {lowest} to {highest:,}", AGAIN, unit="document")


# Checksums. A file that was verified is remembered with its size and times of change, in the cache of the
# user: a corpus may be on a read-only disk.


def cache_folder() -> Path:
    """Return the folder for what can be computed again: $SSDVAE_CACHE, or the cache of the user."""
    chosen = os.environ.get("SSDVAE_CACHE")
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ssdvae"


Stamp = list[int | str]
"""Size, times of change (content, anything) in nanoseconds, and SHA-256 of a verified file."""


def check_file(path: Path, size: int | None, digest: str, *, anew: bool = False) -> None:
    """Raise an error if a file has another size or SHA-256; ``anew`` ignores earlier verifications."""
    changed = "it was changed, or cut short, after it was written: make the folder again, or copy it again"
    with translate_os_errors(path, "read"):
        stat = path.stat()
    if size is not None and stat.st_size != size:
        raise DataError(path, None, f"{stat.st_size:,} bytes", f"{size:,}, as manifest.json has it", changed)
    stamp: Stamp = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, digest]
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()[:32]
    note = cache_folder() / "checked" / f"{name}.json"
    if not anew and _read_stamp(note) == stamp:
        return
    if (found := sha256(path)) != digest:
        expected = f"{digest[:12]}…, as manifest.json has it"
        raise DataError(path, None, f"the SHA-256 {found[:12]}…", expected, changed)
    # Without a place to write to, files are verified each time.
    with contextlib.suppress(Exception):
        note.parent.mkdir(parents=True, exist_ok=True)
        write_text(note, json.dumps(stamp))


def _read_stamp(note: Path) -> object:
    with contextlib.suppress(OSError, ValueError, RecursionError):
        return json.loads(note.read_bytes()[:1000])
    return None
