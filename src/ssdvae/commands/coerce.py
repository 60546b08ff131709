"""Models, corpora, events and documents as people give them: names, paths, typed text, Python objects."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from ssdvae.commands import AnyPath
from ssdvae.data.corpus import Corpus
from ssdvae.data.dataframes import dataframe_file, is_dataframe
from ssdvae.data.events import (
    AnyDocument,
    AnyEvent,
    Document,
    Event,
    slot_format,
    to_document,
    to_event,
)
from ssdvae.data.options import ReadOptions
from ssdvae.data.readers import Skipped, read_documents
from ssdvae.data.readers.text import read_typed
from ssdvae.data.stream import document_files, parse_documents
from ssdvae.inference.infill import with_holes
from ssdvae.inference.inputs import OovStats, warn_if_oov
from ssdvae.inference.sentences import read_text, with_format, with_sentences
from ssdvae.inference.surprisal import save_quantiles
from ssdvae.io.errors import Malformed, UserError, shorten
from ssdvae.io.files import check_exists, stop_at_first_error
from ssdvae.io.progress import SILENT, Progress, resolve, track
from ssdvae.io.run import Run
from ssdvae.models.base import LanguageModel, Model
from ssdvae.models.hub import DEFAULT, FILES, README, SHOWN, default_model, packaged
from ssdvae.models.quantiles import TYPICAL
from ssdvae.models.word_vectors import WORD_VECTORS

log = logging.getLogger("ssdvae")

AnyModel = Model | AnyPath | None
"""A model, a run or another folder with one, the name of one, or None for the one in the package."""

Documents = AnyPath | IO[str] | IO[bytes] | AnyDocument | Iterable[AnyDocument]
"""A file, an open file of typed events, one document, or some of them; a pandas DataFrame of events."""


AnyEvents = AnyEvent | Sequence[AnyEvent] | IO[str] | IO[bytes]
"""One event, or several; or an open file of typed ones."""

HUB = "hf://"
"""``hf://OWNER/NAME`` is a model of the hub, even where OWNER/NAME is, or looks like, a path."""


def load(run: AnyPath | None = None) -> Model:
    """Return the model of a run folder; or by its name, one of the package, or of the Hugging Face Hub.

    >>> model = ssdvae.load("runs/first")

    Without a name, return the one that comes with the package. ``OWNER/NAME`` is looked up on the hub unless
    there is a folder of this name or a folder ``OWNER``; ``hf://OWNER/NAME`` always is. Executes no code.
    """
    return Model.read(folder_of(run))


def folder_of(run: AnyPath | None) -> Path:
    """Return the folder of a model: a run, one of the package, or one of the hub, which is downloaded."""
    if run is None:
        return default_model()
    name = str(run).removeprefix(HUB)
    if name == str(run):
        if Path(run).is_dir():
            return Path(run)
        if (folder := packaged(name)) is not None:
            return folder
        if _looks_local(run):
            check_exists(run)
            raise UserError(f"{run} is a file, expected a run folder or the name of a model")
    from huggingface_hub import snapshot_download

    try:
        patterns = [*FILES, TYPICAL, WORD_VECTORS, *SHOWN, README]
        return Path(snapshot_download(name, allow_patterns=patterns))
    except (OSError, ValueError) as error:
        raise UserError(
            f"there is no folder {name}, and the Hugging Face hub gave no model of that name:\n{error}"
        ) from error


def _looks_local(run: AnyPath) -> bool:
    """Tell whether a name is a path: names on the hub are OWNER/NAME, and no folder is called OWNER."""
    owner, *names = Path(run).parts
    on_hub = len(names) == 1 and owner != "runs" and not Path(owner).exists()
    return isinstance(run, Path) or str(run).startswith((".", "/", "~")) or not on_hub


def as_model(run: AnyModel) -> Model:
    """Return a model, on the fastest device."""
    return (run if isinstance(run, Model) else load(run)).on_fastest_device()


def as_corpus(corpus: Corpus | AnyPath) -> Corpus:
    return corpus if isinstance(corpus, Corpus) else Corpus(corpus)


def corpus_of(run: AnyModel, corpus: Corpus | AnyPath | None) -> Corpus:
    """Return the corpus that was named, or that of the run."""
    if corpus is not None:
        return as_corpus(corpus)
    if (found := own_corpus(run)) is None:
        raise UserError(f"{run or DEFAULT} has no corpus of its own: name one by --corpus")
    return found


def own_corpus(run: AnyModel) -> Corpus | None:
    """Return the corpus that a run was trained on; None for a model that is no run."""
    if isinstance(run, Model):
        return None
    found = Run(folder_of(run))
    if found.config_path.is_file():
        return Corpus(found.config()[0])
    if not (found.folder / "config.json").is_file():
        raise UserError(f"{found.folder} is neither a run (config.yaml) nor a model (config.json)")
    return None


def model_with_quantiles(run: AnyModel, progress: bool | Progress) -> Model:
    """Return a model that knows the surprisal quantiles of its validation split, if that is there."""
    model = as_model(run)
    if model.quantiles is not None or isinstance(run, Model) or not isinstance(model, LanguageModel):
        return model
    try:
        corpus = corpus_of(run, None)
        corpus.check_names(model.vocabulary, model.frames, model.slots)
        corpus.split("valid")
    except UserError as error:
        log.info(f"no percentiles: the validation split of the model is not there ({error})".split("\n")[0])
        return model
    save_quantiles(model, corpus, folder_of(run), resolve(progress))
    return model


def as_events(given: AnyEvents, model: Model, *, warn: bool = True) -> list[Event]:
    """Return one event or several; warn if most of their words are out of the vocabulary."""
    if isinstance(given, io.TextIOBase | io.BufferedIOBase):
        documents = read_typed(given, slots=model.slots, parse=lambda text, _: read_text(text, model))
        given = [event for document in documents for event in document.events]
        if not given:
            raise UserError(f"standard input has no event; an event is typed as: {slot_format(model.slots)}")
    some = [given] if isinstance(given, str | Event | Mapping) else given
    try:
        events = [to_event(event, model.slots) for event in with_sentences(some, model)]
    except Malformed as error:
        raise UserError(f"an event: {with_format(error, model.slots)}") from error
    if warn:
        OovStats.of(model, [Document("", tuple(events))]).warn()
    return events


def as_documents(
    given: Documents,
    read: ReadOptions,
    model: Model,
    progress: bool | Progress,
    label: str,
    hole: str | None = None,
) -> Iterator[Document]:
    """Yield documents; ``null`` among their events is an error, or ``hole`` stands for it.

    Warns if most of their words are out of the vocabulary, and logs what was skipped.
    """
    skipped = Skipped() if read.skip_bad else None
    shown = resolve(progress) if isinstance(given, str | Path) else SILENT
    documents = warn_if_oov(model, _read(given, read.format, skipped, model, hole))
    return _log_skipped(track(shown, documents, label), skipped)


def _read(
    given: Documents, format: str | None, skipped: Skipped | None, model: Model, hole: str | None
) -> Iterator[Document]:
    if is_dataframe(given):
        return _read_dataframe(given, skipped, model, hole)
    if isinstance(given, str | Path):
        if hole is not None:
            report = stop_at_first_error if skipped is None else skipped
            files = document_files(Path(given), format, model.slots, model.columns)
            return parse_documents(files, report, model.slots, hole)
        return read_documents(given, format, skipped, model.slots, model.columns)
    if isinstance(given, io.TextIOBase | io.BufferedIOBase):
        return read_typed(given, slots=model.slots, parse=lambda text, _: read_text(text, model))
    if isinstance(given, Document | Mapping):
        given = [given]
    if not isinstance(given, Iterable):
        raise UserError(f"found {shorten(given)} as documents, expected a file or some documents")
    return _converted(given, model, hole is not None)


def _read_dataframe(
    table: Any, skipped: Skipped | None, model: Model, hole: str | None
) -> Iterator[Document]:
    with dataframe_file(table) as path:
        yield from _read(path, "parquet", skipped, model, hole)


def _converted(given: Iterable[Any], model: Model, holes: bool) -> Iterator[Document]:
    slots = model.slots
    for number, document in enumerate(given, start=1):
        try:
            some = with_sentences(with_holes(document) if holes else document, model)
            yield to_document(some, str(number), slots)
        except Malformed as error:
            raise UserError(f"document {number}: {with_format(error, slots)}") from error


def _log_skipped(documents: Iterable[Document], skipped: Skipped | None) -> Iterator[Document]:
    """Yield the same documents, and log what was skipped after the last one."""
    yield from documents
    if skipped is not None:
        log.info(str(skipped))
