"""The training loop. It yields after every step; the caller logs, validates, saves and stops."""

from __future__ import annotations

import atexit
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import get_available_trackers
from accelerate.utils import LoggerType
from jaxtyping import Bool
from numpy.typing import NDArray
from torch import Tensor, nn

from ssdvae.data.batches import Batch, Noise, collate, epoch_batches, generator, process_slice
from ssdvae.data.corpus import Documents
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.frame_counts import unnamed_classes
from ssdvae.data.vectors import Vectors
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.io.errors import UserError
from ssdvae.io.files import real_path
from ssdvae.io.limits import bound_kernels, format_bytes, keep_freed_memory, memory_limit
from ssdvae.models.base import LanguageModel, Model, fastest_device
from ssdvae.models.cases import CaseModel
from ssdvae.models.precision import choose_precision
from ssdvae.models.registry import model_class
from ssdvae.options import names_of_text
from ssdvae.training.options import TrainOptions

FLOAT_BYTES = 4
PARAMETER_COPIES = 4
"""Each parameter has a value, a gradient, and the two means of Adam."""

PROJECT = "ssdvae"
"""The project of all runs, in trackers that have projects."""

TRACKING = "tracking"
"""The folder in the run folder for trackers that write files."""


AnyTrainOptions = TypeVar("AnyTrainOptions", bound=TrainOptions)


@dataclass(frozen=True)
class Step:
    """One training step."""

    step: int  # counted from 1
    documents: int  # in the batch, over all processes
    sums: dict[str, float]  # of the loss and its terms over these documents


def with_precision(options: AnyTrainOptions) -> AnyTrainOptions:
    """Return the options with the precision that ``auto`` stands for on this machine."""
    if options.precision != "auto":
        return options
    chosen = choose_precision(fastest_device(), options.model_options.hidden)
    return options.changed(precision=chosen)


def new_accelerator(options: TrainOptions, folder: Path | None = None) -> Accelerator:
    """Return the devices and processes of a run, whose precision is decided."""
    keep_freed_memory()
    bound_kernels()
    # Accelerate remembers the precision of the first run in this interpreter and refuses any other.
    AcceleratorState._reset_state()
    # Several processes without a GPU find each other only when told that the CPU is meant.
    cpu = fastest_device().type == "cpu"
    tracking = {"log_with": chosen_trackers(options) or None, "project_dir": folder and folder / TRACKING}
    mixed = "no" if options.precision == "fp32" else options.precision
    return Accelerator(mixed_precision=mixed, cpu=cpu, **tracking)


@atexit.register
def _leave_processes() -> None:
    """Leave the group of processes, if there is one, before the interpreter ends.

    Otherwise Gloo's threads now and then abort a process that has trained well, and torchrun takes that for a
    failure. NCCL ends well by itself, and to leave it after an error would be to wait for the others.
    """
    group = torch.distributed
    if group.is_available() and group.is_initialized() and group.get_backend() == "gloo":
        group.destroy_process_group()


def new_model(
    options: TrainOptions,
    vocabulary: Vocabulary,
    frames: Inventory,
    vectors: Vectors | None,
    slots: Slots = SLOTS,
    ends: bool = False,
    times: bool = False,
) -> Model:
    """Return a model with weights drawn by the seed, and the pretrained vectors of words that have one."""
    with torch.random.fork_rng():
        # Layers draw their initial weights from torch's global generator, which is used nowhere else.
        torch.manual_seed(options.seed)
        every = frames.with_unnamed(options.values().get("unnamed_frames", 0))
        model = model_class(options.model)(options.model_options, vocabulary, every, slots)
        model.prepare_training()
        if isinstance(model, CaseModel):
            model.learn_cases(ends, times)
    if vectors is not None:
        weight = model.word_reader.words.weight.data
        weight[torch.from_numpy(vectors.found)] = torch.from_numpy(vectors.matrix[vectors.found])
    return model


def with_classes(
    observed: NDArray[np.int32], documents: Documents, model: Model, options: TrainOptions
) -> NDArray[np.int32]:
    """Return the observed frames and, with unnamed frames, the classes of the other events by counts."""
    unnamed = options.values().get("unnamed_frames", 0)
    if not unnamed:
        return observed
    named = len(model.frames) - unnamed
    found = unnamed_classes(documents, observed, len(model.vocabulary), named, unnamed, options.seed)
    return np.where(observed >= 0, observed, found).astype(np.int32)


def initialize_from_run(model: Model, folder: Path) -> None:
    """Load the weights of another model that has the same words, frames and shape."""
    other = Model.read(folder)
    for kind, mine, theirs in (
        ("words", model.vocabulary.names, other.vocabulary.names),
        ("frames", _named(model), _named(other)),
    ):
        if mine != theirs:
            raise UserError(
                f"the {kind} of {folder} are not those of the corpus: training cannot begin with its weights"
            )
    try:
        model.start_from(other.state_dict())
    except RuntimeError as error:
        raise UserError(
            f"the weights of {folder} do not fit this model\n"
            "give the options that it was trained with: they are in its config.yaml"
        ) from error


def _named(model: Model) -> tuple[str, ...]:
    """Return the frames of the corpus, without unnamed ones."""
    return model.frames.names[: len(model.frames) - model.config.values().get("unnamed_frames", 0)]


def new_optimizer(model: nn.Module, options: TrainOptions) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=options.learning_rate, fused=True)


def steps_per_epoch(documents: Documents, options: TrainOptions) -> int:
    return -(-len(documents) // options.batch)


def train_steps(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    accelerator: Accelerator,
    documents: Documents,
    options: TrainOptions,
    start: int,
    observed: NDArray[np.int32],
    first: NDArray[np.int32] | None = None,
) -> Iterator[Step]:
    """Take the steps ``start + 1``, ``start + 2``, … to the end of the last epoch.

    ``model`` and ``optimizer`` are prepared by the accelerator. A step depends on the weights, the optimizer
    and its number alone, so that a resumed run is the same run. ``observed`` has the observed frames of all
    events; ``first`` those while unnamed frames start, equal to ``observed`` where there are none.
    """
    process, processes = accelerator.process_index, accelerator.num_processes
    per_epoch = steps_per_epoch(documents, options)
    if len(documents) // per_epoch < processes:
        raise UserError(
            f"{len(documents)} documents in batches of {options.batch} are too few for {processes} processes"
        )
    model.train()
    inner: Model = accelerator.unwrap_model(model)
    rare = rare_words(inner.vocabulary)
    groups, total = inner.clipping_groups(), options.epochs * per_epoch
    start_steps = 0.0 if first is None else options.values().get("unnamed_start", 0.0) * total
    for step in range(start, total):
        epoch, index = divmod(step, per_epoch)
        if index == 0 or step == start:
            batches = epoch_batches(len(documents), options.batch, options.seed, epoch)
        rows = batches[index]
        part = process_slice(rows, process, processes)
        whole = collate(documents, rows, first if step < start_steps else observed)
        if rare is not None:
            whole = hide_words(whole, rare, inner.vocabulary.unknown, generator(options.seed, "hidden", step))
        batch = whole.part(part).to(accelerator.device)
        noise = Noise(generator(options.seed, "noise", step), len(rows), part)
        loss = model(batch, noise)
        # Processes average their gradients, so scale to the mean over the whole batch.
        accelerator.backward(loss.per_document.sum() * (processes / len(rows)))
        # Not `accelerator.clip_grad_norm_`: in fp16 it can be called once in a step only.
        accelerator.unscale_gradients()
        for parameters in groups:
            nn.utils.clip_grad_norm_(parameters, options.clip)
        if options.decay:
            for group in optimizer.param_groups:
                group["lr"] = options.learning_rate * (1 - step / total)
        optimizer.step()
        optimizer.zero_grad()
        after = generator(options.seed, "after", step)
        inner.after_step(loss, lambda x: accelerator.reduce(x, "sum"), after)
        terms = {"loss": loss.per_document, **loss.terms}
        sums = torch.stack([term.detach().double().sum() for term in terms.values()])
        values = accelerator.reduce(sums, "sum").tolist()
        yield Step(step + 1, len(rows), dict(zip(terms, values, strict=True)))


HIDDEN_SHARE = 0.5
"""The share of rare words that are hidden in a step."""


def rare_words(vocabulary: Vocabulary) -> Bool[Tensor, " V"] | None:
    """Return the words that occur once in the training split; None if some of its words are unknown.

    Where all training words are known, nothing teaches a model that a word may be unknown, and each unknown
    word of new documents is all but impossible. Words that occur once stand in for them: by the estimate of
    Good and Turing, they are as frequent as words that never occur.
    """
    counts = vocabulary.slot_counts
    if counts is None or counts[:, vocabulary.unknown].any():
        return None
    rare = torch.from_numpy(counts.sum(0) == 1)
    return rare if bool(rare.any()) else None


def hide_words(batch: Batch, rare: Bool[Tensor, " V"], unknown: int, generator: torch.Generator) -> Batch:
    """Return the batch with the unknown word in the place of some rare words."""
    hidden = torch.rand(batch.tokens.shape, generator=generator) < HIDDEN_SHARE
    return replace(batch, tokens=batch.tokens.masked_fill(rare[batch.tokens] & hidden, unknown))


def parameters_at_least(options: TrainOptions, words: int, frames: int) -> int:
    """Return a lower bound on the parameters: word vectors, output layer, one GRU, and codebooks."""
    values = options.values()
    hidden, layers, width = values["hidden"], values["layers"], values.get("embedding") or 300
    # A GRU has three gates, each with a matrix for what it reads and one for its state.
    gru = 3 * hidden * (width + hidden) + (layers - 1) * 3 * hidden * 2 * hidden
    predicts_words = issubclass(model_class(options.model), LanguageModel)
    output = frames * hidden if not predicts_words else 0 if values.get("tied") else words * hidden
    latent = values.get("latents", 0) * values.get("codes", 0) * values.get("code_width", 0)
    return int(words * width + output + gru + latent)


def step_at_least(options: TrainOptions, documents: int, events: int, slots: int) -> int:
    """Return a lower bound on the numbers that a step keeps for its gradients: the states of the GRUs."""
    values = options.values()
    places = min(values["batch"], documents) * events * (slots + 1)
    return int(places * values["hidden"] * values["layers"] * values.get("samples", 1))


def refuse_if_too_large(
    options: TrainOptions, words: int, frames: int, documents: int, events: int, slots: int
) -> None:
    """Refuse a model whose training takes more memory than the machine has, before it is built."""
    parameters = parameters_at_least(options, words, frames)
    need = FLOAT_BYTES * (PARAMETER_COPIES * parameters + step_at_least(options, documents, events, slots))
    limit = memory_limit()
    if need > limit:
        raise UserError(
            f"a model of about {parameters:,} parameters takes {format_bytes(need)} of memory or more to "
            f"train, and this machine has {format_bytes(limit)}\n"
            "choose a smaller --hidden, --embedding, --layers, --batch or other size; "
            "SSDVAE_MAX_MEMORY=64G, for example, allows more"
        )


# Experiment trackers, through Accelerate.


def chosen_trackers(options: TrainOptions) -> list[str]:
    """Return the chosen trackers; refuse one that is unknown or not installed."""
    known = [name for name in LoggerType.list() if name != "all"]
    installed = [str(tracker.value) for tracker in get_available_trackers()]
    asked = names_of_text(options.track or "")
    for name in asked:
        if name not in known:
            raise UserError(f"--track: found {name!r}, expected some of {', '.join(known)}")
        if name not in installed:
            extra = "'ssdvae[tensorboard]'" if name == "tensorboard" else name.replace("_", "-")
            raise UserError(f"--track {name} needs a package that is not installed\npip install {extra}")
    return asked


def start_trackers(accelerator: Accelerator, folder: Path, options: TrainOptions, step: int) -> None:
    """Start tracking a run, or resume after a step: later steps will be logged again."""
    if not accelerator.log_with:
        return
    name = folder.name
    # A resumed run is the same run in the tracker.
    identity = hashlib.sha256(str(real_path(folder)).encode()).hexdigest()[:16]
    by_tracker = {
        "tensorboard": {"purge_step": step + 1},
        "wandb": {"name": name, "id": identity, "resume": "allow"},
        "trackio": {"name": name, "resume": "allow"},
        "mlflow": {"run_name": name},
    }
    config = {key: value for key, value in options.to_dict().items() if value is not None}
    accelerator.init_trackers(PROJECT, None if step else config, by_tracker)


def log_to_trackers(accelerator: Accelerator, values: dict[str, Any], step: int) -> None:
    """Log the numbers of a record, as ``valid/ppl``."""
    if accelerator.trackers:
        split = values["split"]
        numbers = {f"{split}/{k}": v for k, v in values.items() if isinstance(v, int | float)}
        accelerator.log(numbers, step=step)


def finish_trackers(accelerator: Accelerator) -> None:
    # Not `end_training`, which also parts the processes: they may have other runs to train.
    for tracker in accelerator.trackers:
        tracker.finish()
