"""From documents to a corpus folder: choose events, count words and frames, write numbers."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from ssdvae.config import SPLITS, EngineSettings, PrepareSettings, Split
from ssdvae.data.corpus import SCHEMA, Corpus, split_file, write_manifest
from ssdvae.data.events import Document, Event, Words, folded
from ssdvae.data.items import ItemBuilder
from ssdvae.data.lemmas import LEMMAS, commonest_lemmas, one_word, save_lemmas
from ssdvae.data.source import Found, Source, split_of
from ssdvae.data.tables import as_documents
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import UserError
from ssdvae.files import new_folder, sha256, translate_os_errors
from ssdvae.progress import SILENT, Progress, track

__all__ = ["prepare", "split_of", "usable_events", "words_of"]

ROWS = 2**17
"""Documents of a file: what is held in memory while writing.

A file is one record batch, whose numbers stand one after another, so that they can be read where they are."""

log = logging.getLogger(__name__)

COUNTS = [
    "read",
    "documents",
    "too_short",
    "events",
    "cut_events",
    "dropped_events",
    "frameless_events",
    "unknown_words",
    "one_event",
]
"""Counts of each split that the manifest has."""

ALONE = EngineSettings(jobs=1)
"""All in this process."""

Result = TypeVar("Result")


def usable_events(
    document: Document, settings: PrepareSettings, frames: Inventory | None = None
) -> list[Event]:
    """Return the first M events; with ``drop_unlabelled``, of those that have a frame.

    Unlabelled events are dropped before cutting, so that a document gets no shorter than it must.
    With ``frames``, a frame outside the inventory counts as none.
    """
    return _usable(document, settings, frames)[: settings.events]


def _usable(document: Document, settings: PrepareSettings, frames: Inventory | None) -> list[Event]:
    """Before they are cut to the first M."""
    if not settings.drop_unlabelled:
        return list(document.events)
    return [e for e in document.events if e.frame is not None and (frames is None or e.frame in frames)]


def words_of(event: Event, settings: PrepareSettings) -> Words:
    words = event.padded(len(settings.slot_names))
    if settings.lemmas and event.lemma is not None:
        words = (one_word(event.lemma), *words[1:])
    return folded(words) if settings.lowercase else words


class _Passes:
    """Reads each source file as often as needed; remembers how many documents and bad lines it has."""

    def __init__(self, source: Source, engine: EngineSettings, progress: Progress) -> None:
        self.source, self.engine, self.progress = source, engine, progress
        self.skipped: dict[str, int] = {}
        self.documents: dict[Path, int] = {}  # how many to expect, of a file that was read before

    def map_documents(
        self, path: Path, label: str, work: Callable[[Iterable[Found]], Result]
    ) -> Iterator[Result]:
        read = bad = 0
        parts = self.source.read(path, work, self.engine)
        for part in track(self.progress, parts, label, self.documents.get(path), lambda part: part.read):
            read, bad = read + part.read, bad + part.bad
            yield part.result
        self.documents[path] = read
        if self.source.skip_bad:
            self.skipped[str(path)] = bad


def prepare(
    sources: Path | Mapping[Split, Path],
    out: Path,
    settings: PrepareSettings | None = None,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    engine: EngineSettings = ALONE,
    progress: Progress = SILENT,
) -> Corpus:
    """Write a corpus folder from one file, split by document id, or from one file for each split;

    without one for validation, that is a share of the training file.

    Vocabularies are counted on the training split only. The folder appears when it is complete, and is the
    same whatever the ``engine`` that shares the work. What is held in memory does not grow with the
    documents, but for the counts of the different words.
    """
    settings = settings or PrepareSettings()
    if settings.single_events:
        settings = replace(settings, events=1, min_events=1, cloze_items=0)
    if not isinstance(sources, Path):
        _check_splits(sources)
    if out.exists():
        raise UserError(f"{out} is already there; remove it, or choose another --out")
    source = Source(sources, settings, format, skip_bad)

    with new_folder(out) as temporary:
        hashes = {str(path): sha256(path) for path in source.paths}
        with as_documents(source, temporary / "rows", progress) as given, translate_os_errors(out, "write"):
            settings, passes = given.source.settings, _Passes(given.source, engine, progress)
            frames, vocabulary, lemmas = _count(passes, settings)
            vocabulary.save(temporary / "vocab.json")
            frames.save(temporary / "frames.json")
            if lemmas:
                save_lemmas(lemmas, temporary / LEMMAS)
            counts, builders = _write_splits(passes, temporary, settings, vocabulary, frames)
        with translate_os_errors(out, "write"):
            if not counts["train"]["documents"]:
                if settings.drop_unlabelled and counts["train"]["dropped_events"] and not len(frames):
                    raise UserError(
                        "no event of the training split has a frame: prepare without --drop-unlabelled"
                    )
                raise UserError(
                    "no documents are left for training; is the file empty, or --min-events too high?"
                )
            items = {split: builder.write(temporary, split) for split, builder in builders.items()}
            write_manifest(
                temporary,
                sources=hashes,
                settings=settings,
                words=len(vocabulary),
                frames=len(frames),
                splits=counts,
                items=items,
                skipped={**passes.skipped, **given.skipped},
                columns=given.columns,
            )
    return Corpus(out)


def _check_splits(sources: Mapping[Split, Path]) -> None:
    if unknown := [name for name in sources if name not in SPLITS]:
        raise UserError(f"no split {unknown[0]!r}; there are: {', '.join(SPLITS)}")
    if missing := [split for split in ("train", "test") if split not in sources]:
        raise UserError(
            f"no file for the split {missing[0]!r}; give one file to be split, or one for training, one for "
            "testing and perhaps one for validation"
        )


@dataclass(frozen=True)
class _Counted:
    """Frames and words of some documents, and the lemmas of heads."""

    frames: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    lemmas: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(cls, found: Iterable[Found], settings: PrepareSettings, frames: Inventory | None) -> Self:
        counted = cls()
        for split, document in found:
            events = usable_events(document, settings, frames) if split == "train" else ()
            if len(events) >= settings.min_events:
                counted.frames.update([event.frame for event in events if event.frame is not None])
                counted.words.update(_words(events, settings))
                counted.lemmas.update(_lemmas(events, settings))
        return counted

    def add(self, other: _Counted) -> None:
        self.frames.update(other.frames)
        self.words.update(other.words)
        self.lemmas.update(other.lemmas)


def _count(passes: _Passes, settings: PrepareSettings) -> tuple[Inventory, Vocabulary, dict[str, str]]:
    path = passes.source.path("train")
    total = _Counted()
    for part in passes.map_documents(path, "counting", partial(_Counted.of, settings=settings, frames=None)):
        total.add(part)
    frames = Inventory.most_frequent(total.frames, settings.frames)
    if len(total.frames) > len(frames) and settings.drop_unlabelled:
        # Events of the other frames are dropped, so that later ones may take their places.
        total = _Counted()
        work = partial(_Counted.of, settings=settings, frames=frames)
        for part in passes.map_documents(path, "counting words", work):
            total.add(part)
    # All words that are not kept count for the unknown one.
    kept = Vocabulary.from_counts(total.words, settings.vocabulary)
    counts = list(kept.counts)
    counts[kept.unknown] += total.words.total() - sum(counts)
    return frames, Vocabulary(kept.names, counts), commonest_lemmas(total.lemmas, kept)


def _words(events: Iterable[Event], settings: PrepareSettings) -> list[str]:
    return list(chain.from_iterable(words_of(event, settings) for event in events))


def _lemmas(events: Iterable[Event], settings: PrepareSettings) -> list[tuple[str, str]]:
    """Heads and their lemmas, where these are known."""
    return [(words_of(event, settings)[0], event.lemma) for event in events if event.lemma is not None]


class _EncodedSplit:
    """Some documents of one split in numbers, and their counts."""

    def __init__(self, split: Split, settings: PrepareSettings) -> None:
        self.settings = settings
        self.ids: list[str] = []
        self.ends: list[int] = [0]  # of each document, in events
        self.tokens: list[int] = []
        self.frames: list[int] = []
        self.counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
        self.items = None if split == "train" else ItemBuilder(settings)

    def add(self, document: Document, vocabulary: Vocabulary, frames: Inventory) -> None:
        counts, settings = self.counts, self.settings
        counts["read"] += 1
        usable = _usable(document, settings, frames)
        events = usable[: settings.events]
        if settings.drop_unlabelled:
            counts["dropped_events"] += sum(event.frame not in frames for event in document.events)
        if len(events) < settings.min_events:
            counts["too_short"] += 1
            return
        if self.items is not None:
            sequence = usable[: settings.cloze_events]
            self.items.add(document.id, [words_of(event, settings) for event in sequence])
        words = vocabulary.word_ids(_words(events, settings))
        known = [frames.id(event.frame) for event in events]
        self.ids.append(document.id)
        self.ends.append(self.ends[-1] + len(events))
        self.tokens += words
        self.frames += known
        counts["documents"] += 1
        counts["events"] += len(events)
        counts["one_event"] += len(events) == 1
        counts["cut_events"] += len(usable) - len(events)
        counts["frameless_events"] += known.count(-1)
        counts["unknown_words"] += words.count(vocabulary.unknown)

    def rows(self) -> pa.RecordBatch:
        def lists(numbers: list[int], each: int) -> pa.ListArray:
            ends = pa.array([each * end for end in self.ends], pa.int32())
            return pa.ListArray.from_arrays(ends, pa.array(numbers, pa.int32()))

        columns = [
            pa.array(self.ids, pa.string()),
            lists(self.tokens, len(self.settings.slot_names)),
            lists(self.frames, 1),
        ]
        return pa.record_batch(columns, schema=SCHEMA)


Encoded = tuple[pa.RecordBatch, "Counter[str]", ItemBuilder | None]


def _encode_documents(
    found: Iterable[Found], settings: PrepareSettings, vocabulary: Vocabulary, frames: Inventory
) -> dict[Split, Encoded]:
    numbers: dict[Split, _EncodedSplit] = {}
    for split, document in found:
        if split not in numbers:
            numbers[split] = _EncodedSplit(split, settings)
        numbers[split].add(document, vocabulary, frames)
    return {split: (some.rows(), some.counts, some.items) for split, some in numbers.items()}


class _SplitFiles:
    """The Arrow streams of a split, of the same size however the documents come."""

    def __init__(self, folder: Path, split: Split) -> None:
        self.folder, self.split, self.files = folder, split, 0
        self.waiting = SCHEMA.empty_table()
        self.longest = 0  # events of a document

    def write(self, rows: pa.RecordBatch) -> None:
        longest = pc.max(pc.list_value_length(rows.column("frames"))).as_py()
        self.longest = max(self.longest, longest or 0)
        self.waiting = pa.concat_tables([self.waiting, pa.Table.from_batches([rows])])
        while len(self.waiting) >= ROWS:
            self._write_file()

    def _write_file(self) -> None:
        rows, self.waiting = self.waiting.slice(0, ROWS), self.waiting.slice(ROWS)
        path = self.folder / split_file(self.split, self.files)
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, SCHEMA) as writer:
            # Copied, not cut out: the same documents give the same bytes, whatever they were cut from.
            writer.write_table(rows.take(pa.array(range(len(rows)), pa.int64())).combine_chunks())
        self.files += 1

    def finish(self) -> None:
        """The rest; of a split without documents, a file that says so."""
        if len(self.waiting) or not self.files:
            self._write_file()


def _write_splits(
    passes: _Passes, folder: Path, settings: PrepareSettings, vocabulary: Vocabulary, frames: Inventory
) -> tuple[dict[Split, dict[str, int]], dict[Split, ItemBuilder]]:
    """All documents, each file read once; returns the counts and what may be asked of each split."""
    counts: dict[Split, Counter[str]] = {split: Counter(dict.fromkeys(COUNTS, 0)) for split in SPLITS}
    builders: dict[Split, ItemBuilder] = {s: ItemBuilder(settings) for s in SPLITS if s != "train"}
    work = partial(_encode_documents, settings=settings, vocabulary=vocabulary, frames=frames)
    files = {split: _SplitFiles(folder, split) for split in SPLITS}
    for path in dict.fromkeys(passes.source.path(split) for split in SPLITS):
        for part in passes.map_documents(path, "writing", work):
            for split, (rows, counted, items) in part.items():
                files[split].write(rows)
                counts[split].update(counted)
                if items is not None:
                    builders[split].add_all(items)
    for file in files.values():
        file.finish()
    found = {split: {**counts[split], "longest": files[split].longest} for split in SPLITS}
    return found, builders
