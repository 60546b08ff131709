"""`ssdvae demo`: train three models on the embedded corpus, and show what they know."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ssdvae.analysis.options import ReportOptions
from ssdvae.commands import AnyPath, Command
from ssdvae.commands.console import TableText, output, show
from ssdvae.data.options import PrepareOptions
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.inference.options import GenerateOptions
from ssdvae.training.options import TrainOptions

if TYPE_CHECKING:
    from queue import Queue

    from ssdvae.data.corpus import Corpus
    from ssdvae.data.events import Document
    from ssdvae.inference.embedding import SimilarEvent
    from ssdvae.inference.forecast import Forecast
    from ssdvae.inference.generation import Script
    from ssdvae.inference.infill import FilledDocument
    from ssdvae.inference.posterior import InferredDocument
    from ssdvae.inference.surprisal import ScoredDocument
    from ssdvae.io.progress import Progress
    from ssdvae.models.base import Model
    from ssdvae.storyworld.world import World

log = logging.getLogger(__name__)

DOCUMENTS = 50_000
SHOWN = 3
"""Documents and scripts that are shown."""

SEED = 1
# Five events, as the paper's model reads: so all models, and the optimum, are measured on the same words.
PREPARE = PrepareOptions(
    vocabulary=2_000,
    frames=500,
    events=5,
    valid_share=0.01,
    test_share=0.04,
    cloze_items=2_000,
    cloze_seed=SEED,
)
# Documents cost nothing here, so none is seen twice. All models have the same size, optimizer and budget,
# and the same arithmetic on every machine.
SHARED = {
    "embedding": 64,
    "hidden": 128,
    "layers": 1,
    "batch": 32,
    "learning_rate": 8e-3,
    "decay": True,
    "precision": "fp32",
    "epochs": 1,
    "validate_steps": 200,
    "seed": SEED,
}
MODELS: dict[str, dict[str, Any]] = {
    "ssdvae-exact": {"context_vector": 64},
    "ssdvae": {},
    "rnnlm": {"context_vector": 64},
}
"""Options of the models that are trained, the slowest first."""

EVALUATE = EvaluateOptions(split="test", bound_samples=10, cloze_seeds=2)
SCRIPTS = 500
"""Scripts that each model generates, to count those that are possible."""

QUERY = "sailed ship port"
"""An event that is not in the example text, to search for similar ones."""


@dataclass(frozen=True)
class ExampleAnswers:
    """Answers of the packaged model about the example text, one of each kind."""

    model: str
    inferred: InferredDocument
    scored: ScoredDocument
    forecast: Forecast
    filled: FilledDocument  # the head of the last event was left out
    similar: list[SimilarEvent]  # to QUERY


@dataclass(frozen=True)
class Demo:
    """The folder that the demo has made, and what it shows."""

    folder: Path
    page: Path
    scores: dict[str, dict[str, Any]]  # by model; "best": the best possible ones
    documents: list[tuple[Document, list[str]]]  # unseen, with inferred frames
    scripts: list[tuple[Script, float]]  # after the first events of these, with their exact log p
    extracted: Document | None = None  # events of a short text; None without the package that reads it
    answers: ExampleAnswers | None = None  # about that text


def demo(out: AnyPath = "demo", *, progress: bool | Progress = True) -> Demo:
    """Train three models side by side on the embedded corpus, and show what they know.

    >>> ssdvae.demo("demo").scores["ssdvae-exact"]["ppl"]

    The paper's SSDVAE, ssdvae-exact and an RNNLM are trained and measured, each in a process of its own.
    A second call finds what is done already, and does the rest.

    Args:
        out: folder for everything the demo makes
    """
    from ssdvae.io.progress import resolve

    return run_demo(Path(out), DOCUMENTS, {}, resolve(progress))


def run_demo(out: Path, documents: int, options: dict[str, Any], progress: Progress) -> Demo:
    """Make the corpus, train and evaluate, as far as that is not done already.

    ``options`` change those of all models.
    """
    from ssdvae.data.corpus import Corpus
    from ssdvae.data.options import EngineOptions, cores
    from ssdvae.data.prepare import prepare
    from ssdvae.data.readers import write_jsonl
    from ssdvae.engine.pool import map_in_processes
    from ssdvae.extraction.annotate import annotate_example
    from ssdvae.io.files import write_text
    from ssdvae.io.progress import lines_of_processes, track
    from ssdvae.io.records import to_json
    from ssdvae.models.base import Model
    from ssdvae.models.hub import DEFAULT, packaged
    from ssdvae.report.page import write_report
    from ssdvae.storyworld.world import World, best_scores

    world, events = World.embedded(), out / "events.jsonl"
    if not events.exists():
        out.mkdir(parents=True, exist_ok=True)
        log.info(f"writing {documents:,} documents of the embedded corpus to {events}")
        write_jsonl(events, track(progress, world.documents(documents, SEED), "writing", documents))
    if (out / "corpus").exists():
        corpus = Corpus(out / "corpus")
    else:
        corpus = prepare(events, out / "corpus", PREPARE, progress=progress)

    count = corpus.manifest["splits"]["train"]["documents"]
    log.info(f"training {', '.join(MODELS)} on {count:,} documents, and measuring them on unseen ones")
    jobs = min(cores(), len(MODELS))
    with lines_of_processes(MODELS, progress) as queue:
        work = partial(_train_and_measure, out, options, max(1, cores() // jobs), queue)
        found = list(map_in_processes(MODELS, work, EngineOptions(jobs=jobs), "go on with: ssdvae demo"))
    scores: dict[str, dict[str, Any]] = dict(zip(MODELS, found, strict=True))

    unseen = _test_documents(events)
    best = {**best_scores(world, unseen), **_best_cloze(world, corpus), "scripts_possible": 1.0}
    scores["best"] = best
    write_text(out / "scores.json", to_json(scores, indent=2) + "\n")
    # The best possible perplexity is also the lower limit of a bound.
    page = write_report(
        [out / name for name in MODELS],
        out / "report.html",
        ReportOptions(split="test"),
        best={**best, "ppl_bound": best["ppl"]},
    )
    model, extracted = Model.read(out / "ssdvae-exact"), annotate_example(out / "text")
    return Demo(
        folder=out,
        page=page,
        scores=scores,
        documents=list(zip(unseen[:SHOWN], _inferred_frames(model, corpus, SHOWN), strict=True)),
        scripts=[_continuation(world, model, document) for document in unseen[:SHOWN]],
        extracted=extracted,
        answers=None if extracted is None or packaged(DEFAULT) is None else ask_packaged_model(extracted),
    )


def _train_and_measure(
    out: Path, options: dict[str, Any], threads: int, queue: Queue[Any], name: str
) -> dict[str, Any]:
    """Return the scores of a model, after training it as far as that is not done already."""
    import torch

    from ssdvae.data.corpus import Corpus
    from ssdvae.evaluation.measure import evaluate_run
    from ssdvae.inference.generation import generate
    from ssdvae.io.progress import Sender
    from ssdvae.models.base import Model
    from ssdvae.storyworld.world import World
    from ssdvae.training.train import train_or_resume

    torch.set_num_threads(threads)
    corpus, progress = Corpus(out / "corpus"), Sender(queue, name)
    chosen = TrainOptions.chosen({"model": name, **SHARED, **MODELS[name], **options})
    run = train_or_resume(corpus, out / name, chosen, progress)
    model = Model.read(run.folder).on_fastest_device()
    scores = evaluate_run(run.folder, model, corpus, EVALUATE, progress=progress)
    world, wanted = World.embedded(), GenerateOptions(scripts=SCRIPTS, temperature=1, top_p=1, seed=SEED)
    made = [[generated.event for generated in script.events] for script in generate(model, wanted)]
    possible = sum(world.log_prob(script) > -math.inf for script in made)
    return {**scores, "scripts_possible": possible / len(made)}


def ask_packaged_model(document: Document) -> ExampleAnswers:
    """Return the answers of the packaged model to one question of each kind about a document."""
    from ssdvae.data.events import HOLE, Document, Event
    from ssdvae.inference.embedding import similar
    from ssdvae.inference.forecast import next_events
    from ssdvae.inference.infill import fill_documents
    from ssdvae.inference.posterior import infer_documents
    from ssdvae.inference.surprisal import score_documents
    from ssdvae.models.base import Model
    from ssdvae.models.hub import DEFAULT, default_model

    model = Model.read(default_model())
    *before, last = document.events
    without_head = Event.of_words([HOLE, *last.padded(len(model.slots))[1:]])
    (inferred,) = infer_documents(model, [document])
    (scored,) = score_documents(model, [document])
    (forecast,) = next_events(model, [document], top=3)
    (filled,) = fill_documents(model, [Document(document.id, (*before, without_head))], top=3)
    neighbours = similar(model, [Event(*QUERY.split())], [document], top=2)
    return ExampleAnswers(DEFAULT, inferred, scored, forecast, filled, neighbours)


def _best_cloze(world: World, corpus: Corpus) -> dict[str, float]:
    from ssdvae.data.items import read_cloze
    from ssdvae.storyworld.world import best_cloze

    if not corpus.has_items("cloze", "test"):
        return {}
    best = best_cloze(world, read_cloze(corpus.items("cloze", "test")))
    return {"cloze_nll": best["nll"], "cloze_pmi": best["pmi"]}


def _test_documents(events: Path) -> list[Document]:
    """Return the documents of the test split, cut as `prepare` cuts them but with all their words."""
    from ssdvae.data.events import Document
    from ssdvae.data.prepare import usable_events
    from ssdvae.data.readers import read_documents
    from ssdvae.data.source import split_of

    return [
        Document(document.id, tuple(usable_events(document, PREPARE)))
        for document in read_documents(events)
        if split_of(document.id, PREPARE) == "test"
    ]


def _inferred_frames(model: Model, corpus: Corpus, count: int) -> Sequence[list[str]]:
    """Return the frames that the model infers for the first documents of the test split."""
    import numpy as np

    from ssdvae.data.batches import collate
    from ssdvae.inference.posterior import infer_frames

    posterior = infer_frames(model, collate(corpus.split("test"), np.arange(count)).to(model.device))
    return [[corpus.frames.name(f) for f in row if f >= 0] for row in posterior.value.tolist()]


def _continuation(world: World, model: Model, document: Document) -> tuple[Script, float]:
    """Return a script after the first event of a document, and its log p in the world."""
    from ssdvae.inference.generation import generate

    [script] = generate(model, GenerateOptions(scripts=1, seed=SEED), seed_events=document.events[:1])
    return script, world.log_prob([generated.event for generated in script.events])


def print_demo(demo: Demo) -> None:
    """Print the scores, some documents and scripts, and events found in a text."""
    out = output(110)
    out.print()
    out.print(
        "The documents are generated stories: each event has a verb, a subject, an object and a preposition, "
        "and a frame, which is its type. In training the models saw nine of ten frames; here they see none. "
        "rnnlm predicts words only, ssdvae is the paper's model, ssdvae-exact is ours."
    )
    show([_score_table(demo.scores)], out)
    out.print(
        "All figures were measured in this run, on the same documents. Perplexity is the number of equally "
        "likely words that a model chooses among. ≤: only an upper bound is known, here by "
        f"{EVALUATE.bound_samples} samples. Best possible: computed from the rules that generate the "
        "stories; no model can do better except by chance. Below, ssdvae-exact inferred the frames and wrote "
        "the scripts.\n"
    )
    for document, inferred in demo.documents:
        show([_document_table(document, inferred)], out, plain=True)
        out.print()
    for script, log_prob in demo.scripts:
        show([_script_table(script, log_prob)], out, plain=True)
        out.print()
    if demo.extracted is not None:
        from ssdvae.extraction.annotate import EXAMPLE_THRESHOLD

        rows = list(_extracted_rows(demo.extracted))
        show([("Events found in a text", ["sentence", "event", "frame"], rows)], out, plain=True)
        out.print(
            "Frames come from a lexicon of verbs, with their probability. An event is latent if its verb is "
            f"unknown or no frame has {EXAMPLE_THRESHOLD}: then a model has to infer the frame. "
            f"The events are in {demo.folder / 'text' / 'ferry.jsonl'}.\n"
        )
    if demo.answers is not None:
        _print_answers(demo.answers, out)
    out.print(f"Everything is in {demo.folder}: scores.json, the corpus, and the runs {', '.join(MODELS)}.")
    out.print(f"Open {demo.page} in a browser to see it all: {demo.page.resolve().as_uri()}", soft_wrap=True)


def _print_answers(answers: ExampleAnswers, out: Console) -> None:
    """Print a table of events, and a line for each of the other questions."""
    rows = [
        [
            str(inferred.event),
            f"{inferred.frame} ({inferred.probability:.2f})" if inferred.frame else "unknown",
            f"{scored.percentile or 0:.0f}% of events",
        ]
        for inferred, scored in zip(answers.inferred.events, answers.scored.events, strict=True)
    ]
    title = f"The same text, read by {answers.model}, which comes with the package"
    show([(title, ["event", "frame", "more surprising than"], rows)], out, plain=True)
    (hole,) = answers.filled.holes
    blank = " ".join(answers.filled.events[-1].words[1:])
    lines = {
        "next": ("what follows?", [(c.name, f"{c.probability:.1%}") for c in answers.forecast.heads]),
        "fill": (f"? {blank}", [(f.event.head, f"{f.probability:.1%}") for f in hole.fillings]),
        "similar": (QUERY, [(str(s.event), f"{s.similarity:.2f}") for s in answers.similar]),
    }
    for command, (question, found) in lines.items():
        candidates = ", ".join(f"{text} ({number})" for text, number in found)
        out.print(f"  {command:9}{question:22}{candidates}")
    out.print('\nAsk it yourself: ssdvae next "arrested police suspect in", or ssdvae explore.\n')


def _score_table(scores: dict[str, dict[str, Any]]) -> TableText:
    columns = [scores[name] for name in ("rnnlm", "ssdvae", "ssdvae-exact", "best")]
    chance = scores["ssdvae"].get("cloze_chance", 0)
    shares = {
        "frames inferred correctly": "frame_accuracy",
        f"true continuation chosen of six (chance {chance:.1%})": "cloze_nll",
        "written scripts that can happen": "scripts_possible",
    }
    rows = [["perplexity (lower is better)", *map(_perplexity, columns)]]
    for label, name in shares.items():
        found = [scores.get(name) for scores in columns]
        rows.append([label, *("" if value is None else f"{value:.1%}" for value in found)])
    title = f"Measured on {scores['best']['documents']:,} unseen documents, {scores['best']['words']:,} words"
    return title, ["", "rnnlm", "ssdvae", "ssdvae-exact", "best possible"], rows


def _perplexity(scores: dict[str, Any]) -> str:
    bound = scores.get("ppl_bound") or scores["ppl"]
    return f"{bound:.2f}" if math.isclose(bound, scores["ppl"], rel_tol=1e-4) else f"≤ {bound:.2f}"


def _script_table(script: Script, log_prob: float) -> TableText:
    verdict = "cannot happen in this world" if log_prob == -math.inf else "can happen in this world"
    rows = [[str(generated.event), generated.inferred or ""] for generated in script.events]
    title = f"A script after the first event ({verdict})"
    return title, [name.ljust(24) for name in ("event", "inferred frame")], rows


def _document_table(document: Document, inferred: Sequence[str]) -> TableText:
    rows = [
        [str(event), str(event.frame), guess if guess == event.frame else f"{guess} ✗"]
        for event, guess in zip(document.events, inferred, strict=True)
    ]
    # Padded, so that the columns of all documents are aligned.
    return document.id, [name.ljust(24) for name in ("event", "true frame", "inferred frame")], rows


def _extracted_rows(document: Document) -> Iterator[list[str]]:
    """Yield each event beside its sentence, which is shown once."""
    last = -1
    for event in document.events:
        assert event.origin is not None
        sentence = "" if event.origin.sentence == last else str(event.origin.text)
        last = event.origin.sentence
        frame = f"{event.frame} ({event.probability:.2f})" if event.frame else "latent"
        yield [sentence, str(event), frame]


COMMAND = Command(demo, print_demo, examples=("ssdvae demo", "ssdvae demo elsewhere"))
