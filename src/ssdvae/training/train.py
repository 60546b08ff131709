"""Start a run, or resume one."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list

from ssdvae.data.corpus import Corpus
from ssdvae.data.vectors import Vectors, read_vectors
from ssdvae.io.errors import UserError
from ssdvae.io.files import real_path
from ssdvae.io.progress import SILENT, Progress
from ssdvae.io.run import Run
from ssdvae.options import differences
from ssdvae.training.loop import new_accelerator, with_precision
from ssdvae.training.options import TrainOptions
from ssdvae.training.trainer import Trainer

log = logging.getLogger(__name__)


def train(corpus: Corpus, out: Path, options: TrainOptions, progress: Progress = SILENT) -> Run:
    """Train a model into a new run folder."""
    options = with_precision(options)
    accelerator = new_accelerator(options, out)
    run = Run(out)
    with _exclusive(run, accelerator, new=True):
        vectors = _read_vectors(corpus, options)
        options = _with_width(options, vectors)
        if vectors is not None and accelerator.is_main_process:
            known, words = vectors.coverage, len(vectors.found)
            log.info(f"{known:.1%} of the {words:,} words have a vector in {options.vectors}")
        trainer = Trainer(run, corpus, options, accelerator, progress, vectors)
        # All processes have checked the folder before one writes.
        accelerator.wait_for_everyone()
        state = trainer.begin()
        if accelerator.is_main_process:
            run.create(options, corpus.folder)
        return trainer.run_to_end(state)


def train_or_resume(corpus: Corpus, out: Path, options: TrainOptions, progress: Progress = SILENT) -> Run:
    """Resume a run if it exists, and start it otherwise."""
    run, accelerator = Run(out), new_accelerator(with_precision(options), out)
    # One process checks for all: a run that another one has just created does not count.
    (there,) = broadcast_object_list([run.config_path.is_file()])
    accelerator.wait_for_everyone()
    if not there:
        return train(corpus, out, options, progress)
    if found := departures(options, run.config()[1]):
        raise UserError(
            f"{out} was begun with other settings: {'; '.join(found)}\n"
            "ask for the same, choose another --out, or go on as it was begun: "
            f"ssdvae train --resume {out}"
        )
    return resume(out, corpus.folder, progress)


NEUTRAL_OPTIONS = ("preset", "save_minutes", "record_steps", "track")
"""Options that do not change what a run learns; a preset acts through the others."""


def departures(asked: TrainOptions, made: TrainOptions, longest: int | None = None) -> list[str]:
    """Return the options in which a run differs from the requested one, in words.

    ``longest`` is the number of events of the longest document, if it is known: no cut beyond it matters.
    """
    mine, theirs = asked.to_dict(), made.to_dict()
    if mine["embedding"] is None:
        # Decided when the run begins: that of the vectors, or the default.
        default = asked.model_options.word_width
        mine["embedding"] = theirs["embedding"] if asked.vectors else default
    if asked.precision == "auto":
        mine["precision"] = theirs["precision"]
    for values in (mine, theirs):
        if longest is not None and (values["events"] or 0) >= longest:
            values["events"] = None
    named = [{name: _name(value) for name, value in values.items()} for values in (theirs, mine)]
    found = differences(named, NEUTRAL_OPTIONS)
    return [f"{name} is {there} there and {here} here" for name, (there, here) in found.items()]


def _name(value: Any) -> str:
    """Return the name of a path: vectors in a folder that was moved are the same."""
    return Path(value).name if isinstance(value, str) else str(value)


def resume(folder: Path, corpus_folder: Path | None = None, progress: Progress = SILENT) -> Run:
    """Resume a run from its last checkpoint, as if it had never stopped; its corpus may have moved."""
    run = Run(folder)
    first_folder, options = run.config()
    accelerator = new_accelerator(options, folder)
    if (state := run.state()).finished:
        if accelerator.is_main_process:
            best = "no validation was finite" if state.best is None else f"best perplexity {state.best:.6g}"
            log.info(f"{folder} is finished: {best} at step {state.best_step}")
        return run
    with _exclusive(run, accelerator, new=False):
        corpus = Corpus(corpus_folder or first_folder)
        # A run that died before its first checkpoint starts again: its seed says how.
        begun = run.checkpoint_path.is_file()
        vectors = None if begun else _read_vectors(corpus, options)
        trainer = Trainer(run, corpus, options, accelerator, progress, vectors)
        state = trainer.restore() if begun else trainer.begin()
        trainer.say(f"resuming {folder} after step {state.step}")
        if accelerator.is_main_process:
            run.rewind(state)
        return trainer.run_to_end(state)


@contextlib.contextmanager
def _exclusive(run: Run, accelerator: Accelerator, new: bool) -> Iterator[None]:
    """Hold the lock of the run folder in the main process; all processes fail if it cannot."""
    with contextlib.ExitStack() as stack:
        problem: str | None = None
        if accelerator.is_main_process:
            try:
                stack.enter_context(run.lock(new))
            except UserError as error:
                problem = str(error)
        (problem,) = broadcast_object_list([problem])
        if problem is not None:
            raise UserError(problem)
        yield


def _read_vectors(corpus: Corpus, options: TrainOptions) -> Vectors | None:
    return None if options.vectors is None else read_vectors(options.vectors, corpus.vocabulary.names)


def _with_width(options: TrainOptions, vectors: Vectors | None) -> TrainOptions:
    """Return the options with the dimension of the word vectors set, and absolute paths."""
    paths = {name: real_path(path) for name, path in options.values().items() if isinstance(path, Path)}
    asked, width = options.model_options.embedding, options.model_options.word_width
    if vectors is not None:
        width = vectors.matrix.shape[1]
        if asked not in (None, width):
            raise UserError(
                f"the vectors of {options.vectors} have {width} dimensions, but --embedding is {asked}\n"
                f"use --embedding {width}, or other vectors"
            )
    return options.changed(**paths, embedding=width)
