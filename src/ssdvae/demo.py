"""The demo: the whole road on the embedded corpus, where the best possible scores are known exactly."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from ssdvae import api
from ssdvae.cli.console import bar, say
from ssdvae.config import PrepareSettings, TrainSettings
from ssdvae.data.batches import collate
from ssdvae.data.cloze import read_cloze
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document
from ssdvae.data.prepare import prepare, split_of, usable_events
from ssdvae.data.readers import read_documents, write_jsonl
from ssdvae.extraction.demo import show_extraction
from ssdvae.files import atomic_write
from ssdvae.models.base import EventModel
from ssdvae.runs import Run
from ssdvae.storyworld.scores import best_cloze, best_scores
from ssdvae.storyworld.world import World
from ssdvae.training.train import resume, train

DOCUMENTS = 50_000
SEED = 1
PREPARE = PrepareSettings(vocabulary=2_000, frames=500, valid_share=0.02, test_share=0.02)
# Larger steps than the paper's, and a decay: the corpus is easy and the visitor is waiting. Documents cost
# nothing here, so none is seen twice.
TRAIN = TrainSettings(
    observe=0.9,
    foresight=0.3,
    embedding=64,
    hidden=128,
    layers=1,
    batch=32,
    learning_rate=5e-3,
    decay=True,
    epochs=1,
    validate_steps=200,
    seed=SEED,
)


def run_demo(out: Path, documents: int = DOCUMENTS, settings: TrainSettings = TRAIN) -> dict[str, Any]:
    """Make the corpus, train, evaluate, and show; what an earlier run has finished is not done again."""
    world = World.embedded()
    events, run = out / "events.jsonl", Run(out / "run")
    if not events.exists():
        out.mkdir(parents=True, exist_ok=True)
        say(f"writing {documents:,} documents of the embedded corpus to {events}")
        write_jsonl(events, world.documents(documents, SEED))
    corpus = Corpus(out / "corpus") if (out / "corpus").exists() else prepare(events, out / "corpus", PREPARE)
    if run.config_path.exists():
        resume(run.folder)
    else:
        say(f"training on {corpus.manifest['splits']['train']['documents']:,} of them")
        train(corpus, run.folder, settings)

    truth = _unseen(events)
    say("measuring on documents that were not trained on")
    with bar("evaluating", len(truth)) as tick:
        scores = {
            "ssdvae": api.evaluate(run.folder, split="test", cloze_seeds=10, tick=tick),
            "best": {**best_scores(world, truth), **_best_cloze(world, corpus)},
        }
    with atomic_write(out / "scores.json") as path:
        path.write_text(json.dumps(scores, indent=2) + "\n", encoding="utf-8")
    page = api.write_report([run.folder], out / "report.html", split="test")
    _show(page, corpus, run, scores, truth)
    return scores


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


def _show(page: Path, corpus: Corpus, run: Run, scores: dict[str, Any], truth: Sequence[Document]) -> None:
    console = Console(width=None if os.isatty(1) else 110, highlight=False)
    curve = [record for record in run.metrics() if record["split"] == "valid"]
    console.print()
    console.print("Perplexity of the validation split, as training went on")
    console.print(
        f"  {_sparkline([r['ppl'] for r in curve])}  {curve[0]['ppl']:.2f} → {curve[-1]['ppl']:.2f}\n"
    )

    model, best = scores["ssdvae"], scores["best"]
    table = Table(
        title=f"{model['documents']} unseen documents, {model['words']:,} words", title_justify="left"
    )
    for heading in ("", "model", "best possible"):
        table.add_column(heading, justify="left" if not heading else "right")
    table.add_row("ppl (frames read off the same words)", f"{model['ppl']:.3f}", "")
    table.add_row("ppl_official (separators counted)", f"{model['ppl_official']:.3f}", "")
    table.add_row("ppl_bound (comparable)", f"{model['ppl_bound']:.3f}", f"{best['ppl']:.3f}")
    table.add_row(
        "accuracy of latent frames", f"{model['frame_accuracy']:.1%}", f"{best['frame_accuracy']:.1%}"
    )
    for name, kind in (("cloze_nll", "likelihood"), ("cloze_pmi", "mutual information")):
        if name in model and name in best:
            label = f"cloze by {kind} (chance {model['cloze_chance']:.1%})"
            table.add_row(label, f"{model[name]:.1%}", f"{best[name]:.1%}")
    console.print(table)
    console.print(
        "The best possible figures are exact: the corpus knows its own distribution. Compare ppl_bound with\n"
        "them: it pays for its frames, and no model comes below but by luck. ppl does not pay for them:\n"
        "it is told the frames that the encoder read off the very words to be predicted.\n"
    )
    for document, inferred in zip(truth[:3], _inferred(api.load(run.folder), corpus, 3), strict=True):
        _show_document(console, document, inferred)
    show_extraction(page.parent / "text", console)
    console.print(f"Everything is in {page.parent}: scores.json, the corpus, and the run ({run.folder}).")
    console.print(f"Open {page} in a browser to see it all: {page.resolve().as_uri()}", soft_wrap=True)


def _sparkline(values: Sequence[float]) -> str:
    """A curve of one line, on a logarithmic scale."""
    logs = np.log(values)
    low, high = logs.min(), logs.max()
    places = (logs - low) / max(high - low, 1e-9) * 7
    return "".join("▁▂▃▄▅▆▇█"[round(place)] for place in places)


def _inferred(model: EventModel, corpus: Corpus, count: int) -> list[list[str]]:
    """The frames that the model infers for the first documents of the test split."""
    beliefs = model.infer(collate(corpus.split("test"), np.arange(count)))
    assert beliefs is not None
    return [[corpus.frames.name(f) for f in row if f >= 0] for row in beliefs.value.tolist()]


def _show_document(console: Console, document: Document, inferred: Sequence[str]) -> None:
    table = Table(title=document.id, title_justify="left", box=None, padding=(0, 3, 0, 0))
    for heading in ("event", "true frame", "inferred frame"):
        table.add_column(heading, min_width=24)
    for event, guess in zip(document.events, inferred, strict=True):
        shown = guess if guess == event.frame else f"[red]{guess}[/] ✗"
        table.add_row(str(event), str(event.frame), shown)
    console.print(table)
    console.print()
