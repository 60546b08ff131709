"""The posterior of frames: of batches, of splits, and of documents as answers to `infer`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.data.batches import Batch, collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.data.events import SLOTS, Document, Event, Slots, event_to_record
from ssdvae.data.vocabulary import UNNAMED, Inventory
from ssdvae.inference.inputs import answer_each, to_batch
from ssdvae.inference.lookup import Substitutes, all_unknown, lookup
from ssdvae.inference.output import Ranked, Row, ranked_everywhere, slot_columns
from ssdvae.io.errors import UserError
from ssdvae.io.progress import Advance, no_advance
from ssdvae.models.base import FrameModel, LatentModel, Model
from ssdvae.models.latents import FramePosterior, LatentPosterior

log = logging.getLogger(__name__)

ATTENTION_EVENTS = 64
"""Events of a document whose attention is returned, at most: one number per pair of event and word."""

NAMING_DOCUMENTS, NAMING_BATCH = 1_000, 100
"""Documents that unnamed frames are named after, at most, and how many are read at once."""

NAMING_HEADS = 2
"""Heads in the name of an unnamed frame, at most."""


def infer_latents(model: Model, batch: Batch) -> LatentPosterior | None:
    """Return the posterior of the latent variables of each document; None for a model without any.

    A model that was trained on windows reads longer documents as such windows. The posterior of an event is
    that of the window in which it is farthest from the ends; the ends of the document do not count.
    """
    if not isinstance(model, LatentModel) or not model.latent_shape[1]:
        return None
    window, stride = model.context_window.window, model.context_window.stride
    size, longest = batch.mask.shape
    if not isinstance(model, FrameModel) or window is None or stride is None or longest <= window:
        return model.posterior(batch)
    tokens, frames, lengths = (
        part.cpu().numpy().astype(np.int32)
        for part in (batch.tokens.flatten(0, 1), batch.frames.flatten(), batch.mask.sum(1))
    )
    # The padding stays between the documents.
    ids, starts = pa.chunked_array([[""] * size]), longest * np.arange(size)
    parts = Documents(ids, tokens, frames, starts, lengths).windows(window, stride)
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
    """Return, for each event of padded documents, the window event (of Σ_w |w|) with its posterior."""
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


def frame_posteriors(
    model: Model, documents: Documents, batch: int, advance: Advance = no_advance
) -> Iterator[tuple[FramePosterior, Batch]]:
    """Yield the posterior of each batch of a split, with no frame observed."""
    for rows in within_bounds(documents.lengths, batch):
        some = collate(documents, rows).to(model.device)
        yield infer_frames(model, some), some
        advance(len(some))


@dataclass(frozen=True, slots=True)
class InferredEvent:
    """An event with the probabilities of its frames (``FrameModel.posterior``).

    Its frame is None if the model has not seen its head, and reads no other in its place: the probabilities
    then come from the rest of the document alone.
    """

    event: Event
    observed: str | None  # the frame that the model was given
    frames: Ranked  # the most likely first, at least one
    attention: tuple[float, ...] | None = None  # on each word of the document, event by event
    head_known: bool = True
    has_evidence: bool = True  # of the head that is read

    @property
    def frame(self) -> str | None:
        return self.frames[0].name if self.has_evidence or self.observed is not None else None

    @property
    def probability(self) -> float | None:
        return None if self.frame is None else self.frames[0].probability

    @property
    def gold(self) -> str | None:
        return self.event.frame

    def to_record(self, slots: Slots) -> dict[str, Any]:
        record = gold_record(self.event, slots)
        unknown = self.frame is None
        best = {"frame": None, "probability": None} if unknown else self.frames[0].to_record("frame")
        record |= {"head_known": self.head_known, "observed": self.observed, **best}
        if len(self.frames) > 1:
            record["alternatives"] = [f.to_record("frame") for f in self.frames[not unknown :]]
        if self.attention is not None:
            record["attention"] = [round(share, 4) for share in self.attention]
        return record


@dataclass(frozen=True, slots=True)
class InferredDocument:
    """The events of a document with their frames."""

    id: str
    events: tuple[InferredEvent, ...]
    unknown_words: Substitutes
    slots: Slots = SLOTS  # of the model

    def to_record(self) -> dict[str, Any]:
        """Return the document as it was read, with the frames of each event."""
        return {
            "id": self.id,
            "unknown_words": self.unknown_words,
            "events": [event.to_record(self.slots) for event in self.events],
        }

    def rows(self) -> Iterator[Row]:
        """Yield one row per event."""
        for number, event in enumerate(self.events, start=1):
            yield {
                "id": self.id,
                "event": number,
                **slot_columns(event.event, self.slots),
                "gold": event.gold,
                "observed": event.observed,
                "frame": event.frame,
                "probability": event.probability,
                "head_known": event.head_known,
            }


def gold_record(event: Event, slots: Slots) -> dict[str, Any]:
    """Return the record of an event, with its known frame under the name ``gold``."""
    record = event_to_record(event.changed(alternatives=()), slots)
    return {("gold" if name == "frame" else name): value for name, value in record.items()}


def infer_documents(
    model: Model,
    documents: Iterable[Document],
    batch: int = 200,
    lowercase: bool | None = None,
    observe_frames: bool = False,
    top: int = 1,
    attention: bool = False,
) -> Iterator[InferredDocument]:
    """Yield the ``top`` frames of each event of documents; no more than a batch is held at once.

    With ``observe_frames``, the known frames are evidence: more likely, as in training, or certain in the
    exact model. ``attention`` adds the attention of a model that has it, for documents that are not long.
    """
    warned = model.any_length

    def answer(some: Sequence[Document]) -> Iterator[InferredDocument]:
        nonlocal warned
        longest = max(len(document.events) for document in some)
        if not warned and (warning := model.context_window.beyond(longest)) is not None:
            log.warning(warning)
            warned = True
        return _documents(
            model, some, to_batch(model, some, lowercase, observe_frames), top, attention, lowercase
        )

    def empty(document: Document) -> InferredDocument:
        return InferredDocument(document.id, (), {}, model.slots)

    return answer_each(documents, batch, answer, empty)


def _documents(
    model: Model,
    documents: Sequence[Document],
    batch: Batch,
    top: int,
    attention: bool,
    lowercase: bool | None,
) -> Iterator[InferredDocument]:
    posterior = infer_frames(model, batch)
    frames = ranked_everywhere(posterior.log_q, model.frames, top)
    observed, known = batch.observed.tolist(), lookup(model)
    for row, document in enumerate(documents):
        weights: list[list[float]] | None = None
        if attention and posterior.attention is not None and len(document.events) <= ATTENTION_EVENTS:
            weights = posterior.attention.of(row, len(document.events)).tolist()
        words = batch.tokens.shape[2] * len(document.events)
        read = [known.read(event, lowercase) for event in document.events]
        yield InferredDocument(
            document.id,
            tuple(
                InferredEvent(
                    event=event,
                    observed=None if frame < 0 else model.frames.name(frame),
                    frames=frames[row][m],
                    attention=None if weights is None else tuple(weights[m][:words]),
                    head_known=read[m].head_known,
                    has_evidence=read[m].has_evidence,
                )
                for m, (event, frame) in enumerate(zip(document.events, observed[row], strict=False))
            ),
            all_unknown(read),
            model.slots,
        )


def name_frames(model: Model, documents: Documents, named: int) -> None:
    """Name the frames after the first ``named`` by their most frequent heads, as in ``~updated/closed``."""
    count = min(NAMING_DOCUMENTS, len(documents))
    rows = np.unique(np.linspace(0, len(documents) - 1, count).astype(np.int64))
    counts = np.zeros((len(model.frames), len(model.vocabulary)), dtype=np.int64)
    training = model.training
    model.eval()
    for posterior, batch in frame_posteriors(model, documents.take(rows), NAMING_BATCH):
        heads, frames = batch.tokens[..., 0][batch.mask].cpu(), posterior.value[batch.mask].cpu()
        np.add.at(counts, (frames.numpy(), heads.numpy()), 1)
    model.train(training)
    names = [*model.frames.names[:named], *unnamed_names(counts[named:], model.vocabulary.names)]
    used = [*model.frames.counts[:named], *counts[named:].sum(1).tolist()]
    model.frames = Inventory(names, used)


def unnamed_names(counts: NDArray[np.int64], words: Sequence[str]) -> list[str]:
    """Return different names, one per row of head counts; a frame that was never inferred gets a number."""
    names: list[str] = []
    for number, row in enumerate(counts, start=1):
        best = [words[head] for head in np.argsort(-row, kind="stable")[:NAMING_HEADS] if row[head]]
        name = plain = UNNAMED + ("/".join(best) or str(number))
        again = 1
        while name in names:
            again += 1
            name = f"{plain}:{again}"
        names.append(name)
    return names
