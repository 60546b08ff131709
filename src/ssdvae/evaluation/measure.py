"""Run evaluation tasks on a model, and record what is needed to trust their figures.

A corpus may have been prepared for another model (``in_numbers_of``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ssdvae import __version__
from ssdvae.data.batches import Batch
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.documents import ContextWindow, describe_cut
from ssdvae.data.events import folded
from ssdvae.data.options import Split
from ssdvae.data.readers import read_documents
from ssdvae.data.readers.jsonl import write_records
from ssdvae.evaluation.fitting import without_fitted_labels
from ssdvae.evaluation.frames import majority_frames_of_run, warnings_for
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.evaluation.task import TASKS, Task, find_tasks
from ssdvae.inference.inputs import to_numbers
from ssdvae.io.errors import UserError
from ssdvae.io.files import atomic_write, sha256
from ssdvae.io.limits import bound_kernels, keep_freed_memory
from ssdvae.io.progress import SILENT, Progress
from ssdvae.io.scores import Measurement, write_scores
from ssdvae.models.base import Model, as_frame_model
from ssdvae.models.hub import shown_file
from ssdvae.models.latents import FramePosterior, LatentPosterior

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SplitPass:
    """The results of one pass over the split."""

    scores: dict[str, Any]  # of words, frames and latent variables
    observers: Mapping[str, Any]  # by task; they have seen every batch


@dataclass(frozen=True)
class Evaluation:
    """The model, in eval mode, and the corpus and options that the tasks of one evaluation share."""

    model: Model
    corpus: Corpus
    settings: EvaluateOptions
    tasks: Sequence[Task]
    progress: Progress
    majority: Callable[[], NDArray[np.int64] | None] = lambda: None
    """The majority frame of each word as a head in training, where that is known."""

    @cached_property
    def documents(self) -> Documents:
        whole = self.corpus.split(self.settings.split)
        if (lost := describe_cut(whole, self.settings.events or None)) is not None:
            log.info(f"measures {lost}; --events 0 measures all")
        return without_fitted_labels(
            whole.first(self.settings.events or None), self.model, self.settings.split
        )

    @cached_property
    def split_pass(self) -> SplitPass:
        """One pass over the split for all tasks, made on first use."""
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
    settings: EvaluateOptions,
    *,
    details: Path | None = None,
    progress: Progress = SILENT,
    majority: Callable[[], NDArray[np.int64] | None] = lambda: None,
) -> list[Measurement]:
    """Measure the tasks that the model can do; ``weights`` is the fingerprint of the model.

    ``details`` is a file for the records of every item; ``majority`` returns the majority frame of each head
    among the observed ones of the training.
    """
    keep_freed_memory()
    bound_kernels()
    corpus.check_names(model.vocabulary, model.frames, model.slots)
    settings = as_trained(settings, model.context_window)
    # Find all data and check all options before any work.
    found = [(task, data) for task in _possible(model, settings) if (data := task.data(corpus, settings))]
    for task, _ in found:
        task.check(model.config, settings)
    if details is not None and not any(task.has_details for task, _ in found):
        some = ", ".join(task.name for task in TASKS.values() if task.has_details)
        raise UserError(f"--details: no task with a score for each item is measured; such tasks: {some}")
    if settings.precision != "fp32":
        log.info(
            f"perplexity with products in {settings.precision}: its last digits are not those of fp32, "
            "and the scores are not saved with the run"
        )
    model.eval()
    evaluation = Evaluation(model, corpus, settings, [task for task, _ in found], progress, majority)
    used = {name: value for name, value in settings.to_dict().items() if name not in ("tasks", "split")}
    done = []
    for task, data in found:
        if (result := task.run(evaluation, data)) is None:
            continue
        done.append(
            Measurement(
                task=task.name,
                data=data.name,
                sha256=data.sha256,
                items=result.items,
                settings=used,
                version=__version__,
                model_sha256=weights,
                scores=result.scores,
            )
        )
        if details is not None and result.details is not None:
            write_records(details, result.details)
    for warning in warnings_for(flat(done), len(model.frames)) if as_frame_model(model) is not None else ():
        log.warning(warning)
    return done


def as_trained(settings: EvaluateOptions, reading: ContextWindow) -> EvaluateOptions:
    """Return the options with the number of events set, by default to that of the training."""
    return settings if settings.events is not None else settings.changed(events=reading.measured)


def _possible(model: Model, settings: EvaluateOptions) -> list[Task]:
    """Return the tasks that the model can do; warn of a named one that it cannot."""
    possible = []
    for task in find_tasks(settings.task_names):
        if missing := task.missing(model):
            if settings.task_names is not None:
                log.warning("%s has no %s: no %s", model.config.model, " and no ".join(missing), task.name)
        else:
            possible.append(task)
    return possible


def flat(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """Return the figures of all tasks by name."""
    return {name: value for m in measurements for name, value in m.scores.items()}


def evaluate_run(
    run: str | Path,
    model: Model,
    corpus: Corpus,
    settings: EvaluateOptions,
    *,
    details: str | Path | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """Measure the model of a run, save the scores in its folder, and return all figures by name.

    ``run`` is a folder, or the name of a model on the hub.
    """
    folder = Path(run)
    weights = sha256(folder / "model.safetensors") if folder.is_dir() else str(run)
    # Open the file before the work, in case it cannot be written.
    with nullcontext() if details is None else atomic_write(details) as path:
        measured = measure(
            model,
            weights,
            corpus,
            settings,
            details=path,
            progress=progress,
            majority=lambda: majority_frames_of_run(folder, corpus),
        )
    if folder.is_dir() and settings.precision == "fp32":
        try:
            write_scores(folder, measured)
        except UserError as error:
            log.warning(f"the scores are not saved: {error}")
    return flat(measured)


class RenumberedCorpus(Corpus):
    """A corpus with the words and frames of a model: others are out of vocabulary, and latent."""

    def __init__(self, corpus: Corpus, model: Model) -> None:
        super().__init__(corpus.folder)
        self.original = corpus
        # In the place of the cached properties.
        self.__dict__ |= {"vocabulary": model.vocabulary, "frames": model.frames}
        words, names = corpus.vocabulary.names, corpus.frames.names
        words = folded(words) if model.vocabulary.lowercase else words
        self.word_ids = np.array(model.vocabulary.word_ids(words), dtype=np.int32)
        self.frame_ids = np.array([*map(model.frames.id, names), -1], dtype=np.int32)  # −1 stays −1

    def split(self, name: Split) -> Documents:
        found = self.original.split(name)
        places = found.in_order()
        tokens, frames = self.word_ids[found.tokens[places]], self.frame_ids[found.frames[places]]
        oov = (tokens == self.vocabulary.unknown).mean() / (tokens != self.vocabulary.missing).mean()
        log.warning(
            f"{self.folder} was prepared for another model: {oov:.1%} of its words ({name}) are out of the "
            "vocabulary of this one and count as one word\n"
            "compare the perplexity with no model of another vocabulary"
        )
        ends = None if found.ends is None else found.ends[places]
        times = None if found.times is None else found.times[places]
        return Documents.of_events(found.ids, tokens, frames, found.lengths, ends, times)


def shown_documents(model: Model, corpus: Corpus | None, folder: Path | None, split: Split) -> Documents:
    """Return the documents that a model is shown on: a split of a corpus, or what is packed with it."""
    if corpus is not None:
        corpus.check_names(model.vocabulary, model.frames, model.slots)
        return corpus.split(split).first(model.context_window.measured)
    file = None if folder is None else shown_file(folder)
    if file is None:
        raise UserError(f"{folder or 'a model'} has no corpus of its own: name one by --corpus")
    return to_numbers(model, read_documents(file, slots=model.slots))


def in_numbers_of(model: Model, corpus: Corpus) -> Corpus:
    """Return a corpus in the numbers of a model."""
    try:
        corpus.check_names(model.vocabulary, model.frames, model.slots)
    except UserError:
        if corpus.slots != model.slots:
            raise
        return RenumberedCorpus(corpus, model)
    return corpus
