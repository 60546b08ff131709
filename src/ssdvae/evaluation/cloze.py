"""Inverse narrative cloze: which of several continuations really followed a seed event?

Two scores rank the options o of a seed e:

    nll     log p(o | e), the paper's; the number of words is the same for all options of an item
    pmi     log p(o | e) − log p(o), where p(o) is the mean of p(o | e′) over other seeds e′

The second takes away how likely the words are anyway, which has nothing to do with the seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.data.batches import Batch, generator, in_order
from ssdvae.data.items import ClozeItem, read_cloze
from ssdvae.evaluation.choices import Array, EventEncoder, OptionScores, log_mean
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.task import WORDS, Data, Figure, Floor, Result, Task
from ssdvae.io.errors import UserError
from ssdvae.io.files import sha256
from ssdvae.io.progress import Advance, no_advance
from ssdvae.models.base import LanguageModel, Model, as_language_model
from ssdvae.models.latents import LatentQuery
from ssdvae.models.options import ModelOptions

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.evaluation.measure import Evaluation


class ClozeTask(NamedTuple):
    """Cloze items as word ids. Option 0 is the true one; no model may look at the order."""

    seeds: NDArray[np.int32]  # N S
    options: NDArray[np.int32]  # N O E S

    @classmethod
    def of(cls, items: Sequence[ClozeItem], encoder: EventEncoder) -> ClozeTask:
        options = [[[encoder.ids(event) for event in option] for option in item.options] for item in items]
        seeds = np.array([encoder.ids(item.seed) for item in items], dtype=np.int32)
        return cls(seeds, np.array(options, dtype=np.int32))


@torch.no_grad()
def score_cloze(
    model: Model,
    task: ClozeTask,
    settings: EvaluateOptions,
    advance: Advance = no_advance,
) -> OptionScores:
    """Score every option after its own seed, and every continuation after seeds of other items."""
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
    return OptionScores("cloze", {"nll": given, "pmi": given - marginal})


def _other_seeds(items: int, settings: EvaluateOptions) -> NDArray[np.int64]:
    """Draw the items whose seeds p(o) averages over, the same for every continuation."""
    if items < 2:
        raise UserError("a cloze file needs at least 2 items: pmi compares with the seeds of others")
    draw = torch.randperm(items, generator=generator(settings.eval_seed, "cloze seeds"))
    return draw[: max(2, settings.cloze_seeds)].numpy()


def _log_probs(
    model: LanguageModel, seeds: NDArray[np.int32], options: NDArray[np.int32], settings: EvaluateOptions
) -> Array:
    """Return log p(option | seed)."""
    score = _with_inferred_frames if settings.cloze_frames == "read" else _with_rolled_out_frames
    first, rest = (torch.from_numpy(words).long().to(model.device) for words in (seeds, options))
    return np.asarray(score(model, first, rest).double().cpu())


def _with_rolled_out_frames(
    model: LanguageModel, seeds: Int[Tensor, "B S"], options: Int[Tensor, "B O E S"]
) -> Float[Tensor, "B O"]:
    """Return log p(option | seed), with the latent variables rolled out from the seed."""
    seed = Batch.of_words(seeds[:, None])
    latents = model.latents(LatentQuery.roll_out(seed, options.shape[2]))
    return model.continuations(seed, latents, options)


def _with_inferred_frames(
    model: LanguageModel, seeds: Int[Tensor, "B S"], options: Int[Tensor, "B O E S"]
) -> Float[Tensor, "B O"]:
    """Return log p(option, latents | seed), with latent variables inferred from seed and option."""
    first = seeds[:, None, None].expand(-1, options.shape[1], 1, -1)
    documents = Batch.of_words(torch.cat([first, options], dim=2).flatten(0, 1))
    return model.event_log_probs(documents)[:, 1:].sum(1).view(options.shape[:2])


NAME = "cloze"
CHANCE = Floor("cloze_chance", "by chance")


def data(corpus: Corpus, settings: EvaluateOptions) -> Data | None:
    """Return the file of --cloze, or that of the corpus; an error without one if nothing else is measured."""
    if (
        settings.cloze is None
        and not corpus.has_items("cloze", settings.split)
        and settings.task_names != (NAME,)
    ):
        return None
    path = corpus.items("cloze", settings.split) if settings.cloze is None else settings.cloze
    name = settings.split if settings.cloze is None else str(settings.cloze)
    # Beside the usual measurement, not in its place.
    name += ", frames read" if settings.cloze_frames == "read" else ""
    return Data(name, sha256(path), path)


def check(config: ModelOptions, settings: EvaluateOptions) -> None:
    vector = config.values().get("document_vector") or config.values().get("variant") == "code"
    if vector and settings.cloze_frames == "read":
        raise UserError(
            "--cloze-frames read: the document vector would read the option that it is to choose\n"
            "with a document vector, frames are foreseen"
        )


def run(evaluation: Evaluation, data: Data) -> Result:
    model, settings = evaluation.model, evaluation.settings
    items = read_cloze(data.path, model.slots)
    encoder = EventEncoder(model.vocabulary, evaluation.corpus.lowercase)
    options = [event for item in items for option in item.options for event in option]
    encoder.unknown_share(options)  # refuses options without any known word
    unknown = encoder.unknown_share([*(item.seed for item in items), *options])
    with evaluation.progress.task("cloze", len(items)) as advance:
        scores = score_cloze(model, ClozeTask.of(items, encoder), settings, advance)
    figures = {**scores.figures(settings.eval_seed), "cloze_unknown_words": unknown}
    return Result(len(items), figures, scores.details())


TASK = Task(
    name=NAME,
    title="Inverse narrative cloze",
    explanation="Higher is better: the share of items whose true continuation of a seed event is chosen. The "
    "paper chooses by likelihood; PMI takes away how likely the words are anyway.",
    figures=(
        Figure(
            "cloze_nll",
            "by likelihood",
            "higher",
            share=True,
            paper="1b",
            headline="cloze, by likelihood",
            floor=CHANCE,
        ),
        Figure("cloze_pmi", "by PMI", "higher", share=True, headline="cloze, by PMI", floor=CHANCE),
    ),
    run=run,
    default=True,
    reproduced=True,
    check=check,
    needs=(WORDS,),
    settings=("cloze_seeds", "cloze_frames", "eval_batch", "eval_seed"),
    data=data,
    has_details=True,
    takes_cloze_files=True,
)
