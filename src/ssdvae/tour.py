"""The demo: the whole road on the embedded corpus, where the best possible scores are known exactly."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ssdvae.answers.beliefs import infer_frames
from ssdvae.answers.embed import Similar, similar
from ssdvae.answers.fill import Filled, fill_documents
from ssdvae.answers.generate import Script, generate
from ssdvae.answers.infer import InferredDocument, infer_documents
from ssdvae.answers.next_events import Next, next_events
from ssdvae.answers.score import ScoredDocument, score_documents
from ssdvae.config import (
    EvaluateSettings,
    GenerateSettings,
    PrepareSettings,
    ReportSettings,
    TrainSettings,
)
from ssdvae.data.batches import collate
from ssdvae.data.cloze import read_cloze
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import HOLE, Document, Event
from ssdvae.data.prepare import prepare, split_of, usable_events
from ssdvae.data.readers import read_documents, write_jsonl
from ssdvae.evaluation.of_run import evaluate_run
from ssdvae.evaluation.scripts import by_world, generate_as_asked
from ssdvae.extraction.demo import THRESHOLD, extract_example
from ssdvae.files import atomic_write
from ssdvae.models.base import Model
from ssdvae.models.hub import DEFAULT, default_model, packaged
from ssdvae.progress import SILENT, Progress, track
from ssdvae.records import to_json
from ssdvae.report.page import write_report
from ssdvae.runs import Run
from ssdvae.storyworld.scores import best_cloze, best_scores
from ssdvae.storyworld.world import World
from ssdvae.training.train import resume, train

log = logging.getLogger(__name__)

DOCUMENTS = 110_000
SHOWN = 3
"""Documents that are shown with their frames, and scripts."""

SEED = 1
PREPARE = PrepareSettings(
    vocabulary=2_000, frames=500, valid_share=0.01, test_share=0.08, cloze_items=5_000, cloze_seed=SEED
)
# Documents cost nothing here, so none is seen twice.
TRAIN = TrainSettings.chosen(
    {
        "model": "ssdvae-exact",
        "context_vector": 64,
        "embedding": 64,
        "hidden": 128,
        "layers": 1,
        "batch": 32,
        "learning_rate": 8e-3,
        "epochs": 1,
        "validate_steps": 600,
        "seed": SEED,
    }
)
EVALUATE = EvaluateSettings(split="test", bound_samples=1, cloze_seeds=2, scripts=500)

PAPER = {"ppl_bound": 12.71, "frame_accuracy": 0.942, "cloze_nll": 0.937}
"""The paper's model, recorded, since that takes too long to show: an SSDVAE twice as wide, of the first
five events of 144,013 documents. docs/results.md has the commands ("Four models on storyworld")."""


@dataclass(frozen=True)
class Asked:
    """One question of each kind about a document, answered by the model that comes with the package."""

    model: str
    inferred: InferredDocument
    scored: ScoredDocument
    ahead: Next
    filled: Filled  # the head of the last event was left out
    similar: list[Similar]  # to an event that is not in it


@dataclass(frozen=True)
class Tour:
    """What the demo has made, and what is worth a look."""

    folder: Path
    run: Run
    page: Path
    scores: dict[str, Any]  # by model; "ssdvae" is recorded; "best": the best possible ones
    curve: list[float]  # perplexity of the validation split, as training went on
    documents: list[tuple[Document, list[str]]]  # unseen, with the frames that the model infers
    scripts: list[tuple[Script, float]]  # after the first events of these, with their exact log p
    extracted: Document | None  # events found in a short text; None without the package that reads it
    threshold: float = THRESHOLD  # frames of those events that are less probable are latent
    asked: Asked | None = None  # what the model that comes with the package says of that text


def take_tour(
    out: Path, documents: int = DOCUMENTS, settings: TrainSettings = TRAIN, progress: Progress = SILENT
) -> Tour:
    """Make the corpus, train and evaluate; what an earlier tour has finished is not done again."""
    world = World.embedded()
    events, run = out / "events.jsonl", Run(out / "run")
    if not events.exists():
        out.mkdir(parents=True, exist_ok=True)
        log.info(f"writing {documents:,} documents of the embedded corpus to {events}")
        write_jsonl(events, track(progress, world.documents(documents, SEED), "writing", documents))
    there = (out / "corpus").exists()
    corpus = Corpus(out / "corpus") if there else prepare(events, out / "corpus", PREPARE, progress=progress)
    if run.config_path.exists():
        resume(run.folder, progress=progress)
    else:
        log.info(f"training on {corpus.manifest['splits']['train']['documents']:,} of them")
        train(corpus, run.folder, settings, progress)

    truth = _unseen(events)
    log.info("measuring on documents that were not trained on")
    model = Model.read(run.folder).on_fastest_device()
    scripts = _scripts(world, model, corpus, truth)
    scores = {
        "ssdvae-exact": {**evaluate_run(run.folder, model, corpus, EVALUATE, progress=progress), **scripts},
        "ssdvae": PAPER,
        "best": {**best_scores(world, truth), **_best_cloze(world, corpus), "scripts_possible": 1.0},
    }
    with atomic_write(out / "scores.json") as path:
        path.write_text(to_json(scores, indent=2) + "\n", encoding="utf-8")
    return Tour(
        folder=out,
        run=run,
        page=write_report(
            [run.folder], out / "report.html", ReportSettings(split="test"), best=_as_figures(scores["best"])
        ),
        scores=scores,
        curve=[record["ppl"] for record in run.curve()],
        documents=list(zip(truth[:SHOWN], _inferred(model, corpus, SHOWN), strict=True)),
        scripts=[_told(world, model, document) for document in truth[:SHOWN]],
        extracted=(extracted := extract_example(out / "text")),
        asked=None if extracted is None or packaged(DEFAULT) is None else ask(extracted),
    )


LIKE = Event("sailed", "ship", "port")


def ask(document: Document) -> Asked:
    """Let the model that comes with the package read a document, and answer one question of each kind."""
    model = Model.read(default_model())
    *before, last = document.events
    holed = Document(document.id, (*before, Event.of_words([HOLE, *last.padded(len(model.slots))[1:]])))
    (inferred,) = infer_documents(model, [document])
    (scored,) = score_documents(model, [document])
    (ahead,) = next_events(model, [document], top=3)
    (filled,) = fill_documents(model, [holed], top=3)
    return Asked(DEFAULT, inferred, scored, ahead, filled, similar(model, [LIKE], [document], top=2))


def _as_figures(best: dict[str, float]) -> dict[str, float]:
    """The best possible scores by the names of the figures that they can be held against."""
    return {("ppl_bound" if name == "ppl" else name): value for name, value in best.items()}


def _best_cloze(world: World, corpus: Corpus) -> dict[str, float]:
    if not corpus.has_cloze("test"):
        return {}
    best = best_cloze(world, read_cloze(corpus.cloze("test")))
    return {"cloze_nll": best["nll"], "cloze_pmi": best["pmi"]}


def _unseen(events: Path) -> list[Document]:
    """The documents of the test split, cut as `prepare` cut them but with all their words."""
    return [
        Document(document.id, tuple(usable_events(document, PREPARE)))
        for document in read_documents(events)
        if split_of(document.id, PREPARE) == "test"
    ]


def _inferred(model: Model, corpus: Corpus, count: int) -> Sequence[list[str]]:
    """The frames that the model infers for the first documents of the test split."""
    posterior = infer_frames(model, collate(corpus.split("test"), np.arange(count)).to(model.device))
    return [[corpus.frames.name(f) for f in row if f >= 0] for row in posterior.value.tolist()]


def _scripts(world: World, model: Model, corpus: Corpus, truth: Sequence[Document]) -> dict[str, float]:
    """How many scripts are possible that are generated with the frames of test documents asked for."""
    some = corpus.split("test").take(np.arange(min(EVALUATE.scripts, len(truth))))
    real = truth[: len(some)]
    return by_world(world, list(generate_as_asked(model, some, real, EVALUATE)), real)


def _told(world: World, model: Model, document: Document) -> tuple[Script, float]:
    """What the model tells after the first event of a document, and its log p in the world."""
    [script] = generate(model, GenerateSettings(scripts=1, seed=SEED), seed_events=document.events[:1])
    return script, world.log_prob([told.event for told in script.events])
