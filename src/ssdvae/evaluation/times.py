"""When: the time to the next event and the remaining time of cases, beside medians by the last head."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ssdvae.data.batches import collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.evaluation.task import Data, Figure, Need, Result, Task
from ssdvae.inference.prefixes import SHARE
from ssdvae.io.progress import Advance, no_advance
from ssdvae.models.base import Model
from ssdvae.models.cases import CaseModel, forecast_times
from ssdvae.models.times import DAY, time_targets

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation

KINDS = {"next": "gap", "remaining": "rest"}


def true_times(documents: Documents, batch: int) -> dict[str, tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """Return the last heads of all prefixes and the seconds that follow, of each kind where it is known."""
    found: dict[str, list[Any]] = defaultdict(list)
    for rows in within_bounds(documents.lengths, batch):
        part = collate(documents, rows)
        assert part.times is not None
        targets = time_targets(part.times, part.mask, part.ends)
        for kind, seconds in zip(KINDS, targets, strict=True):
            known = ~seconds.isnan()
            found[kind].append((part.tokens[..., 0][known].numpy(), seconds[known].numpy()))
    return {
        kind: (np.concatenate([heads for heads, _ in x]), np.concatenate([times for _, times in x]))
        for kind, x in found.items()
    }


def time_scores(
    model: Model, documents: Documents, train: Documents, batch: int, advance: Advance = no_advance
) -> tuple[int, dict[str, Any]]:
    """Return the number of times that were predicted, and the figures by kind."""
    found: dict[str, list[Any]] = defaultdict(list)
    for rows in within_bounds(documents.lengths, batch):
        part = collate(documents, rows).to(model.device)
        forecast = forecast_times(model, part)
        assert forecast is not None
        assert part.times is not None
        targets = time_targets(part.times, part.mask, part.ends)
        for (kind, name), seconds in zip(KINDS.items(), targets, strict=True):
            known = ~seconds.isnan()
            mixture, true = getattr(forecast, name).select(known), seconds[known]
            points = [mixture.quantile(p) for p in (0.5, (1 - SHARE) / 2, (1 + SHARE) / 2)]
            values = (mixture.log_prob(true), true, *points, part.tokens[..., 0][known])
            found[kind].append(torch.stack([value.double() for value in values]).cpu())
        advance(len(rows))
    figures: dict[str, Any] = {}
    predicted = 0
    for kind, (heads, before) in true_times(train, batch).items():
        log_p, actual, median, low, high, last = torch.cat(found[kind], dim=1).numpy()
        if not len(actual) or not len(before):
            continue
        predicted += len(actual)
        # Times are known to the second.
        inside = (actual + 1 >= low) & (actual <= high + 1)
        medians = {head: np.median(before[heads == head]) for head in np.unique(heads)}
        overall = np.median(before)
        guess = np.array([medians.get(int(head), overall) for head in last])
        figures |= {
            f"{kind}_time_loss": float(-log_p.mean()),
            f"{kind}_time_mae": float(np.abs(median - actual).mean() / DAY),
            f"{kind}_time_median_mae": float(np.abs(guess - actual).mean() / DAY),
            f"{kind}_time_coverage": float(inside.mean()),
        }
    return predicted, figures


def run(evaluation: Evaluation, data: Data) -> Result | None:
    """Return None if the corpus has no times."""
    if not evaluation.corpus.times:
        return None
    documents, train = evaluation.documents, evaluation.corpus.split("train")
    with evaluation.progress.task("times", len(documents)) as advance:
        found = time_scores(evaluation.model, documents, train, evaluation.settings.eval_batch, advance)
    return Result(*found) if found[0] else None


def _figures(kind: str, title: str) -> tuple[Figure, ...]:
    name = f"{kind}_time"
    return (
        Figure(f"{name}_loss", f"{title}, log loss", "lower", compared=False),
        Figure(f"{name}_mae", "MAE, days", "lower", compared=False),
        Figure(f"{name}_median_mae", "MAE by median", compared=False, note="median after the last head"),
        Figure(f"{name}_coverage", f"in the central {SHARE:.0%}", share=True, compared=False),
    )


CLOCK = Need("times", lambda model: isinstance(model, CaseModel) and model.clock is not None)

TASK = Task(
    name="time",
    title="Times",
    explanation="The time from each event to the next one and to the end of its case: log loss of the "
    "density in nats (per day), mean absolute error of the median forecast in days, beside that of the "
    "median after the same head in the training split, and how often the truth is in the central interval.",
    figures=(*_figures("next", "next event"), *_figures("remaining", "rest of the case")),
    run=run,
    needs=(CLOCK,),
    settings=("events", "eval_batch"),
)
