"""Run evaluation tasks on a model, and record what is needed to trust their figures."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae import __version__
from ssdvae.config import EvaluateSettings
from ssdvae.data.batches import Batch
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.readers.jsonl import write_records
from ssdvae.data.reading import Reading, left_out
from ssdvae.errors import UserError
from ssdvae.evaluation.fitting import measuring_half
from ssdvae.evaluation.meaning import doubts
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.evaluation.tasks import TASKS, find_tasks
from ssdvae.evaluation.tasks.base import Task
from ssdvae.measurements import Measurement
from ssdvae.memory import keep_freed_memory
from ssdvae.models.base import FramePosterior, LatentPosterior, Model, as_frame_model
from ssdvae.progress import SILENT, Progress

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SplitPass:
    """What one pass over the split gives."""

    scores: dict[str, Any]  # of words, frames and latent variables
    observers: Mapping[str, Any]  # by task; they have seen every batch


@dataclass(frozen=True)
class Evaluation:
    """What the tasks that are measured together have in common."""

    model: Model
    corpus: Corpus
    settings: EvaluateSettings
    tasks: Sequence[Task]
    progress: Progress
    commonest: Callable[[], NDArray[np.int64] | None] = lambda: None
    """The commonest observed frame of each word as a head, where the training is known."""

    @cached_property
    def documents(self) -> Documents:
        whole = self.corpus.split(self.settings.split)
        if (lost := left_out(whole, self.settings.events or None)) is not None:
            log.info(f"measures {lost}; --events 0 measures all")
        return measuring_half(whole.first(self.settings.events or None), self.model, self.settings.split)

    @cached_property
    def split_pass(self) -> SplitPass:
        """One pass over the split for all tasks: made when the first of them asks for it."""
        observers = {task.name: task.observer(self.model) for task in self.tasks if task.observer}

        def show(posterior: LatentPosterior, batch: Batch) -> None:
            for observer in observers.values():
                if isinstance(posterior, FramePosterior):
                    observer.add(posterior, batch)

        words = any(task.scores_words for task in self.tasks)
        with self.progress.task("evaluating", len(self.documents)) as advance:
            scores = evaluate(
                self.model, self.documents, self.settings, words=words, observe=show, advance=advance
            )
        return SplitPass(scores, observers)


def measure(
    model: Model,
    weights: str,
    corpus: Corpus,
    settings: EvaluateSettings,
    *,
    details: Path | None = None,
    progress: Progress = SILENT,
    commonest: Callable[[], NDArray[np.int64] | None] = lambda: None,
) -> list[Measurement]:
    """Measure the tasks that the model has an answer to; ``weights`` is the fingerprint of the model.

    ``details`` is a file for the records of every item, of the task that has them; ``commonest`` gives the
    frame that each head had most often in training, as far as it was observed.
    """
    keep_freed_memory()
    corpus.check_names(model.vocabulary, model.frames, model.slots)
    settings = as_trained(settings, model.reading)
    # All data are looked for, and all settings checked, before any work is done.
    found = [(task, data) for task in _possible(model, settings) if (data := task.data(corpus, settings))]
    for task, _ in found:
        task.check(model.config, settings)
    if details is not None and not any(task.has_details for task, _ in found):
        some = ", ".join(task.name for task in TASKS.values() if task.has_details)
        raise UserError(f"--details: no task with a score for each item is measured; such tasks: {some}")
    evaluation = Evaluation(model, corpus, settings, [task for task, _ in found], progress, commonest)
    used = {name: value for name, value in settings.to_dict().items() if name not in ("tasks", "split")}
    done = []
    for task, data in found:
        if (result := task.run(evaluation, data)) is None:
            continue
        done.append(
            Measurement(
                task.name, data.name, data.sha256, result.items, used, __version__, weights, result.scores
            )
        )
        if details is not None and result.details is not None:
            write_records(details, result.details)
    for doubt in doubts(flat(done), len(model.frames)) if as_frame_model(model) is not None else ():
        log.warning(doubt)
    return done


def as_trained(settings: EvaluateSettings, reading: Reading) -> EvaluateSettings:
    """The same with the number of events decided: that of the training, where none was asked for."""
    return settings if settings.events is not None else settings.changed(events=reading.measured)


def _possible(model: Model, settings: EvaluateSettings) -> list[Task]:
    """The tasks that the model can do; of one that was asked for by name and cannot be done, a warning."""
    possible = []
    for task in find_tasks(settings.task_names):
        if missing := task.missing(model):
            if settings.task_names is not None:
                log.warning("%s has no %s: no %s", model.config.model, " and no ".join(missing), task.name)
        else:
            possible.append(task)
    return possible


def flat(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """The figures of all tasks by name."""
    return {name: value for m in measurements for name, value in m.scores.items()}
