"""Begin a run, or go on with one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

from ssdvae.config import TrainSettings
from ssdvae.data.corpus import Corpus
from ssdvae.data.vectors import Vectors, read_vectors
from ssdvae.errors import UserError
from ssdvae.files import real_path
from ssdvae.progress import SILENT, Progress
from ssdvae.runs import Run
from ssdvae.training.loop import new_accelerator
from ssdvae.training.running import Training

log = logging.getLogger(__name__)


def train(corpus: Corpus, out: Path, settings: TrainSettings, progress: Progress = SILENT) -> Run:
    """Train a model into a new run folder."""
    accelerator = new_accelerator(settings, out)
    run = Run(out)
    with _alone(run, accelerator, new=True):
        vectors = _read_vectors(corpus, settings)
        settings = _with_width(settings, vectors)
        if vectors is not None and accelerator.is_main_process:
            known, words = vectors.coverage, len(vectors.found)
            log.info(f"{known:.1%} of the {words:,} words have a vector in {settings.vectors}")
        training = Training(run, corpus, settings, accelerator, progress, vectors)
        # All have looked before one writes.
        accelerator.wait_for_everyone()
        state = training.begin()
        if accelerator.is_main_process:
            run.create(settings, corpus.folder)
        return training.run_to_end(state)


def train_or_resume(corpus: Corpus, out: Path, settings: TrainSettings, progress: Progress = SILENT) -> Run:
    """Go on with a run if it is there, and begin it otherwise: what a launcher that starts again asks for."""
    run, accelerator = Run(out), new_accelerator(settings, out)
    # One looks for all: the first to begin a run must not be taken by the others for one that was there.
    (there,) = broadcast_object_list([run.config_path.is_file()])
    accelerator.wait_for_everyone()
    if not there:
        return train(corpus, out, settings, progress)
    if found := differing(settings, run.config()[1]):
        raise UserError(
            f"{out} was begun with other settings: {'; '.join(found)}\n"
            "ask for the same, choose another --out, or go on as it was begun: "
            f"ssdvae train --resume {out}"
        )
    return resume(out, corpus.folder, progress)


HARMLESS = ("preset", "save_minutes", "record_steps", "track")
"""Settings of a run that change nothing of what it learns: a preset acts through the others."""


def differing(asked: TrainSettings, made: TrainSettings, longest: int | None = None) -> list[str]:
    """In what a run that was made is not the one that is asked for, setting by setting.

    ``longest`` is the number of events of the longest document, if it is known: no cut beyond it matters.
    """
    mine, theirs = asked.to_dict(), made.to_dict()
    if mine["embedding"] is None:
        # Decided when the run begins: that of the vectors, or the default.
        default = asked.model_settings.word_width
        mine["embedding"] = theirs["embedding"] if asked.vectors else default
    for values in (mine, theirs):
        if longest is not None and (values["events"] or 0) >= longest:
            values["events"] = None
    # A run of another model may have other settings, too.
    return [
        f"{name} is {_name(theirs.get(name))} there and {_name(mine.get(name))} here"
        for name in dict.fromkeys((*theirs, *mine))
        if name not in HARMLESS and _name(theirs.get(name)) != _name(mine.get(name))
    ]


def _name(value: Any) -> str:
    """Of a path, the name: a folder that was moved has the same vectors."""
    return Path(value).name if isinstance(value, str) else str(value)


def resume(folder: Path, corpus_folder: Path | None = None, progress: Progress = SILENT) -> Run:
    """Go on with a run from its last checkpoint, as if it had never stopped; its corpus may have moved."""
    run = Run(folder)
    first_folder, settings = run.config()
    accelerator = new_accelerator(settings, folder)
    if (state := run.state()).finished:
        if accelerator.is_main_process:
            best = "no validation was finite" if state.best is None else f"best perplexity {state.best:.6g}"
            log.info(f"{folder} is finished: {best} at step {state.best_step}")
        return run
    with _alone(run, accelerator, new=False):
        corpus = Corpus(corpus_folder or first_folder)
        # A run that died before its first checkpoint starts again: its seed says how.
        begun = run.checkpoint_path.is_file()
        vectors = None if begun else _read_vectors(corpus, settings)
        training = Training(run, corpus, settings, accelerator, progress, vectors)
        state = training.restore() if begun else training.begin()
        training.say(f"resuming {folder} after step {state.step}")
        if accelerator.is_main_process:
            run.rewind(state)
        return training.run_to_end(state)


@contextlib.contextmanager
def _alone(run: Run, accelerator: Accelerator, new: bool) -> Iterator[None]:
    """No other run trains into this folder. The main process holds it, and the others hear if it cannot."""
    with contextlib.ExitStack() as stack:
        problem: str | None = None
        if accelerator.is_main_process:
            try:
                stack.enter_context(run.held(new))
            except UserError as error:
                problem = str(error)
        (problem,) = broadcast_object_list([problem])
        if problem is not None:
            raise UserError(problem)
        yield


def _read_vectors(corpus: Corpus, settings: TrainSettings) -> Vectors | None:
    return None if settings.vectors is None else read_vectors(settings.vectors, corpus.vocabulary.names)


def _with_width(settings: TrainSettings, vectors: Vectors | None) -> TrainSettings:
    """The settings with the dimension of the word vectors decided, and paths that hold from any folder."""
    paths = {name: real_path(path) for name, path in settings.values().items() if isinstance(path, Path)}
    asked, width = settings.model_settings.embedding, settings.model_settings.word_width
    if vectors is not None:
        width = vectors.matrix.shape[1]
        if asked not in (None, width):
            raise UserError(
                f"the vectors of {settings.vectors} have {width} dimensions, but --embedding is {asked}\n"
                f"use --embedding {width}, or other vectors"
            )
    return settings.changed(**paths, embedding=width)
