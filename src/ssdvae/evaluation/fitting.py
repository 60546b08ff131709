"""Fit the posterior of the exact model: which reader, and the power of the exact posterior.

It is fitted to half of the validation documents; frames are measured on the other half, or on the test split.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ssdvae.data.batches import collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.models.base import Model
from ssdvae.models.exact import ExactModel
from ssdvae.models.mixture import expected

POWERS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0)
SHARPNESS = (0.4, 0.6, 0.8, 1.0, 1.2)

FITTED = 2_000
"""Documents that are fitted to, at most."""


def fitting_half(documents: Documents) -> Documents:
    """Return every second document, from the first on."""
    return documents.take(np.arange(0, min(len(documents), 2 * FITTED), 2))


def without_fitted_labels(documents: Documents, model: Model, split: str) -> Documents:
    """Return all documents, without the labels that the model was fitted to."""
    if split != "valid" or not isinstance(model, ExactModel) or len(documents) < 2:
        return documents
    fitted = fitting_half(documents)
    frames = np.array(documents.frames)
    frames[fitted.in_order()] = -1
    return replace(documents, frames=frames)


@torch.no_grad()
def fit_reader(
    model: ExactModel,
    documents: Documents,
    batch: int,
    process: int = 0,
    processes: int = 1,
    reduce: Callable[[Tensor], Tensor] = lambda sums: sums,
) -> None:
    """Keep the reader and the power with the most frames right on labelled documents.

    Accuracies of neighbouring powers are averaged, since they are noisy. The sharpness has the lowest log
    loss. Without labelled events, the reader trained by the exact posterior is kept. Each process takes every
    n-th batch.
    """
    training = model.training
    model.eval()
    readers = 1 if model.rival is None else 2
    correct = torch.zeros(readers, len(POWERS), dtype=torch.float64)
    nats = torch.zeros(readers, len(POWERS), len(SHARPNESS), dtype=torch.float64)
    for number, rows in enumerate(within_bounds(documents.lengths, batch)):
        if number % processes != process:
            continue
        part = collate(documents, rows).to(model.device)
        gold = part.frames[part.mask]
        known = gold >= 0
        if not bool(known.any()):
            continue
        exact, gold = model.exact_posterior(part)[known], gold[known]
        labels = tuple(x[known] for x in part.labels(part.frames))
        for reader, log_q in enumerate(model.read_by_each(part)):
            for p, power in enumerate(POWERS):
                scores = log_q[known] + power * exact
                correct[reader, p] += (scores.argmax(1) == gold).sum().cpu()
                for s, sharpness in enumerate(SHARPNESS):
                    log_p = expected((sharpness * scores).log_softmax(-1), *labels)
                    nats[reader, p, s] -= log_p.double().sum().cpu()
    nats, correct = reduce(nats), reduce(correct)
    model.train(training)
    if not bool(nats.any()):
        model.keep_reader(1)
        return
    padded = torch.cat([correct[:, :1], correct, correct[:, -1:]], dim=1)
    smooth = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    which, power = divmod(int(smooth.argmax()), len(POWERS))
    model.keep_reader(which, POWERS[power], SHARPNESS[int(nats[which, power].argmin())])
