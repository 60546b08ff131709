"""How surprising events are: nats of every slot, event and document, given what came before.

Where the model is exact these are −log p. Otherwise they are estimates, made as in the cloze: the events
before are encoded, the latent variables of the next event are rolled out, and its words are scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ssdvae.answers.infer import as_given
from ssdvae.answers.inputs import groups, to_batch
from ssdvae.answers.ranked import Ranked, ranked_everywhere
from ssdvae.answers.search import Ahead
from ssdvae.answers.table import Row, slot_columns
from ssdvae.answers.unknown import count_unknown
from ssdvae.data.batches import Batch, Noise, collate, within_bounds
from ssdvae.data.documents import Documents
from ssdvae.data.events import SLOTS, Document, Event, Slots
from ssdvae.models.base import LanguageModel, Model, as_frame_model, as_language_model, refuse_nan
from ssdvae.models.typical import Typical, percentile
from ssdvae.progress import Advance, no_advance

Kind = Literal["exact", "estimate"]

MEASURED = 1_000
"""Documents behind the quantiles of what is usual, at most."""


@dataclass(frozen=True, slots=True)
class ScoredEvent:
    """An event, how surprising it and each of its words are, and what frame the model takes it to have."""

    event: Event
    nats: float
    slots: tuple[float, ...]  # nats of each word
    percentile: float | None  # how many in a hundred events of the validation split are less surprising
    slot_percentiles: tuple[float, ...] | None
    frames: Ranked  # none of a model that infers none

    def to_record(self, names: Slots) -> dict[str, Any]:
        record = {**as_given(self.event, names), "nats": round(self.nats, 6)}
        if self.percentile is not None:
            record["percentile"] = round(self.percentile, 2)
        record["slot_nats"] = dict(zip(names, (round(x, 6) for x in self.slots), strict=True))
        if self.slot_percentiles is not None:
            shares = (round(x, 2) for x in self.slot_percentiles)
            record["slot_percentiles"] = dict(zip(names, shares, strict=True))
        if self.frames:
            record["frames"] = [frame.to_record("frame") for frame in self.frames]
        return record


@dataclass(frozen=True, slots=True)
class ScoredDocument:
    """The events of a document with their nats, which sum to its own."""

    id: str
    events: tuple[ScoredEvent, ...]
    percentile: float | None  # of the mean over its events
    kind: Kind
    unknown_words: int
    slots: Slots = SLOTS  # of the model

    @property
    def nats(self) -> float:
        return sum((event.nats for event in self.events), 0.0)

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"id": self.id, "nats": round(self.nats, 6), "kind": self.kind}
        if self.percentile is not None:
            record["percentile"] = round(self.percentile, 2)
        events = [event.to_record(self.slots) for event in self.events]
        return {**record, "unknown_words": self.unknown_words, "events": events}

    def rows(self) -> Iterator[Row]:
        """For tables: one row an event."""
        for number, event in enumerate(self.events, start=1):
            best = event.frames[0] if event.frames else None
            yield {
                "id": self.id,
                "event": number,
                **slot_columns(event.event, self.slots),
                "nats": event.nats,
                "percentile": math.nan if event.percentile is None else event.percentile,
                **{f"nats_{slot}": value for slot, value in zip(self.slots, event.slots, strict=True)},
                "frame": None if best is None else best.name,
                "frame_probability": math.nan if best is None else best.probability,
                "document_nats": self.nats,
                "kind": self.kind,
            }


@dataclass(frozen=True)
class Nats:
    """−log p of some documents; 0 at padding."""

    slots: Float[Tensor, "B M slots"]
    events: Float[Tensor, "B M"]
    kind: Kind


def kind_of(model: LanguageModel) -> Kind:
    """Return what the nats of a model are."""
    return "estimate" if model.conditions_on_targets else "exact"


@torch.no_grad()
def nats(model: LanguageModel, batch: Batch) -> Nats:
    """Return nats of every slot and event given those before; those of a document depend on no other."""
    kind = kind_of(model)
    if kind == "exact":
        log_p = model.word_log_probs(batch, Noise(torch.Generator(), len(batch))).double()
    else:
        log_p = torch.zeros(batch.tokens.shape, dtype=torch.float64, device=batch.tokens.device)
        for event in range(batch.mask.shape[1]):
            rows = batch.mask[:, event].nonzero()[:, 0]
            part = batch.rows(rows)
            ahead = Ahead.after(model, part.first(event))
            words = Batch.of_words(part.tokens[:, event : event + 1])
            log_p[rows, event] = model.log_probs(words, ahead.latents, ahead.state)[:, 0].double()
    refuse_nan(log_p)
    return Nats(-log_p, -log_p.sum(-1), kind)


def score_documents(
    model: Model,
    documents: Iterable[Document],
    batch: int = 200,
    top: int = 1,
    typical: Typical | None = None,
) -> Iterator[ScoredDocument]:
    """How surprising documents are, one after another; no more than a batch is held at once.

    ``typical`` is what percentiles are taken of, by default what is kept with the model. ``top`` frames of
    each event are told.
    """
    model, usual = as_language_model(model), model.typical if typical is None else typical
    for group in groups(documents, batch):
        full = [document for document in group if document.events]
        rows = iter(_scored(model, full, top, usual)) if full else iter(())
        for document in group:
            yield next(rows) if document.events else _nothing(model, document)


def _nothing(model: LanguageModel, document: Document) -> ScoredDocument:
    return ScoredDocument(document.id, (), None, kind_of(model), 0, model.slots)


def _scored(
    model: LanguageModel,
    documents: Sequence[Document],
    top: int,
    usual: Typical | None,
) -> Iterator[ScoredDocument]:
    batch = to_batch(model, documents)
    found, framed = nats(model, batch), as_frame_model(model)
    frames = None
    if framed is not None:
        with torch.no_grad():
            frames = ranked_everywhere(framed.posterior(batch).log_q, model.frames, top)
    by_slot, by_event = found.slots.cpu().numpy(), found.events.cpu().numpy()
    unknown = count_unknown(model, batch)
    for row, document in enumerate(documents):
        count = len(document.events)
        slots, events = by_slot[row, :count], by_event[row, :count]
        shares = slot_shares = whole = None
        if usual is not None:
            shares = percentile(events, usual.event).tolist()
            columns = [percentile(slots[:, s], quantiles) for s, quantiles in enumerate(usual.slots)]
            slot_shares = np.stack(columns, axis=1).tolist()
            whole = float(percentile(events.mean(keepdims=True), usual.document)[0])
        yield ScoredDocument(
            document.id,
            tuple(
                ScoredEvent(
                    event=event,
                    nats=float(events[m]),
                    slots=tuple(slots[m].tolist()),
                    percentile=None if shares is None else shares[m],
                    slot_percentiles=None if slot_shares is None else tuple(slot_shares[m]),
                    frames=() if frames is None else frames[row][m],
                )
                for m, event in enumerate(document.events)
            ),
            whole,
            found.kind,
            unknown[row],
            model.slots,
        )


def typical_of(
    model: LanguageModel,
    documents: Documents,
    split: str,
    batch: int = 200,
    advance: Advance = no_advance,
) -> Typical:
    """What is usual in a split: quantiles over its first documents."""
    some = documents.take(np.arange(min(MEASURED, len(documents))))
    slots, events, means = [], [], []
    for rows in within_bounds(some.lengths, batch):
        part = collate(some, rows).to(model.device)
        found, mask = nats(model, part), part.mask.cpu().numpy()
        by_event = found.events.cpu().numpy()
        slots.append(found.slots.cpu().numpy()[mask])
        events.append(by_event[mask])
        means.append(by_event.sum(1) / mask.sum(1))
        advance(len(part))
    together = (np.concatenate(parts) for parts in (slots, events, means))
    return Typical.of(split, kind_of(model), *together)
