"""Next event: the ranks of the true head and frame of the next event, beside counting baselines.

The frequency baseline ranks by how often a head, or a frame, is in the training split. The bigram conditions
on the head of the event before and is smoothed by the frequency p, as Witten and Bell did:

    p(v | u) = (c(u, v) + T(u) p(v)) / (c(u) + T(u))          T(u): how many different v were seen after u
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.data.batches import collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.evaluation.frames import calibration_error, reliability
from ssdvae.evaluation.task import WORDS, Data, Figure, Result, Task
from ssdvae.inference.forecast import Rollout, head_log_probs
from ssdvae.io.progress import Advance, no_advance
from ssdvae.models.base import LanguageModel, as_language_model

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation


AT = (1, 5, 10)
MEASURED = 1_000
"""Documents that are measured, at most."""


@dataclass
class Ranks:
    """Ranks and nats of the true values, and the confidence of the most likely ones."""

    ranks: list[NDArray[np.float64]] = field(default_factory=list)
    nats: list[NDArray[np.float64]] = field(default_factory=list)
    confidence: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, log_p: Float[Tensor, "N K"], true: Int[Tensor, " N"]) -> None:
        own = log_p.gather(1, true[:, None])
        above, level = (log_p > own).sum(1), (log_p == own).sum(1)
        # Ties share the mean of their ranks.
        self.ranks.append((1 + above + (level - 1) / 2).double().cpu().numpy())
        self.nats.append(-own[:, 0].double().cpu().numpy())
        self.confidence.append(log_p.max(1).values.double().exp().cpu().numpy())

    def figures(self, name: str) -> dict[str, Any]:
        if not self.ranks or not sum(map(len, self.ranks)):
            return {}
        ranks, nats, sure = (np.concatenate(x) for x in (self.ranks, self.nats, self.confidence))
        return {
            **{f"{name}_{at}": float((ranks <= at).mean()) for at in AT},
            f"{name}_mrr": float((1 / ranks).mean()),
            f"{name}_loss": float(nats.mean()),
            f"{name}_ece": calibration_error(sure, ranks == 1),
        }

    def reliability(self, name: str) -> dict[str, Any]:
        ranks, sure = (np.concatenate(x) for x in (self.ranks, self.confidence))
        return {f"{name}_reliability": reliability(sure, ranks == 1)}


@dataclass(frozen=True)
class Counts:
    """Counts of what follows a head in the training split: heads, or frames."""

    log_frequency: Float[Tensor, " K"]
    pairs: Int[Tensor, "2 P"]  # the head before and what follows, sorted by the first
    counts: Float[Tensor, " P"]

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any], values: NDArray[Any], size: int) -> Counts:
        seen = after >= 0
        pairs, counts = np.unique(np.stack([before[seen], after[seen]]), axis=1, return_counts=True)
        frequency = np.bincount(values[values >= 0], minlength=size) + 0.5
        return cls(
            torch.from_numpy(np.log(frequency / frequency.sum())),
            torch.from_numpy(pairs.astype(np.int64)),
            torch.from_numpy(counts.astype(np.float64)),
        )

    def frequency(self, before: Int[Tensor, " N"]) -> Float[Tensor, "N K"]:
        return self.log_frequency.expand(len(before), -1)

    def bigram(self, before: Int[Tensor, " N"]) -> Float[Tensor, "N K"]:
        p = self.log_frequency.exp()
        rows = []
        for head in before.tolist():
            found = slice(
                *torch.searchsorted(self.pairs[0].contiguous(), torch.tensor([head, head + 1])).tolist()
            )
            row = p * (found.stop - found.start)
            row[self.pairs[1, found]] += self.counts[found]
            rows.append(row / row.sum() if found.stop > found.start else p)
        return torch.stack(rows).log()


def counts_of(documents: Documents, words: int, frames: int) -> tuple[Counts, Counts]:
    """Return the counts of heads and of frames, both after the head of the event before."""
    places, rows = documents.in_order(), documents.rows()
    heads, known = documents.tokens[:, 0][places], documents.frames[places]
    same = rows[1:] == rows[:-1]
    before = heads[:-1][same]
    return (
        Counts.of(before, heads[1:][same], heads, words),
        Counts.of(before, known[1:][same], known, frames),
    )


def next_event_scores(
    model: LanguageModel,
    documents: Documents,
    train: Callable[[], Documents],
    batch: int,
    advance: Advance = no_advance,
) -> tuple[int, dict[str, Any]]:
    """Return the number of next events that were predicted, and the figures of model and baselines."""
    some = documents.take(np.arange(min(MEASURED, len(documents))))
    heads, frames = counts_of(train(), len(model.vocabulary), len(model.frames))
    ranks: dict[str, Ranks] = {}

    def add(name: str, log_p: Tensor, true: Tensor) -> None:
        ranks.setdefault(name, Ranks()).add(log_p, true)

    predicted = 0
    for rows in within_bounds(some.lengths, batch):
        whole = collate(some, rows).to(model.device)
        for place in range(1, whole.mask.shape[1]):
            part = whole.rows(whole.mask[:, place].nonzero()[:, 0])
            true, before = part.tokens[:, place, 0], part.tokens[:, place - 1, 0].cpu()
            predicted += len(part)
            rollout = Rollout.after(model, part.first(place))
            add("next_head", head_log_probs(model, rollout), true)
            add("next_head_frequency", heads.frequency(before), true.cpu())
            add("next_head_bigram", heads.bigram(before), true.cpu())
            known = part.frames[:, place]
            named = known >= 0
            if rollout.log_frames is not None and bool(named.any()):
                add("next_frame", rollout.log_frames[named].double(), known[named])
                add("next_frame_frequency", frames.frequency(before[named.cpu()]), known[named].cpu())
                add("next_frame_bigram", frames.bigram(before[named.cpu()]), known[named].cpu())
        advance(len(rows))
    figures = {key: value for name, r in ranks.items() for key, value in r.figures(name).items()}
    for name in ("next_head", "next_frame"):
        if name in ranks:
            figures |= ranks[name].reliability(name)
    return predicted, figures


NAME = "next"


def run(evaluation: Evaluation, data: Data) -> Result | None:
    """Return None if no document has two events."""
    settings, corpus = evaluation.settings, evaluation.corpus
    total = min(MEASURED, len(evaluation.documents))
    with evaluation.progress.task("next event", total) as advance:
        predicted, scores = next_event_scores(
            as_language_model(evaluation.model),
            evaluation.documents,
            lambda: corpus.split("train"),
            settings.eval_batch,
            advance,
        )
    return Result(predicted, scores) if predicted else None


def _figures(kind: str, title: str, headline: str | None) -> tuple[Figure, ...]:
    name = f"next_{kind}"
    return (
        Figure(f"{name}_1", f"{title} at 1", "higher", share=True, compared=False, headline=headline),
        Figure(f"{name}_5", "at 5", "higher", share=True, compared=False),
        Figure(f"{name}_10", "at 10", "higher", share=True, compared=False),
        Figure(f"{name}_mrr", "MRR", "higher", compared=False),
        Figure(f"{name}_frequency_mrr", "MRR by frequency", compared=False, note="majority baseline"),
        Figure(f"{name}_bigram_mrr", "MRR by bigram", compared=False, note="what a smoothed bigram gets"),
        Figure(f"{name}_ece", "calibration error", "lower", share=True, compared=False),
    )


TASK = Task(
    name=NAME,
    title="Next event",
    explanation="After the events before it, where does the true head (frame) of an event stand among all by "
    "probability? The share at the first place, among the first 5 and 10, and the mean reciprocal rank "
    "(MRR); beside it what the most frequent heads (frames) of the training split get, and a smoothed bigram "
    "from the head of the event before. Higher is better, except for the calibration error.",
    figures=(*_figures("head", "head", "next head right"), *_figures("frame", "frame", None)),
    run=run,
    needs=(WORDS,),
    settings=("events", "bound_samples", "eval_batch", "eval_seed"),
)
