"""Next event: the ranks of the true head and frame of the next event, beside counting baselines.

Over all prefixes of one event or more; where cases end, the end counts as a head. The frequency baseline
ranks by how often a head, or a frame, follows in the training split. The n-gram conditions on the n − 1 heads
before, with the n from 1 to 5 that is best on validation, and backs off as Witten and Bell did:

    p(v | u) = (c(u, v) + T(u) p(v | u')) / (c(u) + T(u))     T(u): how many different v were seen after u

with u' the history u without its first head.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from ssdvae.data.batches import collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.evaluation.frames import BINS, reliability
from ssdvae.evaluation.task import WORDS, Data, Figure, Result, Task
from ssdvae.inference.prefixes import after_every_event
from ssdvae.io.progress import Advance, no_advance
from ssdvae.models.base import LanguageModel, as_language_model
from ssdvae.models.cases import with_ends

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation


AT = (1, 5, 10)
MEASURED = 1_000
"""Documents that are measured, at most, where cases do not end."""

ORDERS = 5
FITTED_ON, CHOSEN_ON = 500_000, 20_000
"""Histories that n-grams are counted on and their order is chosen on, at most."""


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
            f"{name}_ece": equal_mass_error(sure, ranks == 1),
        }

    def reliability(self, name: str) -> dict[str, Any]:
        ranks, sure = (np.concatenate(x) for x in (self.ranks, self.confidence))
        return {f"{name}_reliability": reliability(sure, ranks == 1)}


def equal_mass_error(confidence: NDArray[np.float64], right: NDArray[np.bool_], bins: int = BINS) -> float:
    """Return the expected calibration error over bins of equally many events, by rising confidence."""
    order = confidence.argsort(kind="stable")
    parts = (part for part in np.array_split(order, bins) if len(part))
    gaps = (abs(confidence[part].sum() - right[part].sum()) for part in parts)
    return float(sum(gaps) / len(confidence))


class NGram:
    """Back-off n-grams of heads: what follows the last n − 1 heads of a case in the training split.

    ``fit`` counts what follows each history; ``orders`` are 1 (the frequency) to ``ORDERS``.
    """

    def __init__(self, size: int) -> None:
        self.counts: list[dict[tuple[int, ...], Counter[int]]] = [defaultdict(Counter) for _ in range(ORDERS)]
        self.size = size

    def fit(self, history: list[int], after: int) -> None:
        """Count what comes after a history of heads; −1 is unknown."""
        for n, counts in enumerate(self.counts) if after >= 0 else ():
            counts[_context(history, n)][after] += 1

    @cached_property
    def frequency(self) -> NDArray[np.float64]:
        found = np.full(self.size, 0.5)
        for value, count in self.counts[0].get((), {}).items():
            found[value] += count
        found /= found.sum()
        return found

    def probabilities(self, history: list[int], value: int) -> list[float]:
        """Return p of one value by each order."""
        found = [float(self.frequency[value])]
        for n in range(1, ORDERS):
            seen = self.counts[n].get(_context(history, n))
            kinds = 0 if seen is None else len(seen)
            total = 0 if seen is None else seen.total()
            found.append(found[-1] if seen is None else (seen[value] + kinds * found[-1]) / (total + kinds))
        return found

    def log_p(self, history: list[int]) -> Iterator[NDArray[np.float64]]:
        """Yield log p of all values by each order, 1 first."""
        p = self.frequency
        yield np.log(p)
        for n in range(1, ORDERS):
            if (seen := self.counts[n].get(_context(history, n))) is not None:
                values, counts = np.array(list(seen)), np.array(list(seen.values()), dtype=np.float64)
                p = p * len(values) / (counts.sum() + len(values))
                p[values] += counts / (counts.sum() + len(values))
            yield np.log(p)


def _context(history: list[int], n: int) -> tuple[int, ...]:
    """Return the last n heads; a beginning is marked by −1."""
    return tuple([-1] * n + history)[len(history) :] if n else ()


def following(documents: Documents, end: int | None) -> Iterator[tuple[list[int], int, int]]:
    """Yield each history of one head or more with the head (``end`` for that of the case) and frame after it.

    Both are −1 where they are not known.
    """
    for part in documents.parts():
        heads, frames = documents.tokens[part][:, 0].tolist(), documents.frames[part].tolist()
        for place in range(1, len(heads)):
            yield heads[:place], heads[place], frames[place]
        if end is not None and documents.ends is not None and documents.ends[part][-1]:
            yield heads, end, -1


def fit_ngrams(documents: Documents, heads: int, frames: int, end: int | None) -> tuple[NGram, NGram]:
    """Return the n-grams of heads and of frames after heads."""
    found = NGram(heads), NGram(frames)
    for history, head, frame in islice(following(documents, end), FITTED_ON):
        found[0].fit(history, head)
        found[1].fit(history, frame)
    return found


def best_order(ngram: NGram, documents: Documents, end: int | None, frames: bool = False) -> int:
    """Return the order, from 1, with the lowest log loss on documents; 2 if nothing follows there."""
    nats, count = np.zeros(ORDERS), 0
    for history, head, frame in islice(following(documents, end), CHOSEN_ON):
        if (true := frame if frames else head) >= 0:
            nats -= np.log(ngram.probabilities(history, true))
            count += 1
    return int(nats.argmin()) + 1 if count else 2


def next_event_scores(
    model: LanguageModel,
    documents: Documents,
    train: Documents,
    valid: Documents,
    batch: int,
    advance: Advance = no_advance,
) -> tuple[int, dict[str, Any]]:
    """Return the number of next events that were predicted, and the figures of model and baselines.

    Where cases end, the end is a head like others, and all documents are measured.
    """
    ending = with_ends(model) is not None and documents.ends is not None
    words, frames = len(model.vocabulary), len(model.frames)
    end = words if ending else None
    some = documents if ending else documents.take(np.arange(min(MEASURED, len(documents))))
    ngrams = fit_ngrams(train, words + ending, frames, end)
    orders = [best_order(n, valid, end, kind) for kind, n in ((False, ngrams[0]), (True, ngrams[1]))]
    ranks: dict[str, Ranks] = {}
    predicted = 0

    def add(kind: int, log_p: Tensor, true: Tensor, histories: list[list[int]]) -> None:
        name = ("next_head", "next_frame")[kind]
        ranks.setdefault(name, Ranks()).add(log_p.double(), true)
        by_order = [list(ngrams[kind].log_p(history)) for history in histories]
        for baseline, order in (("frequency", 1), ("ngram", orders[kind])):
            rows = torch.from_numpy(np.stack([found[order - 1] for found in by_order]))
            ranks.setdefault(f"{name}_{baseline}", Ranks()).add(rows, true.cpu())

    for rows in within_bounds(some.lengths, batch):
        whole = collate(some, rows).to(model.device)
        heads = functional.pad(whole.tokens[..., 0].masked_fill(~whole.mask, -1), (0, 1), value=-1)
        true_frames = functional.pad(whole.frames.masked_fill(~whole.mask, -1), (0, 1), value=-1)
        for part in after_every_event(model, whole):
            true = heads[part.rows, part.places + 1]
            log_p = part.log_heads
            if end is not None and part.log_end is not None and whole.ends is not None:
                true = true.masked_fill(whole.ends[part.rows, part.places], end)
                log_p = torch.cat([log_p, part.log_end[:, None]], dim=1)
            histories = [
                heads[row, : place + 1].tolist()
                for row, place in zip(part.rows.tolist(), part.places.tolist(), strict=True)
            ]
            frame = true_frames[part.rows, part.places + 1]
            found = [(0, log_p, true)]
            found += [] if part.log_frames is None else [(1, part.log_frames, frame)]
            for kind, values, target in found:
                known = target >= 0
                if bool(known.any()):
                    kept = [h for h, is_known in zip(histories, known.tolist(), strict=True) if is_known]
                    add(kind, values[known], target[known], kept)
            predicted += int((true >= 0).sum())
        advance(len(rows))
    figures = {key: value for name, r in ranks.items() for key, value in r.figures(name).items()}
    for kind, name in enumerate(("next_head", "next_frame")):
        if name in ranks:
            figures |= ranks[name].reliability(name) | {f"{name}_ngram_order": orders[kind]}
    return predicted, figures | {"next_end_counted": int(ending)}


NAME = "next"


def run(evaluation: Evaluation, data: Data) -> Result | None:
    """Return None if no document has two events."""
    settings, corpus = evaluation.settings, evaluation.corpus
    total = len(evaluation.documents)
    total = total if corpus.ends else min(MEASURED, total)
    with evaluation.progress.task("next event", total) as advance:
        predicted, scores = next_event_scores(
            as_language_model(evaluation.model),
            evaluation.documents,
            corpus.split("train"),
            corpus.split("valid"),
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
        Figure(f"{name}_loss", "log loss", "lower", compared=False),
        Figure(
            f"{name}_ngram_1", "n-gram at 1", share=True, compared=False, note="what a back-off n-gram gets"
        ),
        Figure(f"{name}_ngram_loss", "log loss by n-gram", compared=False),
        Figure(f"{name}_ngram_mrr", "MRR by n-gram", compared=False),
        Figure(f"{name}_ece", "calibration error", "lower", share=True, compared=False),
    )


TASK = Task(
    name=NAME,
    title="Next event",
    explanation="After the events before it, where does the true head (frame) of an event stand among all by "
    "probability? The share at the first place, among the first 5 and 10, and the mean reciprocal rank "
    "(MRR); beside it what the most frequent heads (frames) of the training split get, and a back-off n-gram "
    "of the heads before, its order chosen on validation. Over all prefixes; in cases the end counts "
    "as a head. Higher is better, except for the log loss in nats and the calibration error.",
    figures=(*_figures("head", "head", "next head right"), *_figures("frame", "frame", None)),
    run=run,
    needs=(WORDS,),
    settings=("events", "bound_samples", "eval_batch", "eval_seed"),
)
