"""From documents to a corpus folder: select events, count words and frames, write their ids."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ssdvae.data.corpus import (
    ENDED,
    ITEMS,
    SOFT_FRAMES,
    TIMES,
    Corpus,
    SplitCounts,
    schema,
    split_file,
    write_manifest,
)
from ssdvae.data.events import MISSING, Document, Event, Words, folded, one_word
from ssdvae.data.items import ItemBuilder
from ssdvae.data.options import SPLITS, EngineOptions, PrepareOptions, Split
from ssdvae.data.process import PROCESS
from ssdvae.data.source import Source, SplitDocument, Work, convert_tables
from ssdvae.data.vocabulary import LEMMAS, Inventory, Vocabulary, majority_lemmas, save_lemmas
from ssdvae.io.errors import UserError
from ssdvae.io.files import new_folder, remove_left_overs, sha256, translate_os_errors
from ssdvae.io.progress import SILENT, Progress, track

ROWS = 2**17
"""Documents of a file, which are held in memory while it is written.

A file is one record batch, whose numbers stand one after another, so that it can be memory-mapped."""

COUNTS = [name for name in SplitCounts.model_fields if name != "longest"]
"""The counts of each split in the manifest."""

IN_THIS_PROCESS = EngineOptions(jobs=1)

Result = TypeVar("Result")


def usable_events(
    document: Document, options: PrepareOptions, frames: Inventory | None = None
) -> list[Event]:
    """Return the first M events; with ``drop_unlabelled``, of those that have a frame.

    Unlabelled events are dropped before cutting, so that a document gets no shorter than it must.
    With ``frames``, a frame outside the inventory counts as none.
    """
    return _usable_before_cut(document, options, frames)[: options.events]


def _usable_before_cut(document: Document, options: PrepareOptions, frames: Inventory | None) -> list[Event]:
    events = list(document.events)
    if options.min_probability:
        events = [_certain_enough(event, options.min_probability) for event in events]
    if not options.drop_unlabelled:
        return events
    return [e for e in events if e.frame is not None and (frames is None or e.frame in frames)]


def _certain_enough(event: Event, least: float) -> Event:
    if event.probability is None or event.probability >= least:
        return event
    return event.changed(frame=None, probability=None, alternatives=())


def soft_label(event: Event, frames: Inventory) -> list[tuple[int, float]]:
    """Return the ids of the likeliest known frames and their probabilities, made to sum to 1, label first.

    What an annotator gives to other frames is shared out in proportion. An event without a label has none.
    """
    label = frames.id(event.frame)
    if label < 0:
        return []
    others = [(frames.id(frame), p) for frame, p in event.alternatives if p > 0]
    known = [(label, event.probability or 1.0), *((n, p) for n, p in others if n not in (-1, label))]
    total = sum(p for _, p in known[:SOFT_FRAMES])
    return [(number, p / total) for number, p in known[:SOFT_FRAMES]]


def words_of(event: Event, options: PrepareOptions) -> Words:
    """Return the words of an event: one per slot, as the options ask for lemmas and lower case."""
    words = event.padded(len(options.slot_names))
    if options.lemmas and event.lemma is not None:
        words = (one_word(event.lemma) or MISSING, *words[1:])
    return words if options.lowercase is False else folded(words)


class _Passes:
    """Reads source files several times; remembers the numbers of their documents and bad lines."""

    def __init__(self, source: Source, engine: EngineOptions, progress: Progress) -> None:
        self.source, self.engine, self.progress = source, engine, progress
        self.skipped: dict[str, int] = {}
        self.documents: dict[Path, int] = {}  # of a file that was read before

    def map_documents(self, path: Path, label: str, work: Work[Result]) -> Iterator[Result]:
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
    options: PrepareOptions | None = None,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    engine: EngineOptions = IN_THIS_PROCESS,
    progress: Progress = SILENT,
) -> Corpus:
    """Write a corpus folder from one file, split by document id, or from one file for each split.

    Without a file for validation, a share of the training file is used. Vocabularies are counted on the
    training split only. The folder appears when it is complete, and does not depend on the ``engine``. Memory
    does not grow with the number of documents, except for the counts of distinct words.
    """
    options = options or PrepareOptions()
    if options.single_events:
        options = options.changed(events=1, min_events=1, cloze_items=0)
    if not isinstance(sources, Path):
        _check_splits(sources)
    if out.exists():
        remove_left_overs(out)
        raise UserError(f"{out} is already there; remove it, or choose another --out")
    source = Source(sources, options, format, skip_bad)

    with new_folder(out) as temporary:
        hashes = {str(path): sha256(path) for path in source.paths}
        with (
            convert_tables(source, temporary / "rows", progress) as converted,
            translate_os_errors(out, "write"),
        ):
            options, passes = converted.source.options, _Passes(converted.source, engine, progress)
            if options.lowercase is None:
                options = options.changed(lowercase=converted.columns is None)
            if converted.process is not None:
                (temporary / PROCESS).write_text(converted.process.model_dump_json(), encoding="utf-8")
            frames, vocabulary, lemmas = _count(passes, options)
            vocabulary.save(temporary / "vocab.json")
            frames.save(temporary / "frames.json")
            if lemmas:
                save_lemmas(lemmas, temporary / LEMMAS)
            columns = converted.columns
            ends = columns is not None and not (options.open or options.single_events)
            layout = schema(options.soft_labels, ends, columns is not None and columns.time is not None)
            counts, builders = _write_splits(passes, temporary, options, vocabulary, frames, layout)
        with translate_os_errors(out, "write"):
            if not counts["train"]["documents"]:
                if options.drop_unlabelled and counts["train"]["dropped_events"] and not len(frames):
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
                options=options,
                words=len(vocabulary),
                frames=len(frames),
                splits=counts,
                items=items,
                skipped={**passes.skipped, **converted.skipped},
                columns=converted.columns,
                ends=ENDED in layout,
                times=TIMES in layout,
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
    """Counts of the frames and words of some documents, and of the lemmas of heads."""

    frames: Counter[str] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)
    lemmas: Counter[tuple[str, str]] = field(default_factory=Counter)

    @classmethod
    def of(
        cls, documents: Iterable[SplitDocument], options: PrepareOptions, frames: Inventory | None
    ) -> Self:
        counted = cls()
        for split, document in documents:
            events = usable_events(document, options, frames) if split == "train" else ()
            if len(events) >= options.min_events:
                counted.frames.update([event.frame for event in events if event.frame is not None])
                counted.words.update(_words(events, options))
                counted.lemmas.update(_lemmas(events, options))
        return counted

    def add(self, other: _Counted) -> None:
        self.frames.update(other.frames)
        self.words.update(other.words)
        self.lemmas.update(other.lemmas)


def _count(passes: _Passes, options: PrepareOptions) -> tuple[Inventory, Vocabulary, dict[str, str]]:
    path = passes.source.path("train")
    total = _Counted()
    for part in passes.map_documents(path, "counting", partial(_Counted.of, options=options, frames=None)):
        total.add(part)
    frames = Inventory.most_frequent(total.frames, options.frames)
    if len(total.frames) > len(frames) and options.drop_unlabelled:
        # Events of the other frames are dropped, so that later ones may take their places.
        total = _Counted()
        work = partial(_Counted.of, options=options, frames=frames)
        for part in passes.map_documents(path, "counting words", work):
            total.add(part)
    # All words that are not kept count for the unknown one.
    kept = Vocabulary.most_frequent(total.words, options.vocabulary)
    counts = list(kept.counts)
    counts[kept.unknown] += total.words.total() - sum(counts)
    return frames, Vocabulary(kept.names, counts), majority_lemmas(total.lemmas, kept)


def _words(events: Iterable[Event], options: PrepareOptions) -> list[str]:
    return list(chain.from_iterable(words_of(event, options) for event in events))


def _lemmas(events: Iterable[Event], options: PrepareOptions) -> list[tuple[str, str]]:
    """Return pairs of heads and their lemmas, where these are known."""
    return [(words_of(event, options)[0], event.lemma) for event in events if event.lemma is not None]


class _EncodedSplit:
    """The ids of the words and frames of some documents of one split, and their counts."""

    def __init__(self, split: Split, options: PrepareOptions, layout: pa.Schema) -> None:
        self.options, self.layout = options, layout
        self.ids: list[str] = []
        self.ends: list[int] = [0]  # of each document, in events
        self.tokens: list[int] = []
        self.frames: list[int] = []
        self.soft: list[tuple[int, float]] = []  # ``SOFT_FRAMES`` of each event
        self.ended: list[bool] = []  # by document
        self.times: list[float | None] = []
        self.counts: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
        self.items = None if split == "train" else ItemBuilder(options)

    def add(self, document: Document, vocabulary: Vocabulary, frames: Inventory) -> None:
        counts, options = self.counts, self.options
        counts["read"] += 1
        usable = _usable_before_cut(document, options, frames)
        events = usable[: options.events]
        if options.drop_unlabelled:
            counts["dropped_events"] += len(document.events) - len(usable)
        if len(events) < options.min_events:
            counts["too_short"] += 1
            return
        if self.items is not None:
            sequence = usable[: options.cloze_events]
            self.items.add(document.id, [words_of(event, options) for event in sequence])
        words = vocabulary.word_ids(_words(events, options))
        known = [frames.id(event.frame) for event in events]
        self.ids.append(document.id)
        self.ends.append(self.ends[-1] + len(events))
        self.tokens += words
        self.frames += known
        if options.soft_labels:
            for event in events:
                soft = soft_label(event, frames)
                self.soft += soft + [(-1, 0.0)] * (SOFT_FRAMES - len(soft))
        self.ended.append(events[-1] is document.events[-1])
        self.times += [event.time for event in events]
        counts["documents"] += 1
        counts["events"] += len(events)
        counts["one_event"] += len(events) == 1
        counts["cut_events"] += len(usable) - len(events)
        counts["frameless_events"] += known.count(-1)
        counts["unknown_words"] += words.count(vocabulary.unknown)

    def rows(self) -> pa.RecordBatch:
        values = {
            "id": self.ids,
            "tokens": self.tokens,
            "frames": self.frames,
            "soft_frames": [frame for frame, _ in self.soft],
            "soft_weights": [weight for _, weight in self.soft],
            "ended": self.ended,
            "times": self.times,
        }
        return _record_batch(self.layout, len(self.options.slot_names), np.array(self.ends), values)


def _record_batch(layout: pa.Schema, slots: int, ends: Any, values: Mapping[str, Any]) -> pa.RecordBatch:
    """Return rows of a split. ``ends`` are the ends of the documents in events, from 0."""
    numbers = {"tokens": slots, "soft_frames": SOFT_FRAMES, "soft_weights": SOFT_FRAMES}  # of an event

    def column(field: pa.Field) -> pa.Array:
        if not pa.types.is_list(field.type):
            return pa.array(values[field.name], field.type)
        places = pa.array(numbers.get(field.name, 1) * ends, pa.int32())
        return pa.ListArray.from_arrays(places, pa.array(values[field.name], field.type.value_type))

    return pa.record_batch([column(field) for field in layout], schema=layout)


Encoded = tuple[pa.RecordBatch, "Counter[str]", ItemBuilder | None]


def _encode_documents(
    documents: Iterable[SplitDocument],
    options: PrepareOptions,
    vocabulary: Vocabulary,
    frames: Inventory,
    layout: pa.Schema,
) -> dict[Split, Encoded]:
    encoded: dict[Split, _EncodedSplit] = {}
    for split, document in documents:
        if split not in encoded:
            encoded[split] = _EncodedSplit(split, options, layout)
        encoded[split].add(document, vocabulary, frames)
    return {split: (part.rows(), part.counts, part.items) for split, part in encoded.items()}


class _SplitFiles:
    """The Arrow streams of a split, with the same number of documents however these arrive."""

    def __init__(self, folder: Path, split: Split, layout: pa.Schema) -> None:
        self.folder, self.split, self.files = folder, split, 0
        self.waiting = layout.empty_table()
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
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, rows.schema) as writer:
            # Copied, not sliced: the same documents give the same bytes, whatever they were sliced from.
            writer.write_table(rows.take(pa.array(range(len(rows)), pa.int64())).combine_chunks())
        self.files += 1

    def finish(self) -> None:
        """Write the rest; a split without documents gets a file without rows."""
        if len(self.waiting) or not self.files:
            self._write_file()


def _write_splits(
    passes: _Passes,
    folder: Path,
    options: PrepareOptions,
    vocabulary: Vocabulary,
    frames: Inventory,
    layout: pa.Schema,
) -> tuple[dict[Split, dict[str, int]], dict[Split, ItemBuilder]]:
    """Write all documents, reading each file once; return the counts and the item builder of each split."""
    counts: dict[Split, Counter[str]] = {split: Counter(dict.fromkeys(COUNTS, 0)) for split in SPLITS}
    builders: dict[Split, ItemBuilder] = {s: ItemBuilder(options) for s in SPLITS if s != "train"}
    known = {"options": options, "vocabulary": vocabulary, "frames": frames, "layout": layout}
    work = partial(_encode_documents, **known)
    files = {split: _SplitFiles(folder, split, layout) for split in SPLITS}
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


def single_events(corpus: Corpus, out: Path) -> Corpus:
    """Write a corpus in which every event of another one is a document by itself (M = 1).

    In contrast to ``prepare --single-events``, words, frames and splits stay those of the corpus, so that
    results can be compared. A folder that was made from the same corpus before is kept.
    """
    if out.exists():
        made = Corpus(out)
        if [source["sha256"] for source in made.manifest["sources"]] != [corpus.fingerprint]:
            raise UserError(f"{out} was made from another corpus than {corpus.folder}\nchoose another folder")
        return made
    with new_folder(out) as temporary, translate_os_errors(out, "write"):
        for name in ("vocab.json", "frames.json", LEMMAS):
            if (corpus.folder / name).is_file():
                shutil.copyfile(corpus.folder / name, temporary / name)
        counts = {split: _write_single_events(corpus, split, temporary) for split in SPLITS}
        options = PrepareOptions.of(corpus.manifest["settings"])
        write_manifest(
            temporary,
            sources={str(corpus.folder): corpus.fingerprint},
            options=options.changed(
                single_events=True, events=1, min_events=1, cloze_items=0, soft_labels=False
            ),
            words=corpus.manifest["words"],
            frames=corpus.manifest["frames"],
            splits=counts,
            items={split: dict.fromkeys(ITEMS, 0) for split in ("valid", "test")},
            skipped={},
            columns=corpus.columns,
            times=corpus.times,
        )
    return Corpus(out)


def _write_single_events(corpus: Corpus, split: Split, folder: Path) -> dict[str, int]:
    counts, layout = corpus.manifest["splits"][split], schema(times=corpus.times)
    with (
        pa.OSFile(str(folder / split_file(split, 0)), "wb") as file,
        pa.ipc.new_stream(file, layout) as writer,
    ):
        if counts["documents"]:
            documents = corpus.split(split)
            ids = [
                f"{id}#{number}"
                for id, length in zip(documents.ids.to_pylist(), documents.lengths.tolist(), strict=True)
                for number in range(1, length + 1)
            ]
            places, ends = documents.in_order(), np.arange(len(ids) + 1, dtype=np.int32)
            tokens, frames = documents.tokens[places].reshape(-1), documents.frames[places]
            times = None if documents.times is None else documents.times[places]
            values = {"id": ids, "tokens": tokens, "frames": frames, "times": times}
            writer.write_batch(_record_batch(layout, len(corpus.slots), ends, values))
    return {**counts, "documents": counts["events"], "too_short": 0, "longest": min(1, counts["events"])}
