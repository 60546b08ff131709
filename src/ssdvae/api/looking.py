"""Look: what a model has learned, what it says of given events, and a page about runs."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ssdvae.analysis import explain as explaining
from ssdvae.analysis import swap as swapping
from ssdvae.answers import generate as generation
from ssdvae.answers import infer as inference
from ssdvae.answers import unknown
from ssdvae.api.answers import Answers
from ssdvae.api.asking import scoring_model
from ssdvae.api.data import paths
from ssdvae.api.given import Documents, given_events
from ssdvae.api.signatures import AnyPath, with_settings
from ssdvae.api.training import as_model, corpus_of, folder_of
from ssdvae.config import (
    EvaluateSettings,
    ExplainSettings,
    ExploreSettings,
    GenerateSettings,
    InferSettings,
    ReportSettings,
    Split,
)
from ssdvae.config.data import names_of_text
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import AnyEvent
from ssdvae.data.groups import groups_of_sources, read_groups
from ssdvae.errors import not_installed
from ssdvae.evaluation.measure import flat, measure
from ssdvae.files import check_exists
from ssdvae.measurements import CONDITIONS_ON_TARGETS
from ssdvae.models.base import Model, as_language_model
from ssdvae.models.hub import default_model
from ssdvae.paper.figures import published_figures
from ssdvae.progress import Progress, resolve
from ssdvae.report import page

log = logging.getLogger("ssdvae.api")


@with_settings(ExplainSettings)
def explain(
    run: AnyPath,
    *,
    corpus: Corpus | AnyPath | None = None,
    progress: bool | Progress = True,
    **settings: Any,
) -> explaining.Explanation:
    """What a model makes of one split, by default of the corpus of the run: words, frames and their chains.

    >>> ssdvae.explain("runs/first").beliefs.frames_of("arrested")
    >>> ssdvae.explain("runs/first", before="Arrest").before.strongest()
    >>> ssdvae.explain("runs/first", compare="groups.csv").comparison.found()
    """
    chosen = ExplainSettings.exactly(settings)
    corpus = corpus_of(run, corpus)
    model = as_model(run)
    corpus.check_names(model.vocabulary, model.frames, model.slots)
    documents = corpus.split(chosen.split).first(model.reading.measured)
    groups = None if chosen.compare is None else _groups(chosen.compare, corpus, documents.ids.to_pylist())
    with resolve(progress).task("reading", len(documents)) as advance:
        return explaining.explain(model, documents, chosen, advance, groups)


def _groups(where: str, corpus: Corpus, ids: Sequence[str]) -> list[str | None]:
    """The group of each document, from a file or a column; how many have none is said."""
    if Path(where).suffix:
        known = read_groups(where)
    else:
        sources = [(Path(source["path"]), source["sha256"]) for source in corpus.manifest["sources"]]
        known = groups_of_sources(sources, where)
    groups = [known.get(id) for id in ids]
    if without := groups.count(None):
        log.info(f"{without:,} of {len(groups):,} documents are in no group of {where}")
    return groups


def swap(
    run: AnyPath,
    parts: str | Sequence[str],
    *,
    corpus: Corpus | AnyPath | None = None,
    split: Split = "valid",
) -> list[swapping.Swapped]:
    """What parts of a model are worth: perplexity and cloze when each is the mean, or another document's.

    >>> ssdvae.swap("runs/first", "frames, state")

    ``parts`` are some of document-vector, frames and state. The first row is the model as it is.
    """
    names = names_of_text(parts) if isinstance(parts, str) else list(parts)
    found, model = corpus_of(run, corpus), as_model(run)
    settings = EvaluateSettings(split=split, tasks="perplexity,cloze", bound_samples=1)

    def figures() -> dict[str, float]:
        scores = flat(measure(model, "", found, settings))
        return {name: scores[name] for name in SWAP_FIGURES if scores.get(name) is not None}

    return list(swapping.swap_parts(as_language_model(model), names, figures))


SWAP_FIGURES = ("ppl", CONDITIONS_ON_TARGETS, "cloze_nll", "cloze_pmi")


@with_settings(InferSettings)
def infer(
    run: Model | AnyPath | None,
    documents: Documents,
    *,
    format: str | None = None,
    skip_bad: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> Answers[inference.InferredDocument]:
    """The frames of documents, one after another: those of a file, or any that are given.

    >>> list(ssdvae.infer("runs/first", "events.jsonl"))
    >>> list(ssdvae.infer("runs/first", [["arrested police suspect in", {"verb": "jailed"}]]))

    A document is a `Document`, a mapping such as ``{"id": "a", "events": […]}``, or a list of events; an
    event is an `Event`, a mapping such as ``{"verb": "met", "subj": "she"}``, or a text such as
    ``"met she him at"``, with - for an empty slot. An open file is read as typed events, one on each
    line and a blank line after each document. ``format`` and ``skip_bad`` are for files, as in `prepare`.
    """
    asked = InferSettings.exactly(settings).to_dict()
    how: Any = {"format": format, "skip_bad": skip_bad, "progress": progress}
    return Answers(run, documents, inference.infer_documents, asked, "inferring", **how)


@with_settings(GenerateSettings)
def generate(
    run: Model | AnyPath | None,
    seed_events: AnyEvent | Sequence[AnyEvent] = (),
    frames: Sequence[str | None] = (),
    **settings: Any,
) -> list[generation.Script]:
    """Scripts that begin with the seed events, or with none; likeliest first.

    >>> ssdvae.generate("runs/first", ["arrested police suspect in"], frames=[None, "Trial"])

    An event is an `Event`, a mapping such as ``{"verb": "met", "subj": "she"}``, or a text such as
    ``"met she him at"``, with - for an empty slot. ``frames`` are those of the events after the seed, None
    where one is left to the model.
    """
    chosen = GenerateSettings.exactly(settings)
    model = as_model(run)
    seed = given_events(seed_events, model)
    return generation.generate(model, chosen, seed_events=seed, frames=frames)


def unknown_words(run: Model | AnyPath | None, events: AnyEvent | Sequence[AnyEvent]) -> list[str]:
    """The words of some events that are not in the vocabulary of a model, each once.

    >>> ssdvae.unknown_words("runs/first", ["arrested police xyzzy"])
    """
    model = as_model(run)
    return unknown.unknown_words(model, given_events(events, model, warn=False))


@with_settings(ReportSettings)
def write_report(
    runs: AnyPath | Sequence[AnyPath],
    out: AnyPath = "report.html",
    *,
    progress: bool | Progress = True,
    **settings: Any,
) -> Path:
    """Write one page about some runs: what their models found, how good they are, and how they were made.

    >>> ssdvae.write_report(["runs/first"], "report.html")
    """
    chosen, folders = ReportSettings.exactly(settings), paths(runs)
    with resolve(progress).task("looking at runs", len(folders)) as advance:
        published = published_figures() if chosen.paper else None
        return page.write_report(folders, Path(out), chosen, advance, published)


@with_settings(ExploreSettings)
def explore(
    runs: AnyPath | Sequence[AnyPath] = (), *, documents: AnyPath | None = None, **settings: Any
) -> None:
    """Talk to models in the browser, until interrupted; the same answers are a REST API.

    >>> ssdvae.explore("runs/first")

    Without runs, the model that comes with the package.
    ``documents`` are a corpus folder or a file of documents to look at, by default each run's own corpus.
    """
    chosen = ExploreSettings.exactly(settings)
    try:
        from ssdvae.app import server
    except ModuleNotFoundError as error:
        raise not_installed(str(error.name), "app", "the explorer") from error
    file = None if documents is None else Path(documents)
    if file is not None:
        check_exists(file)
    folders = paths(runs) or [default_model()]
    models = [(folder_of(folder) or folder, scoring_model(folder, True)) for folder in folders]
    server.serve(server.explored(models, file, chosen), chosen)
