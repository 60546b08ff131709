"""A training run from beginning to end: what happens around the steps."""

from __future__ import annotations

import dataclasses
import math
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, Self

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from ssdvae.config import EvaluateSettings, TrainSettings
from ssdvae.console import TrainingDisplay
from ssdvae.data.batches import hide
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.relations import Relation, read_relations
from ssdvae.data.vectors import Vectors, read_vectors
from ssdvae.errors import UserError
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.training.loop import (
    Step,
    new_accelerator,
    new_model,
    new_optimizer,
    start_at,
    steps_per_epoch,
    train_steps,
)
from ssdvae.training.runs import Run, State


class Interrupted(UserError):
    """A signal asked the run to stop; it was saved first."""

    def __init__(self, message: str, signal_number: int) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


class Signals:
    """Remembers Ctrl-C and SIGTERM, to be acted on between two steps; a second Ctrl-C acts at once."""

    def __enter__(self) -> Self:
        self.received = 0
        # Python allows handlers in the main thread only; elsewhere the caller has its own way to stop.
        self.numbers = (
            (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
        )
        self.previous = [signal.signal(number, self._receive) for number in self.numbers]
        return self

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            raise KeyboardInterrupt
        self.received = number

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in zip(self.numbers, self.previous, strict=True):
            signal.signal(number, handler)


def train(corpus: Corpus, out: Path, settings: TrainSettings) -> Run:
    """Train a model into a new run folder."""
    accelerator = new_accelerator(settings)
    display = TrainingDisplay(accelerator.is_main_process)
    run = Run(out)
    run.refuse_if_there()
    vectors = _read_vectors(corpus, settings)
    settings = _with_width(settings, vectors)
    if vectors is not None:
        known, words = vectors.coverage, len(vectors.found)
        display.say(f"{known:.1%} of the {words:,} words have a vector in {settings.vectors}")
    training = _Training(run, corpus, settings, accelerator, display, vectors)
    # All have looked before one writes.
    accelerator.wait_for_everyone()
    state = training.begin()
    if accelerator.is_main_process:
        run.create(settings, corpus.folder)
    return training.run_to_end(state)


def resume(folder: Path, corpus_folder: Path | None = None) -> Run:
    """Go on with a run from its last checkpoint, as if it had never stopped; its corpus may have moved."""
    run = Run(folder)
    first_folder, settings = run.config()
    accelerator = new_accelerator(settings)
    display = TrainingDisplay(accelerator.is_main_process)
    corpus = Corpus(corpus_folder or first_folder)
    # A run that died before its first checkpoint starts again: its seed says how.
    begun = run.checkpoint_path.is_file()
    vectors = None if begun else _read_vectors(corpus, settings)
    training = _Training(run, corpus, settings, accelerator, display, vectors)
    state = training.restore() if begun else training.begin()
    if state.finished:
        display.say(f"{folder} is finished: best perplexity {state.best:.2f} at step {state.best_step}")
        return run
    display.say(f"resuming {folder} after step {state.step}")
    if accelerator.is_main_process:
        run.rewind(state)
    return training.run_to_end(state)


def _read_vectors(corpus: Corpus, settings: TrainSettings) -> Vectors | None:
    return None if settings.vectors is None else read_vectors(settings.vectors, corpus.vocabulary.names)


def _relations(settings: TrainSettings) -> Sequence[Relation]:
    """Those between frames, where the prior wants them."""
    if settings.prior != "framenet":
        return []
    if settings.relations is not None:
        return read_relations(settings.relations)
    from ssdvae.extraction.framenet import open_framenet, relations  # an extra

    try:
        return relations(open_framenet("framenet"))
    except UserError as error:
        raise UserError(
            "--prior framenet needs the relations between frames, and FrameNet is not installed\n"
            "give them by --relations FILE, or: pip install 'ssdvae[framenet]' and "
            "python -m nltk.downloader framenet_v17"
        ) from error


def _lexicon(settings: TrainSettings, corpus: Corpus) -> Tensor | None:
    """The words and frames of the corpus that a lexicon puts together, by their numbers."""
    if settings.lexicon is None:
        return None
    from ssdvae.extraction.lexicon import read_lexicon  # slow to import

    pairs = [
        (corpus.vocabulary.word_id(verb), corpus.frames.id(frame))
        for verb, frames in read_lexicon(settings.lexicon).frames.items()
        for frame in frames
        if verb in corpus.vocabulary
    ]
    known = [(word, frame) for word, frame in pairs if frame >= 0]
    if not known:
        raise UserError(f"{settings.lexicon} has no verb and frame that are both known to {corpus.folder}")
    return torch.tensor(known)


def _with_width(settings: TrainSettings, vectors: Vectors | None) -> TrainSettings:
    """The settings with the width of the word vectors decided, and a path that holds from any folder."""
    for name in ("relations", "lexicon", "init"):
        path = getattr(settings, name)
        if path is not None:
            settings = dataclasses.replace(settings, **{name: path.resolve()})
    if vectors is None:
        return dataclasses.replace(settings, embedding=settings.word_width)
    width = vectors.matrix.shape[1]
    if settings.embedding not in (None, width):
        raise UserError(
            f"the vectors of {settings.vectors} are {width} wide, but --embedding is {settings.embedding}\n"
            f"say --embedding {width}, or name other vectors"
        )
    assert settings.vectors is not None
    return dataclasses.replace(settings, embedding=width, vectors=settings.vectors.resolve())


class _Training:
    """One run being trained: every process has one, the main process writes."""

    def __init__(
        self,
        run: Run,
        corpus: Corpus,
        settings: TrainSettings,
        accelerator: Accelerator,
        display: TrainingDisplay,
        vectors: Vectors | None,
    ) -> None:
        self.run, self.corpus, self.settings = run, corpus, settings
        self.accelerator, self.display = accelerator, display
        self.documents: Documents = corpus.split("train")
        self.valid: Documents = corpus.split("valid")
        self.model = new_model(settings, corpus.vocabulary, corpus.frames, vectors)
        self.optimizer = new_optimizer(self.model, settings)
        self.prepared, self.prepared_optimizer = accelerator.prepare(self.model, self.optimizer)
        self.per_epoch = steps_per_epoch(self.documents, settings)
        self.last_step = settings.epochs * self.per_epoch
        self.validate_steps = settings.validate_steps or self.per_epoch
        self.log: Any = None

    def begin(self) -> State:
        """A run before its first step, with what its model takes from the frames that it will observe."""
        if self.settings.init is not None:
            start_at(self.model, self.settings.init)
            return State(corpus=self.corpus.fingerprint)
        observed = hide(self.documents, self.settings.observe, self.settings.seed)
        heads = torch.from_numpy(self.documents.tokens[..., 0].astype(np.int64))
        self.model.start_from(
            heads,
            torch.from_numpy(observed).long(),
            _relations(self.settings),
            _lexicon(self.settings, self.corpus),
        )
        return State(corpus=self.corpus.fingerprint)

    def restore(self) -> State:
        state = self.run.restore(self.model, self.optimizer)
        if state.corpus != self.corpus.fingerprint:
            raise UserError(
                f"the corpus {self.corpus.folder} is not the one that {self.run.folder} was trained on\n"
                "put the old one back, or start a new run"
            )
        if self.accelerator.scaler is not None and state.scaler:
            self.accelerator.scaler.load_state_dict(state.scaler)
        return state

    def run_to_end(self, state: State) -> Run:
        if self.settings.tensorboard and self.accelerator.is_main_process:
            self.log = self._tensorboard(state)
        clock = time.monotonic() - state.seconds
        saved = time.monotonic()
        steps = train_steps(
            self.prepared,
            self.prepared_optimizer,
            self.accelerator,
            self.documents,
            self.settings,
            state.step,
        )
        with Signals() as signals, self.display:
            for step in steps:
                if not math.isfinite(step.sums["loss"]):
                    raise UserError(
                        f"the loss of step {step.step} is not finite; the last checkpoint is from before it\n"
                        "start again with a smaller --learning-rate, or without --precision"
                    )
                state.step = step.step
                state.seconds = time.monotonic() - clock
                self._count(state, step)
                validated = step.step % self.validate_steps == 0 or step.step == self.last_step
                if validated:
                    self._validate(state)
                elif step.step % self.settings.record_steps == 0:
                    self._record_training(state)
                due = time.monotonic() - saved >= 60 * self.settings.save_minutes
                received, due = self._agree(signals.received, due)
                if validated or due or received:
                    self._save(state)
                    saved = time.monotonic()
                if state.finished:
                    break
                if received:
                    go_on = f"go on with: ssdvae train --resume {self.run.folder}"
                    if self.log is not None:
                        self.log.flush()
                    raise Interrupted(f"stopped after step {state.step}\n{go_on}", received)
        if self.log is not None:
            self.log.close()
        self.display.say(
            f"the run is in {self.run.folder}; measure it with: ssdvae evaluate {self.run.folder}"
        )
        return self.run

    def _agree(self, received: int, due: bool) -> tuple[int, bool]:
        """What any process was told, all of them know."""
        if self.accelerator.num_processes == 1:
            return received, due
        votes = self.accelerator.gather(torch.tensor([[received, int(due)]], device=self.accelerator.device))
        return int(votes[:, 0].max()), bool(votes[:, 1].any())

    def _count(self, state: State, step: Step) -> None:
        for name, value in step.sums.items():
            state.sums[name] = state.sums.get(name, 0.0) + value
        state.summed += step.documents
        speed = state.step * len(self.documents) / self.per_epoch / max(state.seconds, 1e-9)
        epoch = (state.step - 1) // self.per_epoch + 1
        self.display.step(state.step, self.last_step, epoch, step.sums["loss"] / step.documents, speed)

    def _record_training(self, state: State) -> dict[str, float]:
        """Means per document since the last record."""
        means = {name: value / state.summed for name, value in state.sums.items()}
        self._record(state, {"split": "train", **means})
        state.sums, state.summed = {}, 0
        return means

    def _validate(self, state: State) -> None:
        means = self._record_training(state)
        scores = evaluate(
            self.model,
            self.valid,
            EvaluateSettings(
                eval_batch=2 * self.settings.batch, eval_seed=self.settings.seed, bound_samples=1
            ),
            bounded=self.settings.objective == "bound",
            process=self.accelerator.process_index,
            processes=self.accelerator.num_processes,
            reduce=lambda tally: self.accelerator.reduce(tally.to(self.accelerator.device), "sum").cpu(),
        )
        # By what it was trained for: the bound, the words, or, if it says nothing of these, the frames.
        judged = (scores.get(name) for name in ("ppl_bound", "ppl", "frame_ppl"))
        figure = next((score for score in judged if score is not None), None)
        if figure is None:
            raise UserError("no event of the validation split has a known frame to judge by")
        # Contrast is worth some perplexity, and is not to be undone for it.
        best = state.best is None or figure < state.best or self.settings.contrast > 0
        if best:
            state.best, state.best_step, state.stale = figure, state.step, 0
        else:
            state.stale += 1
        state.finished = state.stale >= self.settings.patience or state.step == self.last_step
        measured = {name: value for name, value in scores.items() if value is not None}
        record = self._record(state, {"split": "valid", **measured})
        self.display.validation({**record, "train_loss": means["loss"]}, best)
        if best and self.accelerator.is_main_process:
            self.run.save_model(self.model, record)
        if state.stale >= self.settings.patience:
            self.display.say(f"no improvement in {state.stale} validations: stopping")

    def _record(self, state: State, values: dict[str, Any]) -> dict[str, Any]:
        epoch = round(state.step / self.per_epoch, 4)
        record = {"step": state.step, "epoch": epoch, "seconds": round(state.seconds, 3), **values}
        if self.accelerator.is_main_process:
            self.run.record(state, record)
            if self.log is not None:
                for name, value in values.items():
                    if isinstance(value, int | float):
                        self.log.add_scalar(f"{values['split']}/{name}", value, state.step)
        return record

    def _save(self, state: State) -> None:
        if self.accelerator.is_main_process:
            if self.accelerator.scaler is not None:
                state.scaler = self.accelerator.scaler.state_dict()
            self.run.save(state, self.model, self.optimizer)

    def _tensorboard(self, state: State) -> Any:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise UserError("--tensorboard needs an extra: pip install 'ssdvae[tensorboard]'") from error
        # What was written after the checkpoint is about to happen again.
        return SummaryWriter(self.run.folder / "tensorboard", purge_step=state.step + 1)
