"""The corpus folder: what `prepare` writes and everything after it reads.

train.arrow valid.arrow test.arrow   one row per document (Arrow streams; `datasets.Dataset.from_file`
                                     and `pyarrow.ipc.open_stream` read them too)
vocab.json frames.json               words and frames of the training split
cloze/valid.txt cloze/test.txt       items of the inverse narrative cloze, where documents are long enough
manifest.json                        where it came from, counts, settings
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ssdvae import __version__
from ssdvae.config import SPLITS, Counts, PrepareSettings, Split
from ssdvae.data.integrity import check_file
from ssdvae.data.manifest import read_manifest
from ssdvae.data.table import check_range, read_table
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import DataError, UserError
from ssdvae.files import check_exists, sha256

FORMAT = 1

Names = TypeVar("Names", bound=Inventory)


def schema(events: int) -> pa.Schema:
    """One row: words and frames padded to the same number of events; −1 where there is no frame."""
    return pa.schema(
        [
            ("id", pa.string()),
            ("length", pa.int32()),
            ("tokens", pa.list_(pa.int32(), events * 4)),
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
    cloze: Mapping[Split, int],
    skipped: Mapping[str, int],
) -> None:
    """The last file of a corpus folder: where its data came from (path → SHA-256), and what is in it."""
    files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
    manifest = {
        "format": FORMAT,
        "version": __version__,
        "sources": [{"path": path, "sha256": digest} for path, digest in sources.items()],
        "settings": settings.to_dict(),
        "words": words,
        "frames": frames,
        "splits": splits,
        "cloze": cloze,
        "skipped": skipped,
        "sha256": {name: sha256(path) for name, path in files.items()},
        "bytes": {name: path.stat().st_size for name, path in files.items()},
    }
    # In ASCII: a path need not be text.
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Documents:
    """One split in numbers."""

    ids: pa.ChunkedArray
    tokens: NDArray[np.int32]  # N M 4
    frames: NDArray[np.int32]  # N M, −1 where there is none
    lengths: NDArray[np.int32]  # N

    def __len__(self) -> int:
        return len(self.lengths)


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
        self.manifest: Any = read_manifest(path, (FORMAT,))

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
    def events(self) -> int:
        """Events per document, at most (M)."""
        return int(self.manifest["settings"]["events"])

    @property
    def lowercase(self) -> bool:
        """Whether the words were folded to lower case."""
        return bool(self.manifest["settings"]["lowercase"])

    def check_names(self, vocabulary: Vocabulary, frames: Inventory) -> None:
        """Refuse a model that numbers its words or frames in another way."""
        for kind, mine, theirs in (("words", self.vocabulary, vocabulary), ("frames", self.frames, frames)):
            if mine.names != theirs.names:
                raise UserError(
                    f"the {kind} of {self.folder} are not those of the model\n"
                    "evaluate on the corpus that the model was trained on"
                )

    def has_cloze(self, split: Split) -> bool:
        name = self._cloze(split)
        return name in self.manifest["sha256"] or (self.folder / name).is_file()

    def _cloze(self, split: Split) -> str:
        return f"cloze/{split}.txt"

    def cloze(self, split: Split) -> Path:
        """The file with the cloze items of a split, for ``read_cloze``."""
        if not self.has_cloze(split):
            raise UserError(
                f"{self.folder} has no cloze items for the split {split!r}\n"
                "`ssdvae prepare` makes them for valid and test from documents with --cloze-events events:\n"
                "prepare again with fewer events or more documents, or name a cloze file of your own"
            )
        return self.checked(self._cloze(split))

    def split(self, name: Split) -> Documents:
        if name not in SPLITS:
            raise UserError(f"no split {name!r}; there are: {', '.join(SPLITS)}")
        path = self.checked(f"{name}.arrow")
        table = read_table(path, schema(self.events), self.manifest["splits"][name]["documents"])
        if not len(table):
            raise UserError(
                f"{path} has no documents\n"
                "prepare again with a larger --valid-share or --test-share, or with a file for each split"
            )
        events = self.events

        def column(key: str, *shape: int) -> NDArray[np.int32]:
            chunks = table.column(key).combine_chunks()
            values = chunks if key == "length" else chunks.flatten()
            return np.asarray(values.to_numpy(zero_copy_only=False)).reshape(len(table), *shape)

        documents = Documents(
            table.column("id"), column("tokens", events, 4), column("frames", events), column("length")
        )
        for key, values, lowest, highest in (
            ("length", documents.lengths, 1, events),
            ("tokens", documents.tokens, 0, len(self.vocabulary) - 1),
            ("frames", documents.frames, -1, len(self.frames) - 1),
        ):
            check_range(path, key, values, lowest, highest)
        return documents
