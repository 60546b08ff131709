"""Which head and which frame come next: ranks of the true ones, beside what counting would get.

The frequency baseline ranks by how often a head, or a frame, is in the training split. The bigram conditions
on the head of the event before and is smoothed by the frequency p, as Witten and Bell did:

    p(v | u) = (c(u, v) + T(u) p(v)) / (c(u) + T(u))          T(u): how many different v were seen after u
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.answers.next_events import head_log_probs
from ssdvae.answers.search import Ahead
from ssdvae.calibration import calibration_error, reliability
from ssdvae.data.batches import Batch, collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.models.base import LanguageModel, as_frame_model
from ssdvae.progress import Advance, no_advance

AT = (1, 5, 10)
MEASURED = 1_000
"""Documents that are measured, at most."""


@dataclass
class Ranks:
    """Where the true ones stood, how sure the likeliest was, and whether it was right."""

    ranks: list[NDArray[np.float64]] = field(default_factory=list)
    nats: list[NDArray[np.float64]] = field(default_factory=list)
    confidence: list[NDArray[np.float64]] = field(default_factory=list)

    def add(self, log_p: Float[Tensor, "N K"], true: Int[Tensor, " N"]) -> None:
        own = log_p.gather(1, true[:, None])
        above, level = (log_p > own).sum(1), (log_p == own).sum(1)
        # Among equals, the mean of their places.
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
    """What follows a head in the training split: heads, or frames."""

    log_frequency: Float[Tensor, " K"]
    pairs: Int[Tensor, "2 P"]  # the head before and what follows, sorted by the first
    counts: Float[Tensor, " P"]

    @classmethod
    def of(cls, before: NDArray[Any], after: NDArray[Any], all_of_them: NDArray[Any], size: int) -> Counts:
        seen = after >= 0
        pairs, counts = np.unique(np.stack([before[seen], after[seen]]), axis=1, return_counts=True)
        frequency = np.bincount(all_of_them[all_of_them >= 0], minlength=size) + 0.5
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
    """Of heads and of frames, both after the head of the event before."""
    places, rows = documents.in_order(), documents.rows()
    heads, known = documents.tokens[:, 0][places], documents.frames[places]
    same = rows[1:] == rows[:-1]
    before = heads[:-1][same]
    return (
        Counts.of(before, heads[1:][same], heads, words),
        Counts.of(before, known[1:][same], known, frames),
    )


@torch.no_grad()
def _next_frame(model: LanguageModel, read: Batch) -> Float[Tensor, "B F"] | None:
    framed = as_frame_model(model)
    return None if framed is None else framed.next_frame(read)


def next_event_scores(
    model: LanguageModel,
    documents: Documents,
    train: Callable[[], Documents],
    batch: int,
    advance: Advance = no_advance,
) -> tuple[int, dict[str, Any]]:
    """How many next events were asked for, and the figures of model and baselines."""
    some = documents.take(np.arange(min(MEASURED, len(documents))))
    heads, frames = counts_of(train(), len(model.vocabulary), len(model.frames))
    ranks: dict[str, Ranks] = {}

    def add(name: str, log_p: Tensor, true: Tensor) -> None:
        ranks.setdefault(name, Ranks()).add(log_p, true)

    asked = 0
    for rows in within_bounds(some.lengths, batch):
        whole = collate(some, rows).to(model.device)
        for place in range(1, whole.mask.shape[1]):
            part = whole.rows(whole.mask[:, place].nonzero()[:, 0])
            read = part.first(place)
            true, before = part.tokens[:, place, 0], part.tokens[:, place - 1, 0].cpu()
            asked += len(part)
            add("next_head", head_log_probs(model, Ahead.after(model, read)), true)
            add("next_head_frequency", heads.frequency(before), true.cpu())
            add("next_head_bigram", heads.bigram(before), true.cpu())
            known = part.frames[:, place]
            named = known >= 0
            log_frames = _next_frame(model, read) if bool(named.any()) else None
            if log_frames is not None:
                add("next_frame", log_frames[named].double(), known[named])
                add("next_frame_frequency", frames.frequency(before[named.cpu()]), known[named].cpu())
                add("next_frame_bigram", frames.bigram(before[named.cpu()]), known[named].cpu())
        advance(len(rows))
    figures = {key: value for name, r in ranks.items() for key, value in r.figures(name).items()}
    for name in ("next_head", "next_frame"):
        if name in ranks:
            figures |= ranks[name].reliability(name)
    return asked, figures
