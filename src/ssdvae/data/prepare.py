"""From documents to a corpus folder: choose events, count words and frames, write numbers."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from ssdvae import __version__
from ssdvae.config import SPLITS, PrepareSettings, Split
from ssdvae.data.cloze import ClozeBuilder, write_cloze
from ssdvae.data.corpus import FORMAT, Corpus, schema
from ssdvae.data.events import Document, Event, Words, folded
from ssdvae.data.files import explained, sha256
from ssdvae.data.readers import Skipped, read_documents
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import UserError

ROWS = 4096
"""Documents per record batch: what is held in memory while writing."""

COUNTS = ["read", "documents", "too_short", "events", "dropped_events", "frameless_events", "unknown_words"]
"""What the manifest says of each split."""

Progress = Callable[[Iterable[Document], str], Iterable[Document]]
"""Shows that documents go by."""


def split_of(id: str, settings: PrepareSettings) -> Split:
    """The split of a document: by its name alone, so that it stays there when the file grows."""
    draw = int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "big") / 2**64
    if draw < settings.valid_share:
        return "valid"
    return "test" if draw < settings.valid_share + settings.test_share else "train"


def usable(
    document: Document, settings: PrepareSettings, frames: Inventory | None = None, most: int | None = None
) -> list[Event]:
    """The first M events that have a frame (or, with ``keep_frameless``, the first M); ``most`` is another M.

    Frameless events are dropped before cutting, so that a document gets no shorter than it must.
    With ``frames``, a frame outside the inventory counts as none.
    """
    events: list[Event] = []
    most = most or settings.events
    for event in document.events:
        known = event.frame is not None and (frames is None or event.frame in frames)
        if known or settings.keep_frameless:
            events.append(event)
            if len(events) == most:
                break
    return events


def words_of(event: Event, settings: PrepareSettings) -> Words:
    return folded(event.words) if settings.lowercase else event.words


class _Source:
    """Where the documents of each split come from; read again for each thing that is counted or written."""

    def __init__(
        self,
        sources: Path | Mapping[Split, Path],
        settings: PrepareSettings,
        format: str | None,
        skip_bad: bool,
        progress: Progress,
    ) -> None:
        self.sources, self.settings, self.format, self.progress = sources, settings, format, progress
        self.skip_bad = skip_bad
        self.without_test = replace(settings, test_share=0.0)
        self.skipped: dict[str, Skipped] = {}

    @property
    def paths(self) -> list[Path]:
        return [self.sources] if isinstance(self.sources, Path) else list(self.sources.values())

    def path(self, split: Split) -> Path:
        """The file of a split; without one of its own, validation is a share of the training file."""
        if isinstance(self.sources, Path):
            return self.sources
        return self.sources.get(split) or self.sources["train"]

    def belongs(self, id: str, split: Split) -> bool:
        """Whether a document of that file is in the split."""
        if isinstance(self.sources, Path):
            return split_of(id, self.settings) == split
        if split == "test" or "valid" in self.sources:
            return True
        return split_of(id, self.without_test) == split

    def read(self, split: Split, label: str) -> Iterator[Document]:
        path = self.path(split)
        skipped = Skipped() if self.skip_bad else None
        if skipped is not None:
            self.skipped[str(path)] = skipped
        documents = read_documents(path, format=self.format, skip_bad=skipped)
        for document in self.progress(documents, f"{label} {split}"):
            if not self.belongs(document.id, split):
                continue
            if not self.settings.single_events:
                yield document
                continue
            for number, event in enumerate(document.events, start=1):
                yield Document(f"{document.id}#{number}", (event,))


def prepare(
    sources: Path | Mapping[Split, Path],
    out: Path,
    settings: PrepareSettings | None = None,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: Progress = lambda documents, _: documents,
) -> Corpus:
    """Write a corpus folder from one file, split by document id, or from one file for each split;

    without one for validation, that is a share of the training file.

    Vocabularies are counted on the training split only. The folder appears when it is complete.
    """
    settings = settings or PrepareSettings()
    if settings.single_events:
        settings = replace(settings, events=1, min_events=1, cloze_items=0)
    needed: tuple[Split, ...] = ("train", "test")
    if not isinstance(sources, Path) and (missing := [split for split in needed if split not in sources]):
        raise UserError(
            f"no file for the split {missing[0]!r}; give one file to be split, or one for training, one for "
            "testing and perhaps one for validation"
        )
    if out.exists():
        raise UserError(f"{out} is already there; remove it, or choose another --out")
    source = _Source(sources, settings, format, skip_bad, progress)
    hashes = {str(path): sha256(path) for path in source.paths}

    frames = _count_frames(source.read("train", "counting frames"), settings)
    if not len(frames):
        raise UserError(
            f"no event of the training split has a frame ({', '.join(map(str, source.paths))})\n"
            "is the file empty? at least some events must have one"
        )
    vocabulary = _count_words(source.read("train", "counting words"), settings, frames)

    temporary = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    with explained(out, "write"):
        temporary.mkdir(parents=True)
        try:
            vocabulary.save(temporary / "vocab.json")
            frames.save(temporary / "frames.json")
            builders: dict[Split, ClozeBuilder] = {
                split: ClozeBuilder(settings) for split in SPLITS if split != "train"
            }
            counts = {
                split: _write_split(
                    temporary / f"{split}.arrow",
                    source.read(split, "writing"),
                    settings,
                    vocabulary,
                    frames,
                    builders.get(split),
                )
                for split in SPLITS
            }
            if not counts["train"]["documents"]:
                raise UserError("no documents are left for training; is --min-events too high?")
            manifest = {
                "format": FORMAT,
                "version": __version__,
                "sources": [{"path": path, "sha256": digest} for path, digest in hashes.items()],
                "settings": settings.to_dict(),
                "words": len(vocabulary),
                "frames": len(frames),
                "splits": counts,
                "cloze": {
                    split: _write_cloze(temporary / "cloze" / f"{split}.txt", builder)
                    for split, builder in builders.items()
                },
                "skipped": {path: skipped.count for path, skipped in source.skipped.items()},
                "sha256": {
                    p.relative_to(temporary).as_posix(): sha256(p)
                    for p in sorted(temporary.rglob("*"))
                    if p.is_file()
                },
            }
            (temporary / "manifest.json").write_text(
                json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
            )
            temporary.rename(out)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    return Corpus(out)


def _count_frames(documents: Iterable[Document], settings: PrepareSettings) -> Inventory:
    counter: Counter[str] = Counter()
    for document in documents:
        events = usable(document, settings)
        if len(events) >= settings.min_events:
            counter.update(event.frame for event in events if event.frame is not None)
    return Inventory.most_frequent(counter, settings.frames)


def _count_words(documents: Iterable[Document], settings: PrepareSettings, frames: Inventory) -> Vocabulary:
    counter: Counter[str] = Counter()
    for document in documents:
        events = usable(document, settings, frames)
        if len(events) >= settings.min_events:
            for event in events:
                counter.update(words_of(event, settings))
    # All words that are not kept count for the unknown one.
    kept = Vocabulary.from_counts(counter, settings.vocabulary)
    counts = list(kept.counts)
    counts[kept.unknown] += counter.total() - sum(counts)
    return Vocabulary(kept.names, counts)


def _write_split(
    path: Path,
    documents: Iterable[Document],
    settings: PrepareSettings,
    vocabulary: Vocabulary,
    frames: Inventory,
    cloze: ClozeBuilder | None,
) -> dict[str, int]:
    """One Arrow stream, written a block of rows at a time; returns what there was to count."""
    counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    layout = schema(settings.events)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, layout) as writer:
        rows: list[dict[str, Any]] = []
        for document in documents:
            counts["read"] += 1
            events = usable(document, settings, frames)
            if not settings.keep_frameless:
                counts["dropped_events"] += sum(event.frame not in frames for event in document.events)
            if len(events) < settings.min_events:
                counts["too_short"] += 1
                continue
            if cloze is not None:
                sequence = usable(document, settings, frames, most=settings.cloze_events)
                cloze.add(document.id, [words_of(event, settings) for event in sequence])
            row = _row(document.id, events, settings, vocabulary, frames)
            rows.append(row)
            counts["documents"] += 1
            counts["events"] += len(events)
            counts["frameless_events"] += row["frames"][: len(events)].count(-1)
            counts["unknown_words"] += row["tokens"][: 4 * len(events)].count(vocabulary.unknown)
            if len(rows) == ROWS:
                writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=layout))
                rows.clear()
        if rows:
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=layout))
    return dict(counts)


def _write_cloze(path: Path, builder: ClozeBuilder) -> int:
    """The items of a split, of which there may be none, and then there is no file; returns how many."""
    items = builder.items()
    if items:
        path.parent.mkdir(exist_ok=True)
        write_cloze(path, items)
    return len(items)


def _row(
    id: str, events: Sequence[Event], settings: PrepareSettings, vocabulary: Vocabulary, frames: Inventory
) -> dict[str, Any]:
    padding = settings.events - len(events)
    tokens = [token for event in events for token in vocabulary.word_ids(words_of(event, settings))]
    return {
        "id": id,
        "length": len(events),
        "tokens": tokens + [0] * (4 * padding),
        "frames": [frames.id(event.frame) for event in events] + [-1] * padding,
    }
