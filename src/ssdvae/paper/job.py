"""One cell, in a process of its own: train it or go on with it, then measure what was not measured yet.

``python -m ssdvae.paper.job JOB`` is started by the sweep, which holds the other end of its standard
input for as long as the cell is wanted.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import sys
import threading
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

from ssdvae.config import EvaluateSettings, TrainSettings
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.evaluation.meaning import commonest_of_run
from ssdvae.evaluation.measure import measure
from ssdvae.evaluation.tasks import find_task
from ssdvae.files import sha256
from ssdvae.measurements import Measurement, read_scores, write_scores
from ssdvae.models.base import Model
from ssdvae.progress import SILENT, Bars, Progress
from ssdvae.runs import Run
from ssdvae.training.train import resume, train

log = logging.getLogger(__name__)


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
        settings = find_task(wanted.task).settings
        same = all(m.settings.get(name) == getattr(self.measuring, name) for name in settings)
        return (m.task, m.sha256) == (wanted.task, wanted.sha256) and same

    def finished(self) -> bool:
        """Whether nothing is left to do."""
        if not Run(self.run).state().finished:
            return False
        return set(self.measured(_weights(self.run))) == set(self.wanted)


def _weights(run: Path) -> str:
    return sha256(run / "model.safetensors")


def run_job(job: Job, progress: Progress = SILENT) -> None:
    """Train and measure, as far as that was not done before."""
    run = Run(job.run)
    if run.config_path.is_file():
        if not run.state().finished:
            resume(run.folder, job.corpus, progress)
    else:
        _clear(run.folder)
        train(Corpus(job.corpus), run.folder, job.training, progress)
    weights = _weights(run.folder)
    done = job.measured(weights)
    if missing := [wanted for wanted in job.wanted if wanted not in done]:
        corpus, model = Corpus(job.corpus), Model.read(run.folder).on_fastest_device()
        for wanted in missing:
            settings = replace(job.measuring, tasks=wanted.task, cloze=wanted.cloze)
            counted = partial(commonest_of_run, run.folder, corpus)
            write_scores(run.folder, measure(model, weights, corpus, settings, commonest=counted))


def _clear(folder: Path) -> None:
    """Take away what a run leaves that died before it was a run: folders, and files half written."""
    if folder.is_dir() and all(p.is_dir() or p.name.startswith(".") for p in folder.rglob("*")):
        shutil.rmtree(folder)


def _stop_when_the_sweep_ends() -> None:
    """Wait until the sweep lets go of our standard input, in whatever way; then stop as one is asked to."""
    # Not through sys.stdin, whose lock a thread must not hold while the interpreter ends.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(text: str) -> int:
    # What is said goes to standard error, which is the log of the cell.
    logging.basicConfig(format="%(message)s")
    logging.getLogger("ssdvae").setLevel(logging.INFO)
    threading.Thread(target=_stop_when_the_sweep_ends, daemon=True).start()
    try:
        run_job(Job.from_json(text), Bars())
    except UserError as error:
        log.error(f"error: {error}")
        return getattr(error, "exit_code", 2)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
