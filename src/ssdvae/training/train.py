"""A training run from beginning to end: what happens around the steps."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.answers.naming import name_frames
from ssdvae.config import EvaluateSettings, TrainSettings
from ssdvae.config.training import models_with
from ssdvae.data.batches import mask_frames
from ssdvae.data.corpus import Corpus, Documents
from ssdvae.data.events import Event
from ssdvae.data.lemmas import lemma_numbers
from ssdvae.data.reading import Reading, left_out
from ssdvae.data.relations import Relation, read_relations
from ssdvae.data.vectors import Vectors, read_vectors
from ssdvae.errors import UserError
from ssdvae.evaluation.meaning import accuracy_by_head, commonest_observed, doubts
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.files import real_path
from ssdvae.models import MODELS, model_class
from ssdvae.progress import SILENT, Advance, Progress, no_advance
from ssdvae.runs import Run, State, judged_by
from ssdvae.training.loop import (
    Step,
    initialize_from_run,
    new_accelerator,
    new_model,
    new_optimizer,
    steps_per_epoch,
    train_steps,
    with_classes,
)
from ssdvae.training.signals import Interrupted, Signals
from ssdvae.training.size import refuse_if_too_large
from ssdvae.training.track import finish_trackers, log_to_trackers, start_trackers
from ssdvae.weights import check_finite

log = logging.getLogger(__name__)

STATUS = "epoch {epoch}  loss {loss:.2f}  {speed:,.0f} documents/s"


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
        training = _Training(run, corpus, settings, accelerator, progress, vectors)
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


HARMLESS = ("recipe", "preset", "save_minutes", "record_steps", "track")
"""Settings of a run that change nothing of what it learns: a recipe and a size do it by the others."""


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
        training = _Training(run, corpus, settings, accelerator, progress, vectors)
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


def _relations(settings: TrainSettings) -> Sequence[Relation]:
    """Those between frames, from the file that is given or from FrameNet."""
    given = settings.values().get("relations")
    if given is not None:
        return read_relations(given)
    from ssdvae.extraction.framenet import open_framenet, relations  # an extra

    try:
        return relations(open_framenet("framenet"))
    except UserError as error:
        raise UserError(
            "--prior framenet needs the relations between frames, and FrameNet is not installed\n"
            "give them by --relations FILE, or: pip install 'ssdvae[framenet]' and "
            "python -m nltk.downloader framenet_v17"
        ) from error


def _read_lexicon(path: Path, corpus: Corpus) -> tuple[Tensor, str]:
    """The heads and frames of the corpus that a lexicon puts together, by number; and how many, in words.

    A head is looked up by its lemma, where that is known, by itself, and as a regular form of English.
    """
    from ssdvae.extraction.english import regular_stems
    from ssdvae.extraction.lexicon import read_lexicon  # slow to import

    lexicon, documents = read_lexicon(path), corpus.split("train")
    heads = np.bincount(documents.tokens[documents.in_order(), 0], minlength=len(corpus.vocabulary))
    pairs, found = [], np.zeros(len(heads), dtype=bool)
    for word in np.flatnonzero(heads).tolist():
        form = corpus.vocabulary.name(word)
        lemma = corpus.lemmas.get(form)
        tried = (lemma,) if lemma else (form, *regular_stems(form))
        frames = next(filter(None, (lexicon.candidates(Event(form, lemma=name)) for name in tried)), {})
        known = [number for frame in frames if (number := corpus.frames.id(frame)) >= 0]
        found[word] = bool(known)
        pairs += [(word, frame) for frame in known]
    if not pairs:
        raise UserError(f"{path} has no head and frame that are both known to {corpus.folder}")
    return torch.tensor(pairs), (
        f"{path} has frames of {found.sum():,} of the {np.count_nonzero(heads):,} heads, which are those of "
        f"{heads[found].sum() / heads.sum():.1%} of the events"
    )


def _unnamed_frames(settings: TrainSettings, corpus: Corpus) -> int:
    """How many frames the model has to find by itself; refused if it has no others, and none of these."""
    unnamed: int = settings.values().get("unnamed_frames", 0)
    if len(corpus.frames) + unnamed == 0 and model_class(settings.model).infers_frames:
        free = [name for name, kind in MODELS.items() if not kind.infers_frames]
        finding = models_with("unnamed_frames")
        raise UserError(
            f"no event of {corpus.folder} has a frame, and {settings.model} has frames\n"
            f"let it find some by itself: --unnamed-frames 20, for example (--model {' or '.join(finding)}); "
            f"or train a model without frames: --model {', '.join(free)}"
        )
    return unnamed


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


class _Training:
    """One run being trained: every process has one, the main process writes."""

    def __init__(
        self,
        run: Run,
        corpus: Corpus,
        settings: TrainSettings,
        accelerator: Accelerator,
        progress: Progress,
        vectors: Vectors | None,
    ) -> None:
        self.run, self.corpus, self.settings = run, corpus, settings
        self.accelerator = accelerator
        self.progress = progress if accelerator.is_main_process else SILENT
        self.advance: Advance = no_advance
        whole, reading = corpus.split("train"), Reading.of(settings)
        self.documents: Documents = reading.parts(whole)
        # Cut as `evaluate` cuts them.
        self.valid: Documents = corpus.split("valid").first(reading.measured)
        longest = self.documents.longest
        words, frames, slots = len(corpus.vocabulary), len(corpus.frames), len(corpus.slots)
        frames += _unnamed_frames(settings, corpus)
        refuse_if_too_large(settings, words, frames, len(self.documents), longest, slots)
        self.model = new_model(settings, corpus.vocabulary, corpus.frames, vectors, corpus.slots)
        self.model.reading, self.model.columns = replace(reading, longest=longest), corpus.columns
        self._say_what_is_read(whole, reading)
        self.optimizer = new_optimizer(self.model, settings)
        self.prepared, self.prepared_optimizer = accelerator.prepare(self.model, self.optimizer)
        self.per_epoch = steps_per_epoch(self.documents, settings)
        self.last_step = settings.epochs * self.per_epoch
        self.validate_steps = settings.validate_steps or self.per_epoch
        self.warned = False

    def say(self, message: str) -> None:
        """Once, whatever the number of processes."""
        if self.accelerator.is_main_process:
            log.info(message)

    def _say_what_is_read(self, whole: Documents, reading: Reading) -> None:
        if (lost := left_out(whole, reading.events)) is not None:
            self.say(f"reads {lost}")
        if reading.window is not None and (more := len(self.documents) - len(whole)):
            self.say(
                f"reads documents of more than {reading.window} events as windows of as many, one every "
                f"{reading.stride}: {len(whole):,} documents, {more:,} windows more"
            )

    def begin(self) -> State:
        """A run before its first step, with what its model takes from the frames that it will observe."""
        if self.settings.init is not None:
            initialize_from_run(self.model, self.settings.init)
            return State(corpus=self.corpus.fingerprint)
        observed = self.first_observed
        # Each event once, however many windows it is in; and by itself, unless chains of them are looked at.
        events, chains = self.corpus.split("train").first(self.settings.events), self.model.needs_relations
        heads, known = (
            torch.from_numpy(found.astype(np.int64))
            for values, padding in ((events.tokens[..., 0], 0), (observed, -1))
            for found in [events.padded(values, padding) if chains else values[events.in_order()][:, None]]
        )
        relations = _relations(self.settings) if chains else []
        lexicon = None
        if (path := self.settings.values().get("lexicon")) is not None:
            lexicon, found = _read_lexicon(path, self.corpus)
            self.say(found)
        lemmas = torch.from_numpy(lemma_numbers(self.corpus.vocabulary.names, self.corpus.lemmas))
        self.model.initialize_from_data(heads, known, relations, lexicon, lemmas)
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
        start_trackers(self.accelerator, self.run.folder, self.settings, state.step)
        try:
            return self._run_to_end(state)
        finally:
            finish_trackers(self.accelerator)

    def _run_to_end(self, state: State) -> Run:
        count, device = self.accelerator.num_processes, self.accelerator.device.type
        self.say(f"training in {count} process{'es' if count > 1 else ''} on {device}")
        if self.model.infers_frames:
            self.say(
                "frames: share of the known ones that are inferred (by head: what the commonest known frame "
                "of the head has);\ninformation: nats that a frame says of its event, 0 if nothing"
            )
        clock = time.monotonic() - state.seconds
        saved = time.monotonic()
        steps = train_steps(
            self.prepared,
            self.prepared_optimizer,
            self.accelerator,
            self.documents,
            self.settings,
            state.step,
            self.first_observed,
        )
        task = self.progress.task("step", self.last_step, status=STATUS, done=state.step)
        with Signals() as signals, task as self.advance:
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
                    raise Interrupted(f"stopped after step {state.step}\n{go_on}", received)
        self.say(f"the run is in {self.run.folder}; measure it with: ssdvae evaluate {self.run.folder}")
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
        self.advance(1, epoch=epoch, loss=step.sums["loss"] / step.documents, speed=speed)

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
            bounded=self.model.trained_for_bound,
            process=self.accelerator.process_index,
            processes=self.accelerator.num_processes,
            reduce=lambda tally: self.accelerator.reduce(tally.to(self.accelerator.device), "sum").cpu(),
        )
        if (name := judged_by(scores)) is None:
            raise UserError("no event of the validation split has a known frame to judge by")
        figure = scores[name]
        self._warn_if_useless(name, figure)
        better = state.best is None or figure < state.best or self.settings.model_settings.keeps_last
        best = math.isfinite(figure) and better
        if best:
            state.best, state.best_step, state.stale = figure, state.step, 0
        else:
            state.stale += 1
        state.finished = state.stale >= self.settings.patience or state.step == self.last_step
        measured = {name: value for name, value in scores.items() if value is not None}
        if self.by_head is not None:
            measured["frame_commonest"] = self.by_head
        record = self._record(state, {"split": "valid", **measured})
        self.say(_validation_line(record, means["loss"], best))
        if state.finished and self.model.infers_frames and self.accelerator.is_main_process:
            for doubt in doubts(record, len(self.corpus.frames)):
                log.warning(doubt)
        # All of them look, so that all of them stop.
        check_finite(self.model.state_dict(), f"the run cannot go on after step {state.step}")
        if best and self.accelerator.is_main_process:
            if self.settings.values().get("unnamed_frames"):
                name_frames(self.model, self.documents, len(self.corpus.frames))
            self.model.save(self.run.folder, record)
        if state.stale >= self.settings.patience:
            self.say(f"no improvement in {state.stale} validations: stopping")

    @cached_property
    def first_observed(self) -> NDArray[np.int32]:
        """The frames that are observed and, while unnamed ones start, the classes of the other events."""
        observed = mask_frames(self.documents, self.settings.observe, self.settings.seed)
        return with_classes(observed, self.documents, self.model, self.settings)

    @cached_property
    def by_head(self) -> float | None:
        """The share of known frames that the commonest observed frame of each head gets, for comparison."""
        if not self.model.infers_frames:
            return None
        table = commonest_observed(self.documents, self.settings, len(self.corpus.vocabulary))
        return accuracy_by_head(table, self.valid)

    def _warn_if_useless(self, name: str, figure: float) -> None:
        """Say once if the model does worse than one that knows nothing."""
        frames = name == "frame_ppl"
        size = len(self.corpus.frames if frames else self.corpus.vocabulary)
        if figure <= size or self.warned or not self.accelerator.is_main_process:
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
            self.run.record(state, record)
        log_to_trackers(self.accelerator, values, state.step)
        return record

    def _save(self, state: State) -> None:
        if self.accelerator.is_main_process:
            if self.accelerator.scaler is not None:
                state.scaler = self.accelerator.scaler.state_dict()
            self.run.save(state, self.model, self.optimizer)


def _validation_line(record: dict[str, Any], train_loss: float, best: bool) -> str:
    """What a person reads of a validation; the star marks the best so far."""
    perplexity, accuracy = record.get("ppl"), record.get("frame_accuracy")
    figures = [] if perplexity is None else [f"ppl {_short(perplexity)}"]
    figures += [f"bound {_short(record['ppl_bound'])}"] if "ppl_bound" in record else []
    if accuracy is not None:
        by_head = record.get("frame_commonest")
        figures.append(f"frames {accuracy:.1%}" + ("" if by_head is None else f" (by head {by_head:.1%})"))
    figures += [f"information {record['latent_information']:.2f}"] if "latent_information" in record else []
    return (
        f"epoch {record['epoch']:g}  step {record['step']}  train loss {train_loss:.2f}"
        f"  valid {'  '.join(figures)}  {record['seconds']:.0f} s{'  *' if best else ''}"
    )


def _short(figure: float) -> str:
    """With two digits after the point, unless it has more before it than anybody reads."""
    return f"{figure:.2f}" if figure < 1e7 else f"{figure:.3g}"
