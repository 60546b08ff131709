"""Names for frames that nobody has named: their likeliest heads, as in ``~updated/closed``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ssdvae.answers.beliefs import frame_beliefs
from ssdvae.data.documents import Documents
from ssdvae.data.vocabulary import UNNAMED, Inventory
from ssdvae.models.base import Model

READ, BATCH = 1_000, 100
"""Documents that names are made from, at most, and how many are read at once."""
HEADS = 2
"""In a name, at most."""


def name_frames(model: Model, documents: Documents, named: int) -> None:
    """Name the frames after the first ``named`` by the heads of the events that are inferred to have them."""
    rows = np.unique(np.linspace(0, len(documents) - 1, min(READ, len(documents))).astype(np.int64))
    counts = np.zeros((len(model.frames), len(model.vocabulary)), dtype=np.int64)
    training = model.training
    model.eval()
    for beliefs, batch in frame_beliefs(model, documents.take(rows), BATCH):
        heads, frames = batch.tokens[..., 0][batch.mask].cpu(), beliefs.value[batch.mask].cpu()
        np.add.at(counts, (frames.numpy(), heads.numpy()), 1)
    model.train(training)
    names = [*model.frames.names[:named], *unnamed_names(counts[named:], model.vocabulary.names)]
    used = [*model.frames.counts[:named], *counts[named:].sum(1).tolist()]
    model.frames = Inventory(names, used)


def unnamed_names(counts: NDArray[np.int64], words: Sequence[str]) -> list[str]:
    """One for each row of counts of heads, all different; a frame that was never inferred has a number."""
    names: list[str] = []
    for number, row in enumerate(counts, start=1):
        best = [words[head] for head in np.argsort(-row, kind="stable")[:HEADS] if row[head]]
        name = plain = UNNAMED + ("/".join(best) or str(number))
        again = 1
        while name in names:
            again += 1
            name = f"{plain}:{again}"
        names.append(name)
    return names
