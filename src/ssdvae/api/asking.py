"""Ask: what is next, what is unusual, what is missing, what is alike; and answers as files and tables."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ssdvae.answers import embed as embedding
from ssdvae.answers import fill as filling
from ssdvae.answers import next_events as foreseeing
from ssdvae.answers import score as scoring
from ssdvae.answers import table, vectors
from ssdvae.answers.unusual import Unusual, most_unusual
from ssdvae.answers.usual import keep_typical
from ssdvae.api.answers import Answers, write_one_by_one
from ssdvae.api.given import Documents, given_documents, given_events, said
from ssdvae.api.signatures import AnyPath, with_settings
from ssdvae.api.training import as_model, corpus_of
from ssdvae.config import (
    EmbedSettings,
    FillSettings,
    NextSettings,
    ScoreSettings,
    SimilarSettings,
    StreamSettings,
)
from ssdvae.data.events import AnyEvent
from ssdvae.data.readers import Skipped
from ssdvae.errors import UserError
from ssdvae.models.base import LanguageModel, Model
from ssdvae.models.hub import default_model
from ssdvae.progress import SILENT, Progress, resolve, track

if TYPE_CHECKING:
    import pandas

log = logging.getLogger("ssdvae.api")


@with_settings(NextSettings)
def next_events(
    run: Model | AnyPath | None,
    documents: Documents,
    *,
    given: Mapping[str, str] | None = None,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> Answers[foreseeing.Next]:
    """What comes after the events of each document: the next frame, the next head, the likeliest events.

    >>> next(ssdvae.next_events("runs/first", [["arrested police suspect in"]])).heads
    >>> list(ssdvae.next_events("runs/first", "events.jsonl", given={"frame": "Arrest"}, top=3))

    Documents are given as to `infer`. ``given`` has what is known of the next event: its ``frame``, or words
    by the names of their slots.
    """
    asked = {"given": given, **NextSettings.exactly(settings).values()}
    how: Any = {"format": format, "skip_bad": skip_bad, "progress": progress}
    return Answers(run, documents, foreseeing.next_events, asked, "looking ahead", **how)


@with_settings(ScoreSettings)
def score(
    run: Model | AnyPath | None,
    documents: Documents,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> Answers[scoring.ScoredDocument]:
    """How surprising documents are: nats of every slot and event, given what came before.

    >>> for document in ssdvae.score("runs/first", "events.jsonl"):
    ...     print(document.nats, [event.percentile for event in document.events])

    Percentiles are among the validation split. What is usual there is kept with the run, on first use.
    """
    asked = ScoreSettings.exactly(settings).values()
    model = scoring_model(run, progress)
    # Sent along, since it may be that it could not be kept with the run.
    asked |= {"top": asked.pop("frames"), "typical": model.typical}
    how: Any = {"format": format, "skip_bad": skip_bad, "progress": progress, "model": model}
    return Answers(run, documents, scoring.score_documents, asked, "scoring", **how)


@with_settings(NextSettings)
def unusual(
    run: Model | AnyPath | None,
    documents: Documents,
    most: int = 10,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> list[Unusual]:
    """The most surprising events of all documents, with what was expected in their place.

    >>> ssdvae.unusual("runs/first", "events.jsonl", 3)[0].expected.events
    """
    if most < 1:
        raise UserError(f"--top: found {most}, expected at least 1")
    chosen = NextSettings.exactly(settings)
    how: Any = {"format": format, "skip_bad": skip_bad, "progress": progress}
    scored = score(run, documents, **ScoreSettings.of(chosen.values()).values(), **how)
    return most_unusual(scored.model, scored, most, chosen)


@with_settings(FillSettings)
def fill(
    run: Model | AnyPath | None,
    documents: Documents,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> Answers[filling.Filled]:
    """What is missing in documents, from what comes before and after it.

    >>> next(ssdvae.fill("runs/first", [["arrested police suspect", None, "jailed court ?"]])).holes

    ``None`` (``null`` in a file) stands for an event, and ``?`` for a word; typed, ``?`` alone is an event.
    """
    asked = FillSettings.exactly(settings).values()
    how: Any = {"format": format, "skip_bad": skip_bad, "progress": progress, "holes": True}
    return Answers(run, documents, filling.fill_documents, asked, "filling", **how)


@with_settings(EmbedSettings)
def embed(
    run: Model | AnyPath | None,
    documents: Documents,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> Answers[embedding.Embedded]:
    """A vector for each document and for each of its events.

    >>> next(ssdvae.embed("runs/first", "events.jsonl")).vector

    ``encode`` gives the vectors of single events, or of documents, in one array.
    """
    asked = EmbedSettings.exactly(settings).values()
    how: Any = {"format": format, "skip_bad": skip_bad, "progress": progress}
    return Answers(run, documents, embedding.embed, asked, "embedding", **how)


@with_settings(EmbedSettings)
def encode(run: Model | AnyPath | None, inputs: Any, **settings: Any) -> NDArray[np.float32]:
    """Return vectors of events, each by itself, or of documents, in the order of the inputs.

    >>> ssdvae.encode("wiki-en", ["arrested police suspect", "detained officer man"])  # 2 vectors
    >>> ssdvae.encode("wiki-en", [["arrested police suspect", "jailed court man"]])  # 1, of a document

    An event is a text, a mapping or an `Event`; a document is a `Document`, a mapping with ``events``, or a
    list of events. A single one has a single vector.
    """
    asked = EmbedSettings.exactly(settings)
    return vectors.encode(as_model(run), inputs, asked.batch, asked.normalize)


@with_settings(SimilarSettings)
def similar(
    run: Model | AnyPath | None,
    events: AnyEvent | Sequence[AnyEvent],
    among: Documents,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> list[embedding.Similar]:
    """The events of some documents that are nearest to each of those asked for.

    >>> ssdvae.similar("runs/first", "arrested police suspect", among="events.jsonl")[0].event
    """
    chosen, model = SimilarSettings.exactly(settings), as_model(run)
    skipped = Skipped() if skip_bad else None
    shown = resolve(progress) if isinstance(among, str | Path) else SILENT
    read = said(track(shown, given_documents(among, format, skipped, model), "reading"), skipped)
    return embedding.similar(model, given_events(events, model), read, chosen.top, chosen.batch)


@with_settings(StreamSettings)
def write_answers(answers: table.Answer | Iterable[table.Answer], out: AnyPath, **settings: Any) -> int:
    """Write what any of the questions gives: JSON lines, a table (CSV, Parquet), or shards; returns how many.

    >>> ssdvae.write_answers(ssdvae.infer("runs/first", "events.jsonl"), "inferred.jsonl")
    >>> ssdvae.write_answers(ssdvae.score("runs/first", "shards"), "scored", jobs=8)
    >>> ssdvae.write_answers(ssdvae.score("runs/first", "events.jsonl"), "scored.parquet")
    >>> ssdvae.write_answers(ssdvae.explain("runs/first").transitions, "transitions.csv")

    A name without an ending is a folder for shards. Where JSON lines or shards are made of a file, or of a
    folder of shards, many processes share the work, and go on with it when it was stopped; in a script, call
    it under ``if __name__ == "__main__"``, or with ``jobs=1``.
    """
    chosen = StreamSettings.exactly(settings)
    if isinstance(answers, Answers):
        return answers.written(Path(out), chosen)
    return write_one_by_one(Path(out), answers, chosen)


def to_dataframe(answers: table.Answer | Iterable[table.Answer]) -> pandas.DataFrame:
    """What any of the questions gives as a DataFrame: a row for each event, candidate or transition.

    >>> ssdvae.to_dataframe(ssdvae.score("runs/first", "events.jsonl")).nlargest(10, "nats")
    >>> ssdvae.to_dataframe(ssdvae.explain("runs/first").transitions)
    """
    return table.to_dataframe(answers)


def scoring_model(run: Model | AnyPath | None, progress: bool | Progress) -> Model:
    """A model that knows what is usual, if its run or its folder can tell."""
    run = default_model() if run is None else run
    model = as_model(run)
    if model.typical is not None or isinstance(run, Model) or not isinstance(model, LanguageModel):
        return model
    try:
        corpus = corpus_of(run, None)
        corpus.check_names(model.vocabulary, model.frames, model.slots)
        corpus.split("valid")
    except UserError as error:
        log.info(f"no percentiles: the validation split of the model is not there ({error})".split("\n")[0])
        return model
    keep_typical(model, corpus, Path(run), resolve(progress))
    return model
