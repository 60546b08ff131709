"""One vector for an event that is read alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ssdvae.answers import vectors
from ssdvae.data.batches import Batch, in_order
from ssdvae.data.events import Words
from ssdvae.evaluation.choices import Reader
from ssdvae.evaluation.options import Array
from ssdvae.models.base import Model


@torch.no_grad()
def event_vectors(model: Model, reader: Reader, events: Sequence[Words], batch: int) -> Array:
    """That which ``encode`` gives."""
    ids = torch.tensor([reader.ids(event) for event in events])[:, None]
    parts = []
    for rows in in_order(len(ids), batch):
        some = Batch.of_words(ids[torch.from_numpy(rows)]).to(model.device)
        parts.append(vectors.event_vectors(model, some)[:, 0].double().cpu().numpy())
    return np.concatenate(parts)
