"""Settings from texts to a corpus folder."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from ssdvae.config.settings import Settings, setting
from ssdvae.config.slots import SLOTS, Slots, slots_of_text
from ssdvae.errors import Malformed, UserError

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


def cores() -> int:
    """Cores that this process may use: what 0 means as a number of --jobs."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True)
class ColumnSettings(Settings):
    """Which columns of a table or a log make an event."""

    topic: ClassVar[str] = "columns of a table or a log"

    case: str | None = setting(None, "column with the case of each row; the rows of a case are a document")
    time: str | None = setting(
        None, "column with the time, by which the rows of a case are sorted; by default as they stand"
    )
    head: str | None = setting(None, "column with what happened: the head of the event")
    arguments: str | None = setting(
        None, "columns with the other slots of the event, with commas between: who, with what, where"
    )
    label: str | None = setting(None, "column with the frame of the event, empty where it is not known")
    gaps: bool = setting(False, "add a slot with the time since the event before, such as <1min, <1h or <1d")

    @property
    def named_columns(self) -> dict[str, Any]:
        """What is asked for, by its name; nothing if the file is no table."""
        found = {name: getattr(self, name) for name in ColumnSettings.names()}
        if self.arguments is not None:
            found["arguments"] = names_of_text(self.arguments)
        return {name: value for name, value in found.items() if value}

    def check_relations(self) -> None:
        names = names_of_text(self.arguments or "")
        twice = sorted({name for name in names if names.count(name) > 1})
        self._require("arguments", not twice, f"each column once, not {', '.join(twice)} again")
        self._require("arguments", self.head not in names, f"other columns than --head ({self.head})")


def names_of_text(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True, kw_only=True)
class PrepareSettings(ColumnSettings):
    """From documents to a corpus folder."""

    topic: ClassVar[str] = "documents"

    bin: str | None = setting(
        None,
        "columns of numbers among the arguments, and how many bins each gets, as amount=10; with commas "
        "between, or again. The bins have as many numbers of the training split each",
        topic=ColumnSettings.topic,
        repeatable=True,
    )
    slots: str = setting(
        ",".join(SLOTS),
        "names of the slots of an event, with commas between; the first is the head, of which a frame is a "
        "class",
    )
    events: int | None = setting(
        None, "keep only the first events of each document (M); by default all", at_least=1, at_most=10_000
    )
    min_events: int = setting(1, "leave out documents with fewer usable events than this", at_least=1)
    single_events: bool = setting(
        False, "make every event a document by itself (M = 1), as frame prediction needs it"
    )
    vocabulary: int = setting(
        40_000,
        "vocabulary size (V): the most frequent words of the training split, the missing word and the "
        "unknown word included",
        at_least=3,
        topic="vocabularies",
    )
    frames: int = setting(
        500,
        "number of frames (F): the most frequent of the training split",
        at_least=1,
        topic="vocabularies",
    )
    drop_unlabelled: bool = setting(
        False, "drop events without a frame, as the paper does; by default they are kept, as latent"
    )
    lowercase: bool = setting(True, "convert all words to lower case", topic="vocabularies")
    lemmas: bool = setting(
        False, "take the lemma of a head instead of its form, where events have lemmas", topic="vocabularies"
    )
    valid_share: float = setting(
        0.05,
        "fraction of the documents for validation, when one file is split",
        at_least=0,
        below=1,
        topic="splits",
    )
    test_share: float = setting(
        0.05,
        "fraction of the documents for testing, when one file is split",
        at_least=0,
        below=1,
        topic="splits",
    )
    cloze_items: int = setting(
        2_000,
        "items of each kind (cloze, masked event, order) for validation and for testing, at most; 0 for none",
        at_least=0,
        topic="cloze",
    )
    cloze_events: int = setting(
        6,
        "events of a cloze sequence, the seed event included; shorter documents give no cloze item",
        at_least=2,
        topic="cloze",
    )
    cloze_options: int = setting(
        6,
        "answers to choose from in a cloze or masked-event item, the true one included",
        at_least=2,
        topic="cloze",
    )
    cloze_seed: int = setting(
        1, "random seed that draws the documents and wrong answers of the items", topic="cloze"
    )

    @cached_property
    def slot_names(self) -> Slots:
        return slots_of_text(self.slots)

    @property
    def bins(self) -> dict[str, int]:
        """How many bins each column of numbers gets."""
        pairs = [part.rpartition("=") for part in names_of_text(self.bin or "")]
        return {name.strip(): int(count) for name, _, count in pairs}

    def check_relations(self) -> None:
        super().check_relations()
        columns = names_of_text(self.arguments or "")
        for part in names_of_text(self.bin or ""):
            name, _, count = (piece.strip() for piece in part.rpartition("="))
            right = count.isascii() and count.isdigit() and 2 <= int(count[:9]) <= 1000
            self._require(
                "bin", bool(name) and right, "a column and its number of bins, 2 to 1000: amount=10"
            )
            self._require("bin", name in columns, f"one of --arguments ({', '.join(columns) or 'none'})")
        try:
            self.slot_names  # noqa: B018  # looked at, so that it is refused here
        except Malformed as error:
            raise UserError(f"--slots: {error}") from error
        possible = self.events is None or self.min_events <= self.events
        self._require("min_events", possible, f"at most the {self.events} of --events")
        some_left = self.valid_share + self.test_share < 1
        self._require("test_share", some_left, "something to be left for training")
        # The distractors of an item come from the documents of the others.
        enough = self.cloze_items == 0 or self.cloze_items >= self.cloze_options
        self._require("cloze_items", enough, f"0, or at least the {self.cloze_options} of --cloze-options")


@dataclass(frozen=True, kw_only=True)
class EngineSettings(Settings):
    """Where work is done that many processes share. What comes of it is the same wherever that is."""

    topic: ClassVar[str] = "processes"

    jobs: int = setting(0, "number of processes; 0 for one per core", at_least=0)
    engine: Literal["processes", "ray"] = setting(
        "processes", "what runs them: this machine, or Ray (extra: ray), on as many machines as there are"
    )
    address: str | None = setting(
        None,
        "Ray cluster to join, such as auto or 10.0.0.1:6379; by default Ray is started on this machine alone",
    )

    def check_relations(self) -> None:
        self._require("address", self.address is None or self.engine == "ray", "none without --engine ray")


@dataclass(frozen=True, kw_only=True)
class StreamSettings(EngineSettings):
    """Documents through many processes into a file, or into a folder of shards."""

    topic: ClassVar[str] = "shards"

    shard_documents: int = setting(
        1000, "documents of a shard, where --out is a folder and the input is not one of shards", at_least=1
    )
    shard_format: Literal["jsonl.gz", "jsonl", "parquet"] = setting(
        "jsonl.gz", "format of the shards, where --out is a folder"
    )


@dataclass(frozen=True, kw_only=True)
class ExtractSettings(StreamSettings):
    """From text, or parsed text, to documents of events."""

    topic: ClassVar[str] = "events"

    spacy_model: str = setting(
        "en_core_web_sm", "spaCy model that parses plain text: a name or a folder", topic="reading"
    )
    text_column: str = setting("text", "column (or key) of a table that has the text", topic="reading")
    lemmas: bool = setting(False, "write lemmas (move) instead of the words of the text (moved)")
    negation: Literal["keep", "mark", "drop"] = setting(
        "keep", "negated events: keep them like any other, mark the verb (not_left), or drop them"
    )
    keep_text: bool = setting(False, "store the sentence with each event, for annotators that read sentences")


@dataclass(frozen=True, kw_only=True)
class AnnotateSettings(StreamSettings):
    """Frames for events."""

    topic: ClassVar[str] = "frames"

    # Nine of ten frames that this lets through are right in full texts of FrameNet (docs/extraction.md).
    threshold: float = setting(
        0.7,
        "lowest probability of a frame that is written; below it, the event stays latent",
        at_least=0,
        at_most=1,
    )
    replace: bool = setting(False, "annotate events that already have a frame, too")
