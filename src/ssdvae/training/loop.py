"""The training loop. It yields after every step; who calls it logs, validates, saves and stops."""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from numpy.typing import NDArray
from torch import nn

from ssdvae.config import SLOTS, Slots, TrainSettings
from ssdvae.data.batches import Noise, collate, epoch_batches, generator, process_slice
from ssdvae.data.classes import unnamed_classes
from ssdvae.data.corpus import Documents
from ssdvae.data.vectors import Vectors
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.errors import UserError
from ssdvae.memory import keep_freed_memory
from ssdvae.models import model_class
from ssdvae.models.base import Model, fastest_device
from ssdvae.training.track import FOLDER, chosen_trackers


@dataclass(frozen=True)
class Step:
    """One step that was taken."""

    step: int  # counted from 1
    documents: int  # in the batch, over all processes
    sums: dict[str, float]  # of the loss and its terms over these documents


def new_accelerator(settings: TrainSettings, folder: Path | None = None) -> Accelerator:
    """The devices and processes of a run, in an interpreter that is ready for many steps."""
    keep_freed_memory()
    # Accelerate remembers the precision of the first run in this interpreter and refuses any other.
    AcceleratorState._reset_state()
    # Several processes without a GPU find each other only when told that the CPU is meant.
    cpu = fastest_device().type == "cpu"
    tracking = {"log_with": chosen_trackers(settings) or None, "project_dir": folder and folder / FOLDER}
    return Accelerator(mixed_precision=settings.precision, cpu=cpu, **tracking)


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
    settings: TrainSettings,
    vocabulary: Vocabulary,
    frames: Inventory,
    vectors: Vectors | None,
    slots: Slots = SLOTS,
) -> Model:
    """A model with the weights that the seed gives, and the pretrained vectors of the words that have one."""
    with torch.random.fork_rng():
        # Layers draw their first weights from torch's own generator: the one place where it is used.
        torch.manual_seed(settings.seed)
        every = frames.with_unnamed(settings.values().get("unnamed_frames", 0))
        model = model_class(settings.model)(settings.model_settings, vocabulary, every, slots)
        model.prepare_training()
    if vectors is not None:
        weight = model.word_reader.words.weight.data
        weight[torch.from_numpy(vectors.found)] = torch.from_numpy(vectors.matrix[vectors.found])
    return model


def with_classes(
    observed: NDArray[np.int32], documents: Documents, model: Model, settings: TrainSettings
) -> NDArray[np.int32]:
    """The observed frames and, if a model has unnamed ones, the classes that counting finds for the rest."""
    unnamed = settings.values().get("unnamed_frames", 0)
    if not unnamed:
        return observed
    named = len(model.frames) - unnamed
    found = unnamed_classes(documents, observed, len(model.vocabulary), named, unnamed, settings.seed)
    return np.where(observed >= 0, observed, found).astype(np.int32)


def initialize_from_run(model: Model, folder: Path) -> None:
    """Give a model the weights of another that has the same words, frames and shape."""
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
            "give the settings that it was trained with: they are in its config.yaml"
        ) from error


def _named(model: Model) -> tuple[str, ...]:
    """The frames of the corpus, without those that a model has made."""
    return model.frames.names[: len(model.frames) - model.config.values().get("unnamed_frames", 0)]


def new_optimizer(model: nn.Module, settings: TrainSettings) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=settings.learning_rate, fused=True)


def steps_per_epoch(documents: Documents, settings: TrainSettings) -> int:
    return -(-len(documents) // settings.batch)


def train_steps(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    accelerator: Accelerator,
    documents: Documents,
    settings: TrainSettings,
    start: int,
    observed: NDArray[np.int32],
    first: NDArray[np.int32] | None = None,
) -> Iterator[Step]:
    """Steps ``start + 1``, ``start + 2``, … to the end of the last epoch.

    ``model`` and ``optimizer`` are prepared by the accelerator. A step depends on the weights, the optimiser
    and its number, nothing else: that is what makes a resumed run the same run. ``observed`` has the frames
    that are observed, of all events; ``first`` what is taken for observed while unnamed frames start.
    """
    process, processes = accelerator.process_index, accelerator.num_processes
    per_epoch = steps_per_epoch(documents, settings)
    if len(documents) // per_epoch < processes:
        raise UserError(
            f"{len(documents)} documents in batches of {settings.batch} are too few for {processes} processes"
        )
    model.train()
    inner: Model = accelerator.unwrap_model(model)
    groups, total = inner.clipping_groups(), settings.epochs * per_epoch
    start_steps = 0.0 if first is None else settings.values().get("unnamed_start", 0.0) * total
    for step in range(start, total):
        epoch, index = divmod(step, per_epoch)
        if index == 0 or step == start:
            batches = epoch_batches(len(documents), settings.batch, settings.seed, epoch)
        rows = batches[index]
        part = process_slice(rows, process, processes)
        told = first if step < start_steps else observed
        whole = collate(documents, rows, told)
        batch = whole.part(part).to(accelerator.device)
        noise = Noise(generator(settings.seed, "noise", step), len(rows), part)
        loss = model(batch, noise)
        # Processes average their gradients; their sum over the whole batch is what one would have.
        accelerator.backward(loss.per_document.sum() * (processes / len(rows)))
        for parameters in groups:
            accelerator.clip_grad_norm_(parameters, settings.clip)
        if settings.decay:
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * (1 - step / total)
        optimizer.step()
        optimizer.zero_grad()
        after = generator(settings.seed, "after", step)
        inner.after_step(loss, lambda x: accelerator.reduce(x, "sum"), after)
        terms = {"loss": loss.per_document, **loss.terms}
        sums = torch.stack([term.detach().double().sum() for term in terms.values()])
        values = accelerator.reduce(sums, "sum").tolist()
        yield Step(step + 1, len(rows), dict(zip(terms, values, strict=True)))
