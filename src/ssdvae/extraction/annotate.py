"""Annotate events with frames and their probabilities; uncertain events stay latent."""

from __future__ import annotations

import importlib.util
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ssdvae.data.corpus import SOFT_FRAMES
from ssdvae.data.events import Document, Event
from ssdvae.data.options import AnnotateOptions, ExtractOptions
from ssdvae.data.readers import Skipped, read_documents
from ssdvae.data.stream import Chunk, Task, document_files, one_by_one, parse_document, stream
from ssdvae.extraction import classifier, framenet
from ssdvae.extraction.classifier import FrameClassifier, Ranking, read_lexicon
from ssdvae.extraction.extract import extract
from ssdvae.io.errors import UserError
from ssdvae.io.files import check_exists
from ssdvae.io.progress import SILENT, Progress
from ssdvae.io.records import read_json

if TYPE_CHECKING:
    from ssdvae.extraction.encoder import EncoderAnnotator

log = logging.getLogger(__name__)

CHUNK = 1000
"""Documents that a process takes at once: annotating them takes about as long as starting a process."""


SOFT_PROBABILITY = 0.05
"""With ``soft``, frames after the first are written if they are so likely."""


class Annotator(Protocol):
    """Predicts the likeliest frames of each event, none for one whose verb it does not know.

    It is pickled for the processes that share the work. Equal fingerprints mean equal predictions.
    """

    def predict(self, events: Sequence[Event], most: int = 1) -> list[Ranking]: ...

    def fingerprint(self) -> str: ...


@dataclass
class AnnotationCounts:
    """The numbers of documents of an annotation, and of events by what became of them."""

    documents: int = 0
    events: int = 0
    kept: int = 0  # had a frame
    labelled: int = 0  # got a frame
    uncertain: int = 0  # below the threshold; with ``soft``, their frames are written too
    unknown: int = 0  # no frame of the verb is known
    resumed: int = 0  # documents that an earlier run had annotated
    skipped: Skipped | None = None  # bad documents; None if the first one stops the annotation


def annotate(
    source: Path,
    out: Path,
    annotator: Annotator,
    options: AnnotateOptions | None = None,
    *,
    format: str | None = None,
    skip_bad: Skipped | None = None,
    progress: Progress = SILENT,
) -> AnnotationCounts:
    """Write the documents of a file or a folder of shards with frames, in their order."""
    options = options or AnnotateOptions()
    done = stream(
        document_files(source, format),
        partial(_annotate_chunk, annotator=annotator, options=options),
        out,
        options,
        about={"format": format, "annotator": annotator.fingerprint()},
        chunk=CHUNK,
        skip_bad=skip_bad,
        progress=progress,
        label="annotating",
    )
    return AnnotationCounts(**done.counts, resumed=done.resumed, skipped=skip_bad)


def _annotate_chunk(tasks: Sequence[Task], annotator: Annotator, options: AnnotateOptions) -> Chunk:
    """Annotate some documents: the annotator reads all their events at once."""
    parsed: list[tuple[str, Document | UserError]] = []
    for place, raw in tasks:
        try:
            parsed.append((place, parse_document(raw)))
        except UserError as error:
            parsed.append((place, error))
    events = [e for _, document in parsed if isinstance(document, Document) for e in document.events]
    predictions = iter(annotator.predict(events, SOFT_FRAMES if options.soft else 1))

    def work(document: Document | UserError) -> tuple[Document, Mapping[str, int]]:
        if isinstance(document, UserError):
            raise document
        return _annotate_document(document, list(islice(predictions, len(document.events))), options)

    return one_by_one(parsed, work)


def _annotate_document(
    document: Document, predictions: Sequence[Ranking], options: AnnotateOptions
) -> tuple[Document, Mapping[str, int]]:
    """Return a document with the frames that reach the threshold, or all, and counts of its events."""
    events: list[Event] = []
    counts = Counter[str]()
    for event, ranking in zip(document.events, predictions, strict=True):
        if event.frame is not None and not options.replace:
            counts["kept"] += 1
        else:
            reached = bool(ranking) and ranking[0][1] >= options.threshold
            counts["labelled" if reached else "uncertain" if ranking else "unknown"] += 1
            # Rounded after the comparison with the threshold.
            written = [(frame, round(p, 4)) for frame, p in ranking if reached or options.soft]
            frame, probability = written[0] if written else (None, None)
            others = tuple(pair for pair in written[1:] if pair[1] >= SOFT_PROBABILITY)
            event = event.changed(frame=frame, probability=probability, alternatives=others)
        events.append(event)
    return Document(document.id, tuple(events)), counts


def load_annotator(
    frames: str,
    *,
    save: Path | None = None,
    candidates: Path | None = None,
    running_text: Path | None = None,
    encoder: str | None = None,
    progress: Progress = SILENT,
) -> Annotator:
    """Return the annotator that a name stands for.

    ``framenet``, ``framenet17``, ``framenet15`` or a folder of FrameNet: a classifier trained on it;
    ``events.jsonl``: one trained on events with frames; ``verbs.csv``, ``verbs.json``: a lexicon; a folder
    that ``save`` wrote: the classifier in it. ``candidates`` (a lexicon) and ``running_text`` (events of
    whole texts with frames) go with events to train on. With ``encoder``, a pretrained encoder is fine-tuned
    in the place of the small classifier.
    """
    path = Path(frames)
    name = path.name.lower().removesuffix(".gz")
    learns = framenet.is_framenet(frames) or name.endswith((".jsonl", ".ndjson"))
    if save is not None and not learns:
        raise UserError(f"--save writes a trained classifier, and nothing is trained on {frames}")
    if (candidates or running_text) and not name.endswith((".jsonl", ".ndjson")):
        raise UserError("--candidates and --running-text go with a file of events to train on (.jsonl)")
    if encoder is not None and not learns:
        raise UserError(f"--encoder is trained on FrameNet or on events (.jsonl), and not on {frames}")
    extra: Mapping[str, Iterable[str]] | None
    if framenet.is_framenet(frames):
        events, texts, extra = framenet.read_framenet(frames)
    else:
        check_exists(path)
        if path.is_dir():
            if not (path / "config.json").is_file():
                raise UserError(
                    f"{path} is neither FrameNet (frameIndex.xml) nor a saved classifier (config.json)"
                )
            return load_saved(path)
        if not learns:
            if not name.endswith((".csv", ".tsv", ".json")):
                raise UserError(
                    f"cannot tell what {path} is from its name\n"
                    "a lexicon ends in .csv, .tsv or .json, and events to train on in .jsonl"
                )
            return read_lexicon(path)
        extra = read_lexicon(candidates).frames if candidates else None
        events, texts = list(read_events(path)), list(read_documents(running_text)) if running_text else []
    annotator: FrameClassifier | EncoderAnnotator
    if encoder is None:
        annotator = FrameClassifier.fit(events, extra)
        if texts:
            annotator = annotator.adapt(event for document in texts for event in document.events)
    else:
        from ssdvae.extraction.encoder import train_encoder  # slow to import

        annotator = train_encoder(events, texts, extra, encoder, save, progress)
    if save is not None:
        annotator.save(save)
    return annotator


def load_saved(folder: Path) -> FrameClassifier | EncoderAnnotator:
    """Return the annotator in a folder that ``save`` wrote."""
    kind = read_json(folder / "config.json", dict[str, Any], "the config of an annotator").get("kind")
    if kind == classifier.KIND:
        return FrameClassifier.load(folder)
    from ssdvae.extraction.encoder import EncoderAnnotator  # slow to import

    return EncoderAnnotator.load(folder)


def read_events(path: Path) -> Iterator[Event]:
    """Yield the events of JSON lines that are documents, or events by themselves."""
    for document in read_documents(path, "jsonl"):
        yield from document.events


EXAMPLE_THRESHOLD = 0.6


def annotate_example(out: Path) -> Document | None:
    """Extract and annotate the example text of the package, write it to ``out/ferry.jsonl`` and return it.

    It was written and parsed by hand. Without the package that reads CoNLL-U, log a hint and return None.
    """
    if importlib.util.find_spec("conllu") is None:
        log.info("to see events found in text, too: pip install 'ssdvae[conllu]'")
        return None
    out.mkdir(parents=True, exist_ok=True)
    events, labelled = out / "ferry.events.jsonl", out / "ferry.jsonl"
    with as_file(files("ssdvae.extraction") / "example") as example:
        extract([example / "ferry.conllu"], events, ExtractOptions(keep_text=True, jobs=1))
        lexicon = read_lexicon(example / "verbs.csv")
    annotate(events, labelled, lexicon, AnnotateOptions(threshold=EXAMPLE_THRESHOLD))
    [document] = read_documents(labelled)
    return document
