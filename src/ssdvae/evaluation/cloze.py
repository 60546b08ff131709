"""Inverse narrative cloze: which of several continuations really followed a seed event?

Two scores rank the options o of a seed e:

    nll     log p(o | e), the paper's; the number of words is the same for all options of an item
    pmi     log p(o | e) − log p(o), where p(o) is the mean of p(o | e′) over other seeds e′

The second takes away how likely the words are anyway, which has nothing to do with the seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.config import EvaluateSettings
from ssdvae.data.batches import Batch, generator, in_order
from ssdvae.data.cloze import ClozeTask
from ssdvae.errors import UserError
from ssdvae.evaluation.options import Array, OptionScores, log_mean
from ssdvae.evaluation.tasks.cloze import check
from ssdvae.models.base import LanguageModel, LatentQuery, Model, as_language_model
from ssdvae.progress import Advance, no_advance


@dataclass(frozen=True)
class ClozeScores:
    """The scores of the options of each item, the higher the better; option 0 is the true one."""

    nll: Array  # N O
    pmi: Array  # N O
    unknown_words: float  # share

    @property
    def _options(self) -> OptionScores:
        return OptionScores("cloze", {"nll": self.nll, "pmi": self.pmi})

    def summary(self, seed: int) -> dict[str, Any]:
        return {**self._options.figures(seed), "cloze_unknown_words": self.unknown_words}

    def details(self) -> list[dict[str, Any]]:
        """One record for each item."""
        return self._options.details()


@torch.no_grad()
def score_cloze(
    model: Model,
    task: ClozeTask,
    settings: EvaluateSettings,
    advance: Advance = no_advance,
) -> ClozeScores:
    """Score every option after its own seed, and every continuation after some seeds of other items."""
    check(model.config, settings)
    model = as_language_model(model)
    training = model.training
    model.eval()
    items, options, events = task.options.shape[:3]
    size = max(1, settings.eval_batch // options)
    given = np.zeros((items, options))
    for rows in in_order(items, size):
        given[rows] = _log_probs(model, task.seeds[rows], task.options[rows], settings)
        advance(len(rows))

    # Many items share their continuations: each is scored once.
    unique, place = np.unique(task.options.reshape(items * options, -1), axis=0, return_inverse=True)
    place, sequels = place.reshape(items, options), unique.reshape(-1, events, task.options.shape[-1])
    others = _other_seeds(items, settings)
    alone = np.zeros((len(sequels), len(others)))
    for column, other in enumerate(others):
        for rows in in_order(len(sequels), settings.eval_batch):
            # One seed for a whole batch of continuations.
            alone[rows, column] = _log_probs(model, task.seeds[[other]], sequels[None, rows], settings)[0]
    model.train(training)
    # An item's own seed is no other.
    marginal = log_mean(alone[place], others == np.arange(items)[:, None, None])
    return ClozeScores(given, given - marginal, task.unknown_words / task.words)


def _other_seeds(items: int, settings: EvaluateSettings) -> NDArray[np.int64]:
    """The items whose seeds stand for all others: the same for every continuation."""
    if items < 2:
        raise UserError("a cloze file needs at least 2 items: pmi compares with the seeds of others")
    draw = torch.randperm(items, generator=generator(settings.eval_seed, "cloze seeds"))
    return draw[: max(2, settings.cloze_seeds)].numpy()


def _log_probs(
    model: LanguageModel, seeds: NDArray[np.int32], options: NDArray[np.int32], settings: EvaluateSettings
) -> Array:
    """log p(option | seed)."""
    score = _with_inferred_frames if settings.cloze_frames == "read" else _with_planned_frames
    first, rest = (torch.from_numpy(words).long().to(model.device) for words in (seeds, options))
    return np.asarray(score(model, first, rest).double().cpu())


def _with_planned_frames(
    model: LanguageModel, seeds: Int[Tensor, "B S"], options: Int[Tensor, "B O E S"]
) -> Float[Tensor, "B O"]:
    """With the latent variables of all events rolled out from the seed."""
    seed = Batch.of_words(seeds[:, None])
    latents = model.latents(LatentQuery.roll_out(seed, options.shape[2]))
    return model.continuations(seed, latents, options)


def _with_inferred_frames(
    model: LanguageModel, seeds: Int[Tensor, "B S"], options: Int[Tensor, "B O E S"]
) -> Float[Tensor, "B O"]:
    """With the latent variables read off seed and option, and paid for."""
    first = seeds[:, None, None].expand(-1, options.shape[1], 1, -1)
    documents = Batch.of_words(torch.cat([first, options], dim=2).flatten(0, 1))
    return model.event_log_probs(documents)[:, 1:].sum(1).view(options.shape[:2])
