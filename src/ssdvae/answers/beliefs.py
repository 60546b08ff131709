"""The frames that a model infers, batch by batch: what all analyses begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import torch

from ssdvae.config import ExplainSettings
from ssdvae.data.batches import Batch, collate, within_bounds
from ssdvae.data.corpus import Documents
from ssdvae.errors import UserError
from ssdvae.models.base import Beliefs, EventModel
from ssdvae.progress import Advance, no_advance

Result = TypeVar("Result", covariant=True)


def infer_frames(model: EventModel, batch: Batch) -> Beliefs:
    """The frames of each document; a ``UserError`` from a model that has none."""
    with torch.no_grad():
        beliefs = model.infer(batch)
    if beliefs is None or not beliefs.frames:
        what = "has no latent variables" if beliefs is None else "has latent variables that are no frames"
        raise UserError(f"{model.config.model} {what}: there are no frames to look at")
    beliefs.check_finite()
    return beliefs


class Sums(Protocol[Result]):
    """Something that is summed over a split, whose size does not depend on the number of documents."""

    def add(self, beliefs: Beliefs, batch: Batch) -> None: ...

    def result(self) -> Result: ...


def accumulate_over_split(
    sums: Callable[[EventModel], Sums[Result]],
    model: EventModel,
    documents: Documents,
    settings: ExplainSettings | None,
    advance: Advance,
) -> Result:
    """The sums over all documents, with no frame observed."""
    total = sums(model)
    for beliefs, batch in frame_beliefs(model, documents, (settings or ExplainSettings()).batch, advance):
        total.add(beliefs, batch)
    return total.result()


def frame_beliefs(
    model: EventModel, documents: Documents, batch: int, advance: Advance = no_advance
) -> Iterator[tuple[Beliefs, Batch]]:
    """The frames of a split, with no frame observed; ``batch`` documents at a time."""
    for rows in within_bounds(documents.lengths, batch):
        some = collate(documents, rows).to(model.device)
        yield infer_frames(model, some), some
        advance(len(some))
