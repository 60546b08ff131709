"""One trial in a process of its own: train or resume it, then measure what was not measured yet.

The sweep starts ``python -m ssdvae.reproduction.job JOB`` and holds the other end of its standard input. When
that closes, the job saves a checkpoint and stops.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import threading
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import PlainSerializer, TypeAdapter

from ssdvae.data.corpus import Corpus
from ssdvae.evaluation.frames import majority_frames_of_run
from ssdvae.evaluation.measure import measure
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.task import find_task
from ssdvae.io.errors import UserError
from ssdvae.io.files import sha256
from ssdvae.io.progress import SILENT, Bars, Progress
from ssdvae.io.run import Run
from ssdvae.io.scores import Measurement, read_scores, write_scores
from ssdvae.models.base import Model
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import resume, train

log = logging.getLogger(__name__)


class TaskRequest(NamedTuple):
    """A task to measure, and the checksum of its data."""

    task: str
    sha256: str
    cloze: Path | None = None  # a cloze file beside the corpus's own items


@dataclass(frozen=True)
class Job:
    """All that a process needs to make a trial."""

    run: Path
    corpus: Path
    training: Annotated[TrainOptions, PlainSerializer(TrainOptions.to_dict)]
    evaluation: EvaluateOptions
    requests: tuple[TaskRequest, ...]

    def to_json(self) -> str:
        return ADAPTER.dump_json(self).decode()

    @classmethod
    def from_json(cls, text: str) -> Job:
        return ADAPTER.validate_json(text)

    def measurements(self, weights: str | None = None) -> dict[TaskRequest, Measurement]:
        """Return the measurements that there are; with ``weights``, of the model with this checksum alone."""
        scores = [m for m in read_scores(self.run) if weights in (None, m.model_sha256)]
        return {request: m for request in self.requests for m in scores if self._answers(m, request)}

    def _answers(self, m: Measurement, request: TaskRequest) -> bool:
        names = find_task(request.task).settings
        same = all(m.settings.get(name) == getattr(self.evaluation, name) for name in names)
        return (m.task, m.sha256) == (request.task, request.sha256) and same

    def finished(self) -> bool:
        """Tell whether nothing is left to do."""
        if not Run(self.run).state().finished:
            return False
        return set(self.measurements(_weights(self.run))) == set(self.requests)


ADAPTER = TypeAdapter(Job)


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
    done = job.measurements(weights)
    if missing := [request for request in job.requests if request not in done]:
        corpus, model = Corpus(job.corpus), Model.read(run.folder).on_fastest_device()
        for request in missing:
            options = job.evaluation.changed(tasks=request.task, cloze=request.cloze)
            counted = partial(majority_frames_of_run, run.folder, corpus)
            write_scores(run.folder, measure(model, weights, corpus, options, majority=counted))


def _clear(folder: Path) -> None:
    """Remove what a run that died before it was a run has left: folders, and files half written."""
    if folder.is_dir() and all(p.is_dir() or p.name.startswith(".") for p in folder.rglob("*")):
        shutil.rmtree(folder)


def _stop_when_the_sweep_ends() -> None:
    """Wait until the sweep closes our standard input, in whatever way it ends; then send SIGTERM."""
    # Not through sys.stdin, whose lock a thread must not hold while the interpreter ends.
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def main(text: str) -> int:
    """Run a job; messages go to standard error, which is the log of the trial."""
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
