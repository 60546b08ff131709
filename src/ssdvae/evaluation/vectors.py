"""One vector for an event that is read alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ssdvae.data.batches import Batch, Noise, in_order
from ssdvae.data.events import Words
from ssdvae.evaluation.choices import Reader
from ssdvae.evaluation.options import Array
from ssdvae.models.base import EventModel
from ssdvae.models.latent import probabilities
from ssdvae.models.plan import PlanRequest


@torch.no_grad()
def event_vectors(model: EventModel, reader: Reader, events: Sequence[Words], batch: int) -> Array:
    """What it takes the frame to be; of a model without frames, the state after the event."""
    ids = torch.tensor([reader.ids(event) for event in events])[:, None]
    parts = []
    for rows in in_order(len(ids), batch):
        some = Batch.of_words(ids[torch.from_numpy(rows)]).to(model.device)
        beliefs = model.infer(some)
        if beliefs is not None and beliefs.frames:
            found = beliefs.log_q[:, 0].exp()
        else:
            noise = Noise(torch.Generator(), len(some))
            plan = model.plan(PlanRequest.whole(some, probabilities, noise))
            found = model.begin(some, plan).layers[-1]
        parts.append(found.double().cpu().numpy())
    return np.concatenate(parts)
