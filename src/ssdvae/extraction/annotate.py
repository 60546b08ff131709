"""Frames for events, each with its probability; what is uncertain stays latent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from ssdvae.config import AnnotateSettings
from ssdvae.data.events import Document, Event, document_from_record, event_from_record
from ssdvae.data.readers import Skipped
from ssdvae.data.stream import Found, document_files, found_document, one_by_one, stream
from ssdvae.errors import DataError, Malformed, UserError, not_installed
from ssdvae.extraction.lexicon import Guess, read_lexicon
from ssdvae.extraction.readers.text import json_records
from ssdvae.files import check_exists, stop_at_first_error
from ssdvae.progress import SILENT, Progress

TRANSFORMER = "frame-semantic-transformer"

CHUNK = 1000
"""Documents that a process takes at once: about as many as are annotated in the time in which it starts."""


class Annotator(Protocol):
    """Whatever can say a frame for each event of a document, or that it does not know one.

    It is pickled for the processes that share the work. Those with one fingerprint say the same frames.
    """

    def guess(self, document: Document) -> list[Guess | None]: ...

    def fingerprint(self) -> str: ...


@dataclass
class Annotated:
    """What an annotation did, in events."""

    documents: int = 0
    events: int = 0
    kept: int = 0
    framed: int = 0
    uncertain: int = 0
    unknown: int = 0
    resumed: int = 0
    skipped: Skipped | None = None  # what was bad; None if the first bad document would have stopped it


def annotate(
    source: Path,
    out: Path,
    annotator: Annotator,
    settings: AnnotateSettings | None = None,
    *,
    format: str | None = None,
    skip_bad: Skipped | None = None,
    progress: Progress = SILENT,
) -> Annotated:
    """Write the documents of a file, or of a folder of shards, again, with frames, in their order."""
    settings = settings or AnnotateSettings()
    chunk = CHUNK
    if isinstance(annotator, Transformer):
        # A T5 fills the cores or the GPU by itself, and is so slow that each document is kept at once.
        chunk = 1
        if settings.engine == "processes":
            settings = replace(settings, jobs=1)
    done = stream(
        document_files(source, format),
        partial(one_by_one, work=partial(_annotated, annotator=annotator, settings=settings)),
        out,
        settings,
        about={"format": format, "annotator": annotator.fingerprint()},
        chunk=chunk,
        skip_bad=skip_bad,
        progress=progress,
        label="annotating",
    )
    return Annotated(**done.counts, resumed=done.resumed, skipped=skip_bad)


def _annotated(
    found: Found, annotator: Annotator, settings: AnnotateSettings
) -> tuple[Document, Mapping[str, int]]:
    """A document with the frames that are probable enough."""
    document = found_document(found)
    events: list[Event] = []
    counts = Counter[str]()
    for event, guess in zip(document.events, annotator.guess(document), strict=True):
        if event.frame is not None and not settings.replace:
            became = "kept"
        elif guess is None:
            became = "unknown"
            event = event.changed(frame=None, probability=None)
        elif guess[1] is not None and guess[1] < settings.threshold:
            became = "uncertain"
            event = event.changed(frame=None, probability=None)
        else:
            became = "framed"
            # Four digits are more than is known of a probability. Rounding comes after the threshold.
            event = event.changed(frame=guess[0], probability=guess[1] and round(guess[1], 4))
        counts[became] += 1
        events.append(event)
    return Document(document.id, tuple(events)), counts


def load_annotator(
    frames: str,
    *,
    save: Path | None = None,
    candidates: Path | None = None,
    running_text: Path | None = None,
) -> Annotator:
    """The annotator that goes with a name.

    ``framenet``, ``framenet17``, ``framenet15`` or a folder of FrameNet: learns from its examples;
    ``events.jsonl``: learns from events with frames; ``verbs.csv``, ``verbs.json``: a lexicon;
    a folder that ``save`` made: what was learned; ``frame-semantic-transformer``: that parser.
    ``candidates`` (a lexicon) and ``running_text`` (events with frames, whose senses are as common as in
    texts) go with events to learn from.
    """
    from ssdvae.extraction import framenet
    from ssdvae.extraction.classifier import FrameClassifier

    path = Path(frames)
    name = path.name.lower().removesuffix(".gz")
    learns = framenet.is_framenet(frames) or name.endswith((".jsonl", ".ndjson"))
    if save is not None and not learns:
        raise UserError(f"--save keeps what was learned, and {frames} is not learned from")
    if (candidates or running_text) and not name.endswith((".jsonl", ".ndjson")):
        raise UserError("--candidates and --running-text go with a file of events to learn from (.jsonl)")
    if frames == TRANSFORMER:
        return Transformer()
    if framenet.is_framenet(frames):
        classifier = framenet.train(frames)
    else:
        check_exists(path)
        if path.is_dir():
            if not (path / "config.json").is_file():
                raise UserError(
                    f"{path} is neither FrameNet (frameIndex.xml) nor a saved classifier (config.json)"
                )
            return FrameClassifier.load(path)
        if not learns:
            if not name.endswith((".csv", ".tsv", ".json")):
                raise UserError(
                    f"cannot tell what {path} is from its name\n"
                    "a lexicon ends in .csv, .tsv or .json, and events to learn from in .jsonl"
                )
            return read_lexicon(path)
        extra = read_lexicon(candidates).frames if candidates else None
        classifier = FrameClassifier.fit(read_events(path), extra)
        if running_text:
            classifier = classifier.adapt(read_events(running_text))
    if save is not None:
        classifier.save(save)
    return classifier


def read_events(path: Path) -> Iterator[Event]:
    """Events of JSON lines that are documents, or events by themselves."""
    for number, record in json_records(path, stop_at_first_error):
        try:
            if "events" in record:
                yield from document_from_record({"id": number, **record}).events
            else:
                yield event_from_record(record)
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected) from error


class Transformer:
    """frame-semantic-transformer, a T5 that reads sentences. It does not say how sure it is."""

    def __init__(self) -> None:
        try:
            import frame_semantic_transformer as package
        except ImportError as error:
            raise not_installed(TRANSFORMER, TRANSFORMER, "annotating with it") from error
        self.model: Any = package.FrameSemanticTransformer()
        self.version: str = getattr(package, "__version__", "")

    def guess(self, document: Document) -> list[Guess | None]:
        keys = [self._sentence(document.id, event) for event in document.events]
        sentences = list(dict.fromkeys((start, text) for start, text, _ in keys))
        results = self.model.detect_frames_bulk([text for _, text in sentences]) if sentences else []
        frames = {
            (sentence, frame.trigger_location): frame.name
            for sentence, result in zip(sentences, results, strict=True)
            for frame in result.frames
        }
        guesses = [frames.get(((start, text), place)) for start, text, place in keys]
        return [None if frame is None else (frame, None) for frame in guesses]

    def fingerprint(self) -> str:
        return f"{TRANSFORMER} {self.version}"

    @staticmethod
    def _sentence(id: str, event: Event) -> tuple[int, str, int]:
        """Where the sentence of an event begins, what it says, and where in it the verb stands."""
        origin = event.origin
        if origin is None or origin.text is None or origin.text_start is None:
            raise UserError(
                f"document {id!r} has events without their sentence, which {TRANSFORMER} reads\n"
                "extract them with --keep-text"
            )
        return origin.text_start, origin.text, origin.start - origin.text_start
