"""The frames that a model infers, batch by batch: what all analyses begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.config import ExplainSettings
from ssdvae.data.batches import Batch, collate, within_bounds
from ssdvae.data.corpus import Documents
from ssdvae.errors import UserError
from ssdvae.models.base import FrameModel, FramePosterior, LatentModel, LatentPosterior, Model
from ssdvae.progress import Advance, no_advance

Result = TypeVar("Result", covariant=True)


def infer_latents(model: Model, batch: Batch) -> LatentPosterior | None:
    """Return the posterior of the latent variables of each document; None for a model without any.

    A model that was trained on windows reads longer documents as such windows. The posterior of an event is
    that of the window in which it is farthest from the ends; the ends of the document do not count.
    """
    if not isinstance(model, LatentModel) or not model.latent_shape[1]:
        return None
    window, stride, (size, longest) = model.reading.window, model.reading.stride, batch.mask.shape
    if not isinstance(model, FrameModel) or window is None or stride is None or longest <= window:
        return model.posterior(batch)
    tokens, frames, lengths = (
        part.cpu().numpy().astype(np.int32) for part in (batch.tokens, batch.frames, batch.mask.sum(1))
    )
    documents = Documents.of_padded(pa.chunked_array([[""] * size]), tokens, frames, lengths)
    parts = documents.windows(window, stride)
    rows, observed = np.arange(len(parts)), batch.observed.flatten().cpu().numpy().astype(np.int32)
    some = collate(parts, rows, observed).to(batch.mask.device)
    posterior = model.posterior(some)
    choice = torch.from_numpy(_innermost(parts, longest, lengths)).to(batch.mask.device)

    def together(values: Tensor) -> Tensor:
        return values[some.mask][choice].view(size, longest, *values.shape[2:])

    log_q, clusters = together(posterior.log_q), posterior.clusters
    if clusters is not None:
        slots = batch.tokens.shape[2]
        hidden = clusters.hidden.view(len(parts), -1, slots, clusters.hidden.shape[-1])
        clusters = replace(clusters, hidden=together(hidden).flatten(1, 2), log_q=log_q)
    by_part = {name: together(part) for name, part in (posterior.parts or {}).items()}
    return FramePosterior(log_q, batch.mask, clusters=clusters, parts=by_part)


def _innermost(windows: Documents, longest: int, lengths: NDArray[np.int32]) -> NDArray[np.int64]:
    """Of which event of which window each event of padded documents takes its beliefs: one of Σ_w |w|."""
    places, there = windows.places(np.arange(len(windows)))
    document, start = np.divmod(windows.starts, longest)
    inside, size = np.arange(places.shape[1]), windows.lengths[:, None]
    begins, ends = start == 0, start + windows.lengths == lengths[document]
    left = np.where(begins[:, None], longest, inside)
    right = np.where(ends[:, None], longest, size - 1 - inside)
    order = np.argsort(np.minimum(left, right)[there], kind="stable")
    choice = np.zeros(len(lengths) * longest, dtype=np.int64)
    choice[places[there][order]] = order  # the last one that is written stays
    return choice


def infer_frames(model: Model, batch: Batch) -> FramePosterior:
    """Return the posterior of the frames of each document; refuse a model that has none."""
    with torch.no_grad():
        posterior = infer_latents(model, batch)
    if not isinstance(posterior, FramePosterior):
        what = "has no frames" if posterior is None else "has latent variables that are not frames"
        raise UserError(f"{model.config.model} {what}: there are no frames to look at")
    posterior.check_finite()
    return posterior


class Sums(Protocol[Result]):
    """Something that is summed over a split, whose size does not depend on the number of documents."""

    def add(self, beliefs: FramePosterior, batch: Batch) -> None: ...

    def result(self) -> Result: ...


def accumulate_over_split(
    sums: Callable[[Model], Sums[Result]],
    model: Model,
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
    model: Model, documents: Documents, batch: int, advance: Advance = no_advance
) -> Iterator[tuple[FramePosterior, Batch]]:
    """The frames of a split, with no frame observed; ``batch`` documents at a time."""
    for rows in within_bounds(documents.lengths, batch):
        some = collate(documents, rows).to(model.device)
        yield infer_frames(model, some), some
        advance(len(some))
