"""Options from texts, tables and generated documents to a corpus folder."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, ClassVar, Literal

from pydantic import Field

from ssdvae.data.events import SLOTS, Slots, check_slots
from ssdvae.io.errors import Malformed, UserError
from ssdvae.options import Options, names_of_text

Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")


def cores() -> int:
    """Return the number of cores that this process may use: the meaning of --jobs 0."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


Lifecycle = Literal["complete", "separate"]


class ReadOptions(Options):
    """Options of reading files of documents."""

    group: ClassVar[str] = "input and output"

    format: str | None = Field(None, description="jsonl, csv, parquet, official or xes; by default as named")
    skip_bad: bool = Field(False, description="count and report malformed input instead of stopping")


class ColumnOptions(Options):
    """The columns of a table or a log that make an event."""

    group: ClassVar[str] = "columns of a table or a log"

    case: str | None = Field(
        None, description="column with the case of each row; the rows of a case are a document"
    )
    time: str | None = Field(
        None,
        description="column with the time, by which the rows of a case are sorted; by default in file order",
    )
    head: str | None = Field(None, description="column with what happened: the head of the event")
    arguments: str | None = Field(
        None,
        description="columns with the other slots of the event, separated by commas: who, with what, where",
    )
    label: str | None = Field(None, description="column with the frame of the event, empty if it is latent")
    gaps: bool = Field(
        False, description="add a slot with the time since the previous event, such as <1min, <1h or <1d"
    )

    lifecycle: Lifecycle | None = Field(
        None,
        description="events of a log that schedule, start or complete an activity: keep only those that "
        "complete it, or make each transition an activity of its own; by default all are kept alike",
    )

    @property
    def named_columns(self) -> dict[str, Any]:
        """The columns that are named, by their role."""
        found = {name: getattr(self, name) for name in ColumnOptions.names()}
        if self.arguments is not None:
            found["arguments"] = names_of_text(self.arguments)
        return {name: value for name, value in found.items() if value}

    def check_relations(self) -> None:
        names = names_of_text(self.arguments or "")
        twice = sorted({name for name in names if names.count(name) > 1})
        self._require("arguments", not twice, f"each column once, not {', '.join(twice)} again")
        self._require("arguments", self.head not in names, f"other columns than --head ({self.head})")


class PrepareOptions(ColumnOptions):
    """Options of `prepare`."""

    group: ClassVar[str] = "documents"
    repeatable: ClassVar[frozenset[str]] = frozenset({"bin"})
    """Flags that may be given again: their values are joined by commas."""

    bin: str | None = Field(
        None,
        description="columns of numbers among the arguments, and their numbers of bins, as amount=10; "
        "separated by commas, or repeated. The bins are quantiles of the training split",
    )
    slots: str = Field(
        ",".join(SLOTS),
        description="names of the slots of an event, separated by commas; the first is the head, of which a "
        "frame is a class",
    )
    events: int | None = Field(
        None, description="keep only the first events of each document (M); by default all", ge=1, le=10_000
    )
    min_events: int = Field(1, description="leave out documents with fewer usable events than this", ge=1)
    single_events: bool = Field(
        False, description="make every event a document by itself (M = 1), as frame prediction needs it"
    )
    vocabulary: int = Field(
        40_000,
        description="vocabulary size (V): the most frequent words of the training split, the missing word "
        "and the unknown word included",
        ge=3,
    )
    frames: int = Field(
        500, description="number of frames (F): the most frequent of the training split", ge=1
    )
    open: bool = Field(
        False,
        description="cases of the log are still running, so none has ended; by default every case "
        "of a table or a log is over, and models learn when cases end",
    )
    drop_unlabelled: bool = Field(
        False,
        description="drop events without a frame, as the paper does; by default they are kept, as latent",
    )
    min_probability: float = Field(
        0.0,
        description="lowest probability of a frame that an annotator found; below it, the event is latent",
        ge=0,
        le=1,
    )
    soft_labels: bool = Field(
        False,
        description="keep the likeliest frames of labelled events with their probabilities, where an "
        "annotator wrote them (annotate --soft): ssdvae-exact then learns from the expected label loss",
    )
    lowercase: bool | None = Field(
        None,
        description="convert all words to lower case; by default those of texts, not of a table or a log",
    )
    lemmas: bool = Field(
        False, description="take the lemma of a head instead of its form, where events have lemmas"
    )
    valid_share: float = Field(
        0.05, description="fraction of the documents for validation, when one file is split", ge=0, lt=1
    )
    test_share: float = Field(
        0.05, description="fraction of the documents for testing, when one file is split", ge=0, lt=1
    )
    cloze_items: int = Field(
        2_000,
        description="largest number of items of each kind (cloze, masked event, order) for validation and "
        "for testing; 0 for none",
        ge=0,
    )
    cloze_events: int = Field(
        6,
        description="events of a cloze sequence, the seed event included; shorter documents give none",
        ge=2,
    )
    cloze_options: int = Field(
        6, description="answers to choose from in a cloze or masked-event item, the true one included", ge=2
    )
    cloze_seed: int = Field(
        1, description="random seed that draws the documents and wrong answers of the items"
    )

    @cached_property
    def slot_names(self) -> Slots:
        return check_slots(name.strip() for name in self.slots.split(","))

    @property
    def bins(self) -> dict[str, int]:
        """The number of bins of each column of numbers."""
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
            self.slot_names  # noqa: B018  # refuses wrong names
        except Malformed as error:
            raise UserError(f"--slots: {error}") from error
        possible = self.events is None or self.min_events <= self.events
        self._require("min_events", possible, f"at most the {self.events} of --events")
        some_left = self.valid_share + self.test_share < 1
        self._require("test_share", some_left, "something to be left for training")
        # The distractors of an item come from the documents of the others.
        enough = self.cloze_items == 0 or self.cloze_items >= self.cloze_options
        self._require("cloze_items", enough, f"0, or at least the {self.cloze_options} of --cloze-options")


class EngineOptions(Options):
    """The processes that share the work. The result does not depend on them."""

    group: ClassVar[str] = "processes"

    jobs: int = Field(0, description="number of processes; 0 for one per core", ge=0)
    engine: Literal["processes", "ray"] = Field(
        "processes",
        description="where they run: on this machine, or on a Ray cluster (extra: ray)",
    )
    address: str | None = Field(
        None,
        description="Ray cluster to join, such as auto or 10.0.0.1:6379; by default Ray runs on this machine",
    )

    def check_relations(self) -> None:
        self._require("address", self.address is None or self.engine == "ray", "none without --engine ray")


class StreamOptions(EngineOptions):
    """Options of resumable streams of documents into a file or a folder of shards."""

    group: ClassVar[str] = "shards"

    shard_documents: int = Field(
        1000,
        description="documents per shard, if --out is a folder and the input is not one of shards",
        ge=1,
    )
    shard_format: Literal["jsonl.gz", "jsonl", "parquet"] = Field(
        "jsonl.gz", description="format of the shards, if --out is a folder"
    )


class ExtractOptions(StreamOptions):
    """From text, or parsed text, to documents of events."""

    group: ClassVar[str] = "events"

    spacy_model: str = Field(
        "en_core_web_sm", description="spaCy model that parses plain text: a name or a folder"
    )
    text_column: str = Field("text", description="column (or key) of a table that has the text")
    lemmas: bool = Field(False, description="write lemmas (move) instead of the words of the text (moved)")
    negation: Literal["keep", "mark", "drop"] = Field(
        "keep", description="negated events: keep them like any other, mark the verb (not_left), or drop them"
    )
    keep_text: bool = Field(
        False, description="store the sentence with each event, for annotators that read sentences"
    )


class AnnotateOptions(StreamOptions):
    """Frames for events."""

    group: ClassVar[str] = "frames"

    # Nine of ten frames that this lets through are right in full texts of FrameNet (docs/extraction.md).
    threshold: float = Field(
        0.7,
        description="lowest probability of a frame that is written; below it, the event stays latent",
        ge=0,
        le=1,
    )
    soft: bool = Field(
        False,
        description="write the likeliest frame of every event, whatever its probability, and the next ones; "
        "`prepare` then chooses among them (--min-probability, --soft-labels)",
    )
    replace: bool = Field(False, description="annotate events that already have a frame, too")


class WorldOptions(Options):
    """Documents of the storyworld."""

    group: ClassVar[str] = "documents"

    documents: int = Field(10_000, description="number of documents", ge=1)
    seed: int = Field(1, description="random seed; the same seed gives the same documents", ge=0)


class TicketOptions(Options):
    """A generated log of support tickets."""

    group: ClassVar[str] = "tickets"

    documents: int = Field(3_000, description="number of tickets", ge=1)
    known: float = Field(
        0.3, description="fraction of the events whose stage is written; the rest is the same", ge=0, le=1
    )
    seed: int = Field(1, description="random seed; the same seed gives the same tickets", ge=0)
