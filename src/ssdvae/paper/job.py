"""One cell, in a process of its own: train it or go on with it, then measure what was not measured yet.

``python -m ssdvae.paper.job JOB`` is started by the sweep, which holds the other end of its standard
input for as long as the cell is wanted.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from ssdvae import __version__
from ssdvae.cli.console import say
from ssdvae.config import EvaluateSettings, ExplainSettings, TrainSettings
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.evaluation.attention import AttentionMeans, attention_summary
from ssdvae.evaluation.measure import Measurement, measure, read_scores, write_scores
from ssdvae.files import sha256
from ssdvae.models.base import EventModel
from ssdvae.runs import Run
from ssdvae.training.train import resume, train

RELEVANT: dict[str, tuple[str, ...]] = {
    "perplexity": ("bound_samples", "eval_batch", "eval_seed"),
    "frames": ("eval_batch",),
    "cloze": ("cloze_seeds", "cloze_frames", "eval_batch", "eval_seed"),
    "attention": ("eval_batch",),
}
"""The settings on which the figures of each task depend."""


@dataclass(frozen=True)
class Wanted:
    """A task, and the fingerprint of the data that it is to be done on."""

    task: str
    sha256: str
    cloze: Path | None = None  # a file that is not the corpus's own


@dataclass(frozen=True)
class Job:
    """All that is needed to make a cell."""

    run: Path
    corpus: Path
    training: TrainSettings
    measuring: EvaluateSettings
    wanted: tuple[Wanted, ...]

    def to_json(self) -> str:
        record = {
            "run": str(self.run),
            "corpus": str(self.corpus),
            "training": self.training.to_dict(),
            "measuring": self.measuring.to_dict(),
            "wanted": [[w.task, w.sha256, w.cloze and str(w.cloze)] for w in self.wanted],
        }
        return json.dumps(record)

    @classmethod
    def from_json(cls, text: str) -> Self:
        record = json.loads(text)
        return cls(
            Path(record["run"]),
            Path(record["corpus"]),
            TrainSettings(**record["training"]),
            EvaluateSettings(**record["measuring"]),
            tuple(Wanted(task, digest, path and Path(path)) for task, digest, path in record["wanted"]),
        )

    def measured(self, weights: str | None = None) -> dict[Wanted, Measurement]:
        """What is wanted and known, with ``weights`` of the model that has these weights."""
        kept = [m for m in read_scores(self.run) if weights in (None, m.model_sha256)]
        return {w: m for w in self.wanted for m in kept if self._answers(m, w)}

    def _answers(self, m: Measurement, wanted: Wanted) -> bool:
        same = all(m.settings.get(name) == getattr(self.measuring, name) for name in RELEVANT[wanted.task])
        return (m.task, m.sha256) == (wanted.task, wanted.sha256) and same

    def finished(self) -> bool:
        """Whether nothing is left to do."""
        if not Run(self.run).state().finished:
            return False
        return set(self.measured(_weights(self.run))) == set(self.wanted)


def _weights(run: Path) -> str:
    return sha256(run / "model.safetensors")


def run_job(job: Job) -> None:
    """Train and measure, as far as that was not done before."""
    run = Run(job.run)
    if run.config_path.is_file():
        if not run.state().finished:
            resume(run.folder, job.corpus)
    else:
        _clear(run.folder)
        train(Corpus(job.corpus), run.folder, job.training)
    weights = _weights(run.folder)
    done = job.measured(weights)
    if missing := [wanted for wanted in job.wanted if wanted not in done]:
        corpus, model = Corpus(job.corpus), EventModel.read(run.folder).on_fastest_device()
        for wanted in missing:
            write_scores(run.folder, _measure(model, weights, corpus, wanted, job.measuring))


def _clear(folder: Path) -> None:
    """Take away what a run leaves that died before it was a run: folders, and files half written."""
    if folder.is_dir() and all(p.is_dir() or p.name.startswith(".") for p in folder.rglob("*")):
        shutil.rmtree(folder)


def _measure(
    model: EventModel, weights: str, corpus: Corpus, wanted: Wanted, settings: EvaluateSettings
) -> Iterable[Measurement]:
    if wanted.task != "attention":
        settings = replace(settings, tasks=wanted.task, cloze=wanted.cloze)
        return measure(model, weights, corpus, settings)
    looks = ExplainSettings(batch=settings.eval_batch)
    look = attention_summary(model, corpus.split(settings.split), looks).overall()
    used = {name: getattr(settings, name) for name in RELEVANT["attention"]}
    scores = attention_scores(look)
    return [
        Measurement(
            "attention", settings.split, wanted.sha256, look.events, used, __version__, weights, scores
        )
    ]


def attention_scores(look: AttentionMeans) -> dict[str, Any]:
    """Under the names of ``FIGURES``."""
    return {
        "attention_entropy": look.entropy,
        "attention_most_entropy": look.most_entropy,
        "attention_verbs": look.verbs,
        "attention_own_verb": look.own["verb"],
        "attention_own_event": look.own_event,
    }


def _stop_with_the_sweep() -> None:
    """Wait until the sweep lets go of our standard input, in whatever way; then stop as one is asked to."""
    # Not through sys.stdin, whose lock a thread must not hold while the interpreter ends.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(text: str) -> int:
    threading.Thread(target=_stop_with_the_sweep, daemon=True).start()
    try:
        run_job(Job.from_json(text))
    except UserError as error:
        say(f"error: {error}")
        return getattr(error, "exit_code", 2)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
