"""Get data: make events, read them, find them in text, give them frames, make a corpus of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae.api.exchange import dataset_files, is_dataset
from ssdvae.api.signatures import AnyPath, with_settings
from ssdvae.config import (
    AnnotateSettings,
    ColumnSettings,
    EngineSettings,
    ExtractSettings,
    PrepareSettings,
    Split,
)
from ssdvae.data import prepare as preparing
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document
from ssdvae.data.readers import Skipped, read_documents, write_jsonl
from ssdvae.data.sets import SETS, PublicSet, get_sets
from ssdvae.data.tables import asked_columns
from ssdvae.errors import UserError
from ssdvae.extraction import annotate as annotating
from ssdvae.extraction import extract as extracting
from ssdvae.files import check_exists
from ssdvae.progress import Progress, resolve, track
from ssdvae.storyworld.tickets import KNOWN, ticket_documents, write_tickets
from ssdvae.storyworld.tickets import tickets as made_tickets
from ssdvae.storyworld.world import World


def world(out: AnyPath, *, documents: int = 10_000, seed: int = 1, progress: bool | Progress = True) -> int:
    """Write documents of the embedded corpus, whose exact distribution is known; returns how many.

    >>> ssdvae.world("events.jsonl", documents=2_000)

    The same seed gives the same documents.
    """
    if documents < 1:
        raise UserError(f"--documents: found {documents}, expected at least 1")
    drawn = World.embedded().documents(documents, seed)
    return write_jsonl(json_lines(out), track(resolve(progress), drawn, "writing", documents))


def tickets(
    out: AnyPath,
    *,
    documents: int = 3_000,
    known: float = KNOWN,
    seed: int = 1,
    progress: bool | Progress = True,
) -> int:
    """Write a made log of support tickets, with the stage of some events; returns how many tickets.

    >>> ssdvae.tickets("tickets.csv", known=0.3)

    A table (.csv), a log (.xes), or documents (.jsonl) with the action as verb, the agent as subject, the
    product as object and the channel as modifier. The same seed gives the same tickets, whatever part of the
    stages is ``known``: with 1, the file says how it was.
    """
    if documents < 1:
        raise UserError(f"--documents: found {documents}, expected at least 1")
    if not 0 <= known <= 1:
        raise UserError(f"--known: found {known}, expected a number from 0 to 1")
    if str(out).endswith((".csv", ".csv.gz", ".xes", ".xes.gz")):
        drawn = track(resolve(progress), made_tickets(documents, seed, known), "writing", documents)
        return write_tickets(Path(out), drawn)
    events = track(resolve(progress), ticket_documents(documents, seed, known), "writing", documents)
    return write_jsonl(json_lines(out), events)


@dataclass
class Imported:
    """What an import did."""

    documents: int = 0
    one_event: int = 0  # documents that have no more
    skipped: Skipped | None = None  # what was bad; None if the first bad line would have stopped it


@with_settings(ColumnSettings)
def import_documents(
    sources: AnyPath | Sequence[AnyPath],
    out: AnyPath,
    *,
    format: str | None = None,
    slots: str = PrepareSettings().slots,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> Imported:
    """Turn files of events (JSON lines, tables, logs, the authors' text) into one file of JSON lines.

    >>> ssdvae.import_documents("mine.csv", "mine.jsonl")
    >>> ssdvae.import_documents("log.csv", "log.jsonl", case="ticket", time="when", head="action")

    ``format`` is jsonl, csv, parquet, official or xes; by default the name of each file tells. ``slots`` are
    the names of the slots of an event, with commas between; those of a table are called as its columns. With
    ``skip_bad``, malformed lines are counted instead of being an error.
    """
    files, out, chosen = paths(sources), json_lines(out), ColumnSettings.exactly(settings)
    columns = asked_columns(chosen, files[0], format) if files else None
    names = PrepareSettings(slots=slots).slot_names if columns is None else columns.slots
    done = Imported(skipped=Skipped() if skip_bad else None)

    def documents() -> Iterator[Document]:
        for path in files:
            for document in read_documents(path, format, done.skipped, names, columns, asked=True):
                done.one_event += len(document.events) == 1
                yield document

    done.documents = write_jsonl(out, track(resolve(progress), documents(), "reading"), names)
    return done


@with_settings(ExtractSettings)
def extract(
    sources: AnyPath | Sequence[AnyPath],
    out: AnyPath,
    *,
    format: str | None = None,
    progress: bool | Progress = True,
    **settings: Any,
) -> extracting.Extracted:
    """Write the events of texts, parsed or not, to a file of JSON lines or a folder of shards.

    >>> ssdvae.extract("stories", "events.jsonl", negation="mark")

    ``format`` is text, csv, jsonl, parquet, wikiextractor, megawika, conllu or concrete; by default the name
    of each file tells. A bad document is skipped and counted. In a script, call it under
    ``if __name__ == "__main__"``, or with ``jobs=1``.
    """
    chosen = ExtractSettings.exactly(settings)
    return extracting.extract(
        paths(sources), lines_or_shards(out), chosen, format=format, progress=resolve(progress)
    )


@with_settings(AnnotateSettings)
def annotate(
    source: AnyPath,
    out: AnyPath,
    *,
    frames: AnyPath,
    save: AnyPath | None = None,
    candidates: AnyPath | None = None,
    running_text: AnyPath | None = None,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> annotating.Annotated:
    """Write documents, of a file or a folder of shards, again, with the frames that an annotator finds.

    >>> ssdvae.annotate("events.jsonl", "framed.jsonl", frames="verbs.csv", threshold=0.8)

    ``frames`` names the annotator: framenet17, framenet15 or a folder of FrameNet; events with frames
    (.jsonl) to learn from; a lexicon (.csv, .json); a folder that ``save`` made; or
    frame-semantic-transformer. ``save`` is a folder for the classifier that was learned, ``candidates`` a
    lexicon of further frames, and ``running_text`` a file of whole texts with frames, when learning from
    events that were picked as examples. With ``skip_bad``, malformed lines are counted instead of being an
    error.

    In a script, call it under ``if __name__ == "__main__"``, or with ``jobs=1``.
    """
    # All that may be wrong is looked at before anything is learned, which takes a while.
    out, chosen = lines_or_shards(out), AnnotateSettings.exactly(settings)
    check_exists(source)
    files = {"save": save, "candidates": candidates, "running_text": running_text}
    found = {name: Path(path) if path else None for name, path in files.items()}
    annotator = annotating.load_annotator(str(frames), **found)
    return annotating.annotate(
        Path(source),
        out,
        annotator,
        chosen,
        format=format,
        skip_bad=Skipped() if skip_bad else None,
        progress=resolve(progress),
    )


@with_settings(PrepareSettings, EngineSettings)
def prepare(
    sources: Any,
    out: AnyPath,
    *,
    preset: str | None = None,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> Corpus:
    """Make a corpus folder from one file of documents, or from ``{"train": …, "valid": …, "test": …}``.

    A `datasets.Dataset` may stand for a file, and a `datasets.DatasetDict` for one each: a row is a document.

    >>> corpus = ssdvae.prepare("events.jsonl", "corpus", preset="tiny", events=5)

    ``preset`` is a named size (tiny, small, paper), which gives other defaults to the settings. ``format`` is
    jsonl, csv, parquet, official or xes; by default the name of each file tells. With ``skip_bad``, malformed
    lines are counted instead of being an error. A folder of shards may stand for a file. Many processes share
    the work on JSON lines and on shards; in a script, call it under ``if __name__ == "__main__"``, or with
    ``jobs=1``.
    """
    if is_dataset(sources):
        # Read several times, as files are.
        with dataset_files(sources) as written:
            given: dict[str, Any] = {"preset": preset, "skip_bad": skip_bad, "progress": progress, **settings}
            return prepare(written, out, format="jsonl", **given)
    files: Path | dict[Split, Path] = (
        {split: Path(path) for split, path in sources.items()}
        if isinstance(sources, Mapping)
        else Path(sources)
    )
    engine = EngineSettings.of(settings)
    own = {name: value for name, value in settings.items() if name not in EngineSettings.names()}
    chosen = PrepareSettings.sized(preset, **own)
    shown = resolve(progress)
    return preparing.prepare(
        files, Path(out), chosen, format=format, skip_bad=skip_bad, engine=engine, progress=shown
    )


@dataclass(frozen=True)
class GotData:
    """A public set: where it is, and whether it was fetched just now."""

    name: str
    path: Path
    fetched: bool


def get_data(
    names: str | Sequence[str], out: AnyPath = "sets", *, progress: bool | Progress = True
) -> list[GotData]:
    """Fetch public sets of the field into a folder, each checked by its SHA-256; what is there stays.

    >>> ssdvae.get_data(["similarity-hard", "nyt-cloze-valid"], "sets")

    `public_sets` says which there are. A download that was cut off goes on where it was.
    """
    found = get_sets([names] if isinstance(names, str) else names, Path(out), resolve(progress))
    return [GotData(name, path, fetched) for name, (path, fetched) in found.items()]


def public_sets() -> list[PublicSet]:
    """The public sets that `get_data` knows.

    >>> [found.name for found in ssdvae.public_sets()]
    """
    return list(SETS.values())


def paths(given: AnyPath | Sequence[AnyPath]) -> list[Path]:
    """One path or several, as a list."""
    return [Path(path) for path in ([given] if isinstance(given, str | Path) else given)]


def lines_or_shards(path: AnyPath) -> Path:
    """A file of JSON lines, or a folder: any name without an ending."""
    return Path(path) if not Path(path).suffix else json_lines(path)


def json_lines(path: AnyPath) -> Path:
    """A file that will be read again by its name."""
    if not str(path).endswith((".jsonl", ".jsonl.gz")):
        raise UserError(f"found {path} as the file to write, expected a name in .jsonl or .jsonl.gz")
    return Path(path)
