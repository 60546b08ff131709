"""The corpus folder: what `prepare` writes and everything after it reads.

train.arrow valid.arrow test.arrow   one row per document (Arrow streams; `datasets.Dataset.from_file`
                                     and `pyarrow.ipc.open_stream` read them too); of many documents also
                                     train-00001.arrow, train-00002.arrow, …
vocab.json frames.json               words and frames of the training split
lemmas.json                          the lemma of each head, where the events have lemmas
cloze/valid.txt cloze/test.txt       items of the inverse narrative cloze, where documents are long enough
masked/*.jsonl order/*.jsonl         which event stood here, and which order is the true one: likewise
manifest.json                        where it came from, counts, settings
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from ssdvae import __version__
from ssdvae.config import SPLITS, Counts, PrepareSettings, Split
from ssdvae.data.columns import Columns
from ssdvae.data.documents import Documents
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.integrity import check_file
from ssdvae.data.lemmas import LEMMAS, load_lemmas
from ssdvae.data.manifest import read_manifest
from ssdvae.data.table import AGAIN, check_range, list_lengths, numbers, read_table
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import DataError, UserError
from ssdvae.files import check_exists, sha256

__all__ = ["FORMAT", "SCHEMA", "Corpus", "Documents", "write_manifest"]

FORMAT = 2
"""1: documents of at most M events, padded to M; 2: documents of any length."""

SCHEMA = pa.schema([("id", pa.string()), ("tokens", pa.list_(pa.int32())), ("frames", pa.list_(pa.int32()))])
"""One row a document: the words in all slots of its events, and their frames, −1 where there is none."""

ItemKind = Literal["cloze", "masked", "order"]


@dataclass(frozen=True)
class ItemFile:
    """Where `prepare` writes the items of a kind, what it makes them of, and what to do if there are none."""

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
    """The file of a corpus folder that has them."""
    return f"{kind}/{split}.{ITEMS[kind].ending}"


Names = TypeVar("Names", bound=Inventory)


def padded_schema(events: int, slots: int) -> pa.Schema:
    """One row of format 1: words and frames padded to the same number of events."""
    return pa.schema(
        [
            ("id", pa.string()),
            ("length", pa.int32()),
            ("tokens", pa.list_(pa.int32(), events * slots)),
            ("frames", pa.list_(pa.int32(), events)),
        ]
    )


def write_manifest(
    folder: Path,
    *,
    sources: Mapping[str, str],
    settings: PrepareSettings,
    words: int,
    frames: int,
    splits: Mapping[Split, Mapping[str, int]],
    items: Mapping[Split, Mapping[ItemKind, int]],
    skipped: Mapping[str, int],
    columns: Columns | None = None,
) -> None:
    """The last file of a corpus folder: where its data came from (path → SHA-256), and what is in it."""
    files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": __version__,
        "sources": [{"path": path, "sha256": digest} for path, digest in sources.items()],
        "settings": settings.to_dict(),
        "slots": settings.slot_names,
        "words": words,
        "frames": frames,
        "splits": splits,
        **{str(kind): {split: counts[kind] for split, counts in items.items()} for kind in ITEMS},
        "skipped": skipped,
        "sha256": {name: sha256(path) for name, path in files.items()},
        "bytes": {name: path.stat().st_size for name, path in files.items()},
    }
    if columns is not None:
        manifest["columns"] = columns.to_record()
    # In ASCII: a path need not be text.
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


def split_file(split: Split, number: int) -> str:
    """The name of a file of a split: those after the first have a number."""
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
        self.manifest: Any = read_manifest(path, (1, FORMAT))

    def checked(self, name: str, *, anew: bool = False) -> Path:
        """One of the files, if it is the one that was written; ``anew``: even if it was looked at before."""
        path, digest = self.folder / name, self.manifest["sha256"].get(name)
        if digest is not None:
            check_file(path, self.manifest.get("bytes", {}).get(name), digest, anew=anew)
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
        """The lemma of each word that is a head, as far as the training split says."""
        return load_lemmas(self.checked(LEMMAS)) if LEMMAS in self.manifest["sha256"] else {}

    def _inventory(self, kind: Literal["words", "frames"], found: Names) -> Names:
        if len(found) != self.manifest[kind]:
            path = self.folder / "manifest.json"
            raise DataError(path, None, f"{self.manifest[kind]} {kind}", f"{len(found)}, as there are names")
        return found

    @property
    def fingerprint(self) -> str:
        """Tells whether two corpora have the same documents, words and frames."""
        contents = json.dumps(self.manifest["sha256"], sort_keys=True)
        return hashlib.sha256(contents.encode()).hexdigest()

    @property
    def counts(self) -> Counts:
        """How much there is to learn from."""
        train = self.manifest["splits"]["train"]
        return Counts(train["documents"], train["events"], self.manifest["words"])

    @property
    def events(self) -> int | None:
        """How many events of each document `prepare` kept, at most (M); None if it kept all."""
        events: int | None = self.manifest["settings"]["events"]
        return events

    @property
    def slots(self) -> Slots:
        """What the slots of its events are called; the first is the head."""
        return tuple(self.manifest.get("slots", SLOTS))

    @property
    def columns(self) -> Columns | None:
        """Which columns its events are from, if they are from a table or a log."""
        record = self.manifest.get("columns")
        return None if record is None else Columns.from_record(record)

    def longest(self, split: Split) -> int:
        """Events of the longest document of a split, or a bound on them in an older corpus."""
        found = self.manifest["splits"][split].get("longest", self.events)
        return int(found or 0)

    @property
    def lowercase(self) -> bool:
        """Whether the words were folded to lower case."""
        return bool(self.manifest["settings"]["lowercase"])

    def check_names(self, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS) -> None:
        """Refuse a model that numbers its words or frames in another way, or has other slots."""
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
        name = item_file(kind, split)
        return name in self.manifest["sha256"] or (self.folder / name).is_file()

    def items(self, kind: ItemKind, split: Split) -> Path:
        """The file with the items of a kind, made of a split."""
        if not self.has_items(kind, split):
            raise UserError(
                f"{self.folder} has no {kind} items for the split {split!r}\n"
                f"`ssdvae prepare` makes them for valid and test from documents with {ITEMS[kind].needs}:\n"
                f"{ITEMS[kind].hint}"
            )
        return self.checked(item_file(kind, split))

    def has_cloze(self, split: Split) -> bool:
        return self.has_items("cloze", split)

    def cloze(self, split: Split) -> Path:
        """The file with the cloze items of a split, for ``read_cloze``."""
        return self.items("cloze", split)

    def split_files(self, name: Split) -> list[str]:
        """The files of a split, in their order."""
        further = sorted(f for f in self.manifest["sha256"] if re.fullmatch(rf"{name}-\d+\.arrow", f))
        return [split_file(name, 0), *further]

    def split_fingerprint(self, name: Split) -> str:
        """Tells whether two corpora have the same split: the SHA-256 of its file, or of several."""
        digests = [self.manifest["sha256"][file] for file in self.split_files(name)]
        return digests[0] if len(digests) == 1 else hashlib.sha256("".join(digests).encode()).hexdigest()

    def split(self, name: Split) -> Documents:
        if name not in SPLITS:
            raise UserError(f"no split {name!r}; there are: {', '.join(SPLITS)}")
        documents = Documents.joined([self._read(self.checked(file)) for file in self.split_files(name)])
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
        documents = (_read_padded if self.manifest["format"] == 1 else _read_documents)(path, self)
        for key, values, lowest, highest in (
            ("tokens", documents.tokens, 0, len(self.vocabulary) - 1),
            ("frames", documents.frames, -1, len(self.frames) - 1),
        ):
            check_range(path, key, values, lowest, highest, documents.starts)
        return documents


def _read_documents(path: Path, corpus: Corpus) -> Documents:
    table = read_table(path, SCHEMA)
    tokens, frames = (numbers(table.column(key)) for key in ("tokens", "frames"))
    words, lengths = (list_lengths(table.column(key)) for key in ("tokens", "frames"))
    check_range(path, "events", lengths, 1, corpus.events or np.iinfo(np.int32).max)
    slots = len(corpus.slots)
    if (wrong := np.flatnonzero(words != slots * lengths)).size:
        row = wrong[0]
        expected = f"{slots * lengths[row]}, for {lengths[row]} events"
        raise DataError(path, int(row) + 1, f"{words[row]} numbers in 'tokens'", expected, unit="document")
    return Documents.of_events(table.column("id"), tokens.reshape(-1, slots), frames, lengths)


def _read_padded(path: Path, corpus: Corpus) -> Documents:
    """Format 1."""
    events = corpus.events
    assert events is not None  # `read_manifest` sees to it
    table = read_table(path, padded_schema(events, len(corpus.slots)))
    tokens, frames = (numbers(table.column(key)) for key in ("tokens", "frames"))
    lengths = np.asarray(table.column("length").to_numpy())
    check_range(path, "length", lengths, 1, events)
    shape = (len(table), events)
    return Documents.of_padded(
        table.column("id"), tokens.reshape(*shape, len(corpus.slots)), frames.reshape(shape), lengths
    )
