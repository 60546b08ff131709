"""The trainer: validation, checkpoints and records around the steps of a run."""

from __future__ import annotations

import logging
import math
import signal
import threading
import time
from functools import cached_property
from types import FrameType, TracebackType
from typing import Any, Self

import torch
from accelerate import Accelerator

from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.documents import ContextWindow, describe_cut
from ssdvae.data.vectors import Vectors
from ssdvae.evaluation.fitting import fit_reader, fitting_half, without_fitted_labels
from ssdvae.evaluation.frames import warnings_for
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.evaluation.task import mark_of
from ssdvae.inference.posterior import name_frames
from ssdvae.io.errors import UserError
from ssdvae.io.progress import SILENT, Advance, Progress, no_advance
from ssdvae.io.run import Run, State, selection_metric
from ssdvae.io.weights import check_finite
from ssdvae.models.base import as_frame_model
from ssdvae.models.exact import ExactModel
from ssdvae.models.precision import explain_precision
from ssdvae.training.loop import (
    Step,
    finish_trackers,
    initialize_from_run,
    log_to_trackers,
    new_model,
    new_optimizer,
    refuse_if_too_large,
    start_trackers,
    steps_per_epoch,
    train_steps,
)
from ssdvae.training.options import TrainOptions
from ssdvae.training.supervision import Supervision, unnamed_frames

log = logging.getLogger(__name__)

STATUS = "epoch {epoch}  loss {loss:.2f}  {speed:,.0f} documents/s"


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


class Trainer:
    """Trains one run. Every process has a trainer; the main process writes."""

    def __init__(
        self,
        run: Run,
        corpus: Corpus,
        options: TrainOptions,
        accelerator: Accelerator,
        progress: Progress,
        vectors: Vectors | None,
    ) -> None:
        self.run, self.corpus, self.options = run, corpus, options
        self.accelerator = accelerator
        self.progress = progress if accelerator.is_main_process else SILENT
        self.advance: Advance = no_advance
        whole, reading = corpus.split("train"), ContextWindow.of(options)
        self.documents: Documents = reading.parts(whole)
        # Cut as `evaluate` cuts them.
        valid = corpus.split("valid").first(reading.measured)
        longest = self.documents.longest
        words, frames, slots = len(corpus.vocabulary), len(corpus.frames), len(corpus.slots)
        frames += unnamed_frames(options, corpus)
        refuse_if_too_large(options, words, frames, len(self.documents), longest, slots)
        vocabulary = whole.count_slots(corpus.vocabulary)
        cases = {"ends": corpus.ends, "times": corpus.times}
        self.model = new_model(options, vocabulary, corpus.frames, vectors, corpus.slots, **cases)
        self.model.context_window = reading.model_copy(update={"longest": longest})
        self.model.columns = corpus.columns
        self.fitting = fitting_half(valid)
        self.valid: Documents = without_fitted_labels(valid, self.model, "valid")
        self._log_context(whole, reading)
        self.supervision = Supervision(corpus, self.documents, options, self.model, self.say)
        self.optimizer = new_optimizer(self.model, options)
        self.prepared, self.prepared_optimizer = accelerator.prepare(self.model, self.optimizer)
        self.per_epoch = steps_per_epoch(self.documents, options)
        self.last_step = options.epochs * self.per_epoch
        self.validate_steps = options.validate_steps or self.per_epoch
        self.warned = False

    def say(self, message: str) -> None:
        """Log a message once, whatever the number of processes."""
        if self.accelerator.is_main_process:
            log.info(message)

    def _log_context(self, whole: Documents, reading: ContextWindow) -> None:
        if (lost := describe_cut(whole, reading.events)) is not None:
            self.say(f"reads {lost}")
        if reading.window is not None and (more := len(self.documents) - len(whole)):
            self.say(
                f"reads documents of more than {reading.window} events as windows of as many, one every "
                f"{reading.stride}: {len(whole):,} documents, {more:,} windows more"
            )

    def begin(self) -> State:
        """Initialize the model and return the state before the first step."""
        if self.options.init is not None:
            initialize_from_run(self.model, self.options.init)
        else:
            self.supervision.initialize_model()
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
        start_trackers(self.accelerator, self.run.folder, self.options, state.step)
        try:
            return self._run_to_end(state)
        finally:
            finish_trackers(self.accelerator)

    def _run_to_end(self, state: State) -> Run:
        count, device = self.accelerator.num_processes, self.accelerator.device
        hidden = self.options.model_options.hidden
        self.say(
            f"training in {count} process{'es' if count > 1 else ''} on {device.type}, products in "
            f"{explain_precision(self.options.precision, device, hidden)}; validation in fp32"
        )
        if as_frame_model(self.model) is not None:
            self.say(
                "frames: accuracy (majority baseline: the most frequent known frame of the head)\n"
                "information: mutual information of event and frame, in nats"
            )
        clock = time.monotonic() - state.seconds
        saved = time.monotonic()
        steps = train_steps(
            self.prepared,
            self.prepared_optimizer,
            self.accelerator,
            self.documents,
            self.options,
            state.step,
            self.supervision.observed,
            self.supervision.first_observed,
        )
        task = self.progress.task("step", self.last_step, status=STATUS, done=state.step)
        with Signals() as signals, task as self.advance:
            for step in steps:
                if not math.isfinite(step.sums["loss"]):
                    raise UserError(
                        f"the loss of step {step.step} is not finite; the last checkpoint is from before it\n"
                        "start again with a smaller --learning-rate, or with --precision fp32"
                    )
                state.step = step.step
                state.seconds = time.monotonic() - clock
                self._count(state, step)
                validated = step.step % self.validate_steps == 0 or step.step == self.last_step
                if validated:
                    self._validate(state)
                elif step.step % self.options.record_steps == 0:
                    self._record_training(state)
                due = time.monotonic() - saved >= 60 * self.options.save_minutes
                received, due = self._agree(signals.received, due)
                if validated or due or received:
                    self._save(state)
                    saved = time.monotonic()
                if state.finished:
                    break
                if received:
                    command = f"ssdvae train --resume {self.run.folder}"
                    raise Interrupted(f"stopped after step {state.step}\ngo on with: {command}", received)
        self.say(f"the run is in {self.run.folder}; measure it with: ssdvae evaluate {self.run.folder}")
        return self.run

    def _agree(self, received: int, due: bool) -> tuple[int, bool]:
        """Return a signal that any process received, and whether any is due to save."""
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
        self.advance(1, epoch=epoch, loss=step.sums["loss"] / step.documents, speed=speed)

    def _record_training(self, state: State) -> dict[str, float]:
        """Record the means per document since the last record."""
        means = {name: value / state.summed for name, value in state.sums.items()}
        self._record(state, {"split": "train", **means})
        state.sums, state.summed = {}, 0
        return means

    def _validate(self, state: State) -> None:
        means = self._record_training(state)
        batch = 2 * self.options.batch
        shared: dict[str, Any] = {
            "process": self.accelerator.process_index,
            "processes": self.accelerator.num_processes,
            "reduce": lambda sums: self.accelerator.reduce(sums.to(self.accelerator.device), "sum").cpu(),
        }
        if isinstance(self.model, ExactModel) and len(self.model.frames):
            fit_reader(self.model, self.fitting, batch, **shared)
        options = EvaluateOptions(eval_batch=batch, eval_seed=self.options.seed)
        scores = evaluate(self.model, self.valid, options, bounded=False, **shared)
        if (name := selection_metric(scores)) is None:
            raise UserError("no event of the validation split has a known frame to judge by")
        figure = scores[name]
        self._warn_if_useless(name, figure)
        better = state.best is None or figure < state.best
        best = math.isfinite(figure) and better
        if best:
            state.best, state.best_step, state.stale = figure, state.step, 0
        else:
            state.stale += 1
        state.finished = state.stale >= self.options.patience or state.step == self.last_step
        measured = {name: value for name, value in scores.items() if value is not None}
        if self.majority_accuracy is not None:
            measured["frame_majority"] = self.majority_accuracy
        record = self._record(state, {"split": "valid", **measured})
        self.say(_validation_line(record, means["loss"], best))
        if state.finished and as_frame_model(self.model) is not None and self.accelerator.is_main_process:
            for warning in warnings_for(record, len(self.corpus.frames)):
                log.warning(warning)
        # Every process checks, so that all of them stop.
        check_finite(self.model.state_dict(), f"the run cannot go on after step {state.step}")
        if best and self.accelerator.is_main_process:
            if self.options.values().get("unnamed_frames"):
                name_frames(self.model, self.documents, len(self.corpus.frames))
            self.model.save(self.run.folder, record)
        if state.stale >= self.options.patience:
            self.say(f"no improvement in {state.stale} validations: stopping")

    @cached_property
    def majority_accuracy(self) -> float | None:
        return self.supervision.majority_accuracy(self.valid)

    def _warn_if_useless(self, name: str, figure: float) -> None:
        """Warn once if the model does worse than a uniform guess; ``case_ppl`` has densities."""
        frames = name == "frame_ppl"
        size = len(self.corpus.frames if frames else self.corpus.vocabulary)
        if name == "case_ppl" or figure <= size or self.warned or not self.accelerator.is_main_process:
            return
        self.warned = True
        log.warning(
            f"{name} {figure:.4g} on the validation split is worse than a guess among all {size:,} "
            f"{'frames' if frames else 'words'}\nif it stays so, start again with a smaller --learning-rate"
        )

    def _record(self, state: State, values: dict[str, Any]) -> dict[str, Any]:
        epoch = round(state.step / self.per_epoch, 4)
        record = {"step": state.step, "epoch": epoch, "seconds": round(state.seconds, 3), **values}
        if self.accelerator.is_main_process:
            self.run.log_metrics(state, record)
        log_to_trackers(self.accelerator, values, state.step)
        return record

    def _save(self, state: State) -> None:
        if self.accelerator.is_main_process:
            if self.accelerator.scaler is not None:
                state.scaler = self.accelerator.scaler.state_dict()
            self.run.save(state, self.model, self.optimizer)


def _validation_line(record: dict[str, Any], train_loss: float, best: bool) -> str:
    """Return the line that is logged of a validation; the star marks the best so far."""
    perplexity, accuracy = record.get("ppl"), record.get("frame_accuracy")
    figures = [] if perplexity is None else [f"ppl {_short(perplexity)}{mark_of('ppl', record)}"]
    figures += [f"bound {_short(record['ppl_bound'])}"] if "ppl_bound" in record else []
    if accuracy is not None:
        majority = record.get("frame_majority")
        beside = "" if majority is None else f" (majority baseline {majority:.1%})"
        figures.append(f"frames {accuracy:.1%}{beside}")
    figures += [f"information {record['latent_information']:.2f}"] if "latent_information" in record else []
    return (
        f"epoch {record['epoch']:g}  step {record['step']}  train loss {train_loss:.2f}"
        f"  valid {'  '.join(figures)}  {record['seconds']:.0f} s{'  *' if best else ''}"
    )


def _short(figure: float) -> str:
    """Return a figure with two decimals, or in scientific notation if it is very large."""
    return f"{figure:.2f}" if figure < 1e7 else f"{figure:.3g}"
