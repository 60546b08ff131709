"""Surprisal: nats of every slot, event and document, given what came before; percentiles and anomalies.

Where the model is exact, surprisals are −log p. Otherwise they are estimates, made as in the cloze: the
events before are encoded, the latent variables of the next event are rolled out, and its words are scored.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from ssdvae.data.batches import Batch, Noise, collate, within_bounds
from ssdvae.data.corpus import Corpus
from ssdvae.data.documents import Documents
from ssdvae.data.events import END, SLOTS, Document, Event, Slots
from ssdvae.data.options import Split
from ssdvae.inference.forecast import Forecast, next_events
from ssdvae.inference.inputs import answer_each, to_batch
from ssdvae.inference.lookup import Substitutes, all_unknown, lookup
from ssdvae.inference.options import AnomalyOptions
from ssdvae.inference.output import Ranked, Row, ranked_everywhere, slot_columns
from ssdvae.inference.posterior import gold_record
from ssdvae.inference.prefixes import Rollout
from ssdvae.io.errors import UserError
from ssdvae.io.progress import SILENT, Advance, Progress, checkpoint, no_advance
from ssdvae.models.base import LanguageModel, Model, as_frame_model, as_language_model
from ssdvae.models.cases import forecast_times, log_ends
from ssdvae.models.latents import refuse_nan
from ssdvae.models.quantiles import SurprisalQuantiles, percentile
from ssdvae.models.times import time_targets

Kind = Literal["exact", "estimate"]

QUANTILE_DOCUMENTS = 1_000
"""Documents that quantiles are computed from, at most."""

log = logging.getLogger(__name__)


UNUSUAL = 0.05
"""The probability of a time below which an event is called late or early."""


@dataclass(frozen=True, slots=True)
class ScoredEvent:
    """An event with its surprisal, that of each of its words, and its most likely frames.

    The end of a case is an event of its own after the others, whose head is ``END``.
    """

    event: Event
    nats: float
    slots: tuple[float, ...]  # nats by slot
    percentile: float | None  # of the nats, against the validation split
    slot_percentiles: tuple[float, ...] | None
    frames: Ranked  # empty in a model without frames, and if it has not seen the head
    head_known: bool = True
    later: float | None = None  # p(at least so long after the event before); next to 0 it is late
    earlier: float | None = None  # p(at most so long, to the second); next to 0 it is early

    @property
    def lateness(self) -> str:
        """Say whether the event came late or early, and how likely a time as long or as short is."""
        tails = (("late", self.later), ("early", self.earlier))
        for name, p in tails:
            if p is not None and p < UNUSUAL:
                return f"{name}, {max(p, 0.001):.1%}{' at most' * (p < 0.001)}"
        return ""

    def to_record(self, names: Slots) -> dict[str, Any]:
        record = {**gold_record(self.event, names), "nats": round(self.nats, 6)}
        record["head_known"] = self.head_known
        if self.percentile is not None:
            record["percentile"] = round(self.percentile, 2)
        record["slot_nats"] = dict(zip(names, (round(x, 6) for x in self.slots), strict=True))
        if self.slot_percentiles is not None:
            shares = (round(x, 2) for x in self.slot_percentiles)
            record["slot_percentiles"] = dict(zip(names, shares, strict=True))
        if self.frames:
            record["frames"] = [frame.to_record("frame") for frame in self.frames]
        tails = {"later": self.later, "earlier": self.earlier}
        return record | {name: round(p, 6) for name, p in tails.items() if p is not None}


@dataclass(frozen=True, slots=True)
class ScoredDocument:
    """The events of a document with their surprisals."""

    id: str
    events: tuple[ScoredEvent, ...]
    percentile: float | None  # of the mean over its events
    kind: Kind  # an estimate if the model has not seen some head
    unknown_words: Substitutes
    slots: Slots = SLOTS  # of the model

    @property
    def nats(self) -> float:
        return sum((event.nats for event in self.events), 0.0)

    @property
    def mean_nats(self) -> float:
        return self.nats / max(len(self.events), 1)

    @property
    def worst(self) -> int:
        """The place of the most surprising event."""
        return max(range(len(self.events)), key=lambda place: self.events[place].nats)

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"id": self.id, "nats": round(self.nats, 6), "kind": self.kind}
        if self.percentile is not None:
            record["percentile"] = round(self.percentile, 2)
        events = [event.to_record(self.slots) for event in self.events]
        return {**record, "unknown_words": self.unknown_words, "events": events}

    def rows(self) -> Iterator[Row]:
        """Yield one row per event."""
        timed = any(event.later is not None for event in self.events)
        for number, event in enumerate(self.events, start=1):
            best = event.frames[0] if event.frames else None
            yield {
                "id": self.id,
                "event": number,
                **slot_columns(event.event, self.slots),
                "nats": event.nats,
                "percentile": _or_nan(event.percentile),
                **{f"nats_{slot}": value for slot, value in zip(self.slots, event.slots, strict=True)},
                "frame": None if best is None else best.name,
                "frame_probability": math.nan if best is None else best.probability,
                "document_nats": self.nats,
                "document_percentile": _or_nan(self.percentile),
                "kind": self.kind,
                **({} if not timed else {"later": event.later, "earlier": event.earlier}),
            }


def _or_nan(share: float | None) -> float:
    return math.nan if share is None else share


@dataclass(frozen=True)
class Surprisals:
    """−log p of the words and events of documents; 0 at padding."""

    slots: Float[Tensor, "B M slots"]
    events: Float[Tensor, "B M"]
    kind: Kind
    ends: Float[Tensor, " B"] | None  # of the end of each case after its last event


def kind_of(model: LanguageModel) -> Kind:
    """Return whether the surprisals of a model are exact or estimates."""
    return "estimate" if model.conditions_on_targets else "exact"


@torch.no_grad()
def surprisals(model: LanguageModel, batch: Batch) -> Surprisals:
    """Return the nats of every slot and event given those before. A document depends on no other one.

    Where cases end, that a case went on to an event is part of the head's nats.
    """
    kind = kind_of(model)
    if kind == "exact":
        log_p = model.word_log_probs(batch, Noise(torch.Generator(), len(batch))).double()
    else:
        log_p = torch.zeros(batch.tokens.shape, dtype=torch.float64, device=batch.tokens.device)
        for event in range(batch.mask.shape[1]):
            checkpoint()
            rows = batch.mask[:, event].nonzero()[:, 0]
            part = batch.rows(rows)
            rollout = Rollout.after(model, part.first(event))
            words = Batch.of_words(part.tokens[:, event : event + 1])
            log_p[rows, event] = model.log_probs(words, rollout.latents, rollout.state)[:, 0].double()
    ends = log_ends(model, batch)
    if ends is not None:
        log_p[:, 1:, 0] += ends[:, :-1, 0] * batch.mask[:, 1:]
        last = batch.mask.sum(1, keepdim=True) - 1
        ends = -ends[..., 1].gather(1, last)[:, 0]
    refuse_nan(log_p)
    return Surprisals(-log_p, -log_p.sum(-1), kind, ends)


def score_documents(
    model: Model,
    documents: Iterable[Document],
    batch: int = 200,
    frames: int = 1,
    open: bool = False,
    quantiles: SurprisalQuantiles | None = None,
) -> Iterator[ScoredDocument]:
    """Yield the surprisals of documents, with the most likely ``frames`` of each event.

    Where cases end, the end is scored as an event, unless they are ``open``. Percentiles are taken against
    ``quantiles``, by default those that are saved with the model. No more than a batch is held at once.
    """
    quantiles = model.quantiles if quantiles is None else quantiles
    scoring = as_language_model(model)

    def empty(document: Document) -> ScoredDocument:
        return ScoredDocument(document.id, (), None, kind_of(scoring), {}, model.slots)

    return answer_each(documents, batch, lambda some: _scored(scoring, some, frames, open, quantiles), empty)


def _scored(
    model: LanguageModel,
    documents: Sequence[Document],
    top: int,
    open: bool,
    quantiles: SurprisalQuantiles | None,
) -> Iterator[ScoredDocument]:
    batch = to_batch(model, documents)
    found, framed = surprisals(model, batch), as_frame_model(model)
    frames = None
    if framed is not None:
        with torch.no_grad():
            frames = ranked_everywhere(framed.posterior(batch).log_q, model.frames, top)
    slot_nats, event_nats = found.slots.cpu().numpy(), found.events.cpu().numpy()
    ends = None if open or found.ends is None else found.ends.cpu().numpy()
    known, tails = lookup(model), time_tails(model, batch)
    for row, document in enumerate(documents):
        count, read = len(document.events), [known.read(event) for event in document.events]
        slots, events = slot_nats[row, :count], event_nats[row, :count]
        if ends is not None:
            events = np.append(events, ends[row])
        shares = slot_shares = whole = None
        if quantiles is not None:
            shares, slot_shares = _percentiles(quantiles, events, slots)
            whole = float(percentile(events.mean(keepdims=True), quantiles.document)[0])
        scored = [
            ScoredEvent(
                event=event,
                nats=float(events[m]),
                slots=tuple(slots[m].tolist()),
                percentile=None if shares is None else shares[m],
                slot_percentiles=None if slot_shares is None else tuple(slot_shares[m]),
                frames=frames[row][m] if frames is not None and read[m].has_evidence else (),
                head_known=read[m].head_known,
                **({} if tails is None or not m else tails[row][m - 1]),
            )
            for m, event in enumerate(document.events)
        ]
        if ends is not None:
            nats, share = float(ends[row]), None if shares is None else shares[-1]
            nothing = (0.0,) * (len(model.slots) - 1)
            scored.append(ScoredEvent(Event(END), nats, (nats, *nothing), share, None, ()))
        yield ScoredDocument(
            document.id,
            tuple(scored),
            whole,
            found.kind if all(event.head_known for event in read) else "estimate",
            all_unknown(read),
            model.slots,
        )


def _percentiles(
    quantiles: SurprisalQuantiles, events: NDArray[np.float64], slots: NDArray[np.float64]
) -> tuple[list[float], list[list[float]]]:
    """Return the percentiles of the events of a document and their slots, first events among first ones."""
    shares, slot_shares = [], []
    for place, some in enumerate((slice(0, 1), slice(1, None))):
        by_event, by_slot = quantiles.at(place)
        shares.append(percentile(events[some], by_event))
        columns = [percentile(slots[some, s], values) for s, values in enumerate(by_slot)]
        slot_shares.append(np.stack(columns, axis=1))
    return np.concatenate(shares).tolist(), np.concatenate(slot_shares).tolist()


def time_tails(model: Model, batch: Batch) -> list[list[dict[str, float | None]]] | None:
    """Return p(at least so long) and p(at most so long) of the time after each event; None without times."""
    found = forecast_times(model, batch)
    if found is None or batch.times is None:
        return None
    gap, _ = time_targets(batch.times, batch.mask, None)
    later, earlier = found.gap.survival(gap), 1 - found.gap.survival(gap + 1)
    tails = torch.stack([later, earlier], dim=-1).tolist()
    names = ("later", "earlier")
    return [
        [dict(zip(names, (None if math.isnan(p) else p for p in pair), strict=True)) for pair in row]
        for row in tails
    ]


def split_quantiles(
    model: LanguageModel,
    documents: Documents,
    split: str,
    batch: int = 200,
    advance: Advance = no_advance,
) -> SurprisalQuantiles:
    """Return the quantiles of surprisal over the first documents of a split."""
    some = documents.take(np.arange(min(QUANTILE_DOCUMENTS, len(documents))))
    first: tuple[list[Any], list[Any]] = [], []  # nats by slot, and by event
    later: tuple[list[Any], list[Any]] = [], []
    means = []
    for rows in within_bounds(some.lengths, batch):
        part = collate(some, rows).to(model.device)
        found, mask = surprisals(model, part), part.mask.cpu().numpy()
        by_event = found.events.cpu().numpy()
        for (slots, events), places in ((first, slice(0, 1)), (later, slice(1, None))):
            slots.append(found.slots.cpu().numpy()[:, places][mask[:, places]])
            events.append(by_event[:, places][mask[:, places]])
        total, count = by_event.sum(1), mask.sum(1)
        if found.ends is not None and part.ends is not None:
            over = part.ends.any(1).cpu().numpy()
            ends = found.ends.cpu().numpy() * over
            later[1].append(ends[over])
            total, count = total + ends, count + over
        means.append(total / count)
        advance(len(part))
    together = (np.concatenate(parts) for parts in (*first, *later, means))
    return SurprisalQuantiles.of(split, kind_of(model), *together)


def compute_quantiles(
    model: Model, corpus: Corpus, split: Split = "valid", progress: Progress = SILENT
) -> None:
    """Set the quantiles of a model to those of a split, of as many events as it was trained on."""
    documents = corpus.split(split).first(model.context_window.measured)
    with progress.task("surprisal quantiles", min(QUANTILE_DOCUMENTS, len(documents))) as advance:
        model.quantiles = split_quantiles(as_language_model(model), documents, split, advance=advance)


def save_quantiles(model: Model, corpus: Corpus, folder: Path, progress: Progress = SILENT) -> None:
    """Compute the quantiles of a model and save them in its folder, if that can be written to."""
    compute_quantiles(model, corpus, progress=progress)
    assert model.quantiles is not None
    try:
        model.quantiles.write(folder)
    except (OSError, UserError) as error:
        log.warning(f"the surprisal quantiles are not saved: {error}")


@dataclass(frozen=True)
class Anomaly:
    """A surprising event, and the forecast from the events before it."""

    document: ScoredDocument
    place: int  # in the document, from 0
    expected: Forecast
    by: Literal["event", "case"] = "event"  # what was ranked

    @property
    def id(self) -> str:
        return self.document.id

    @property
    def scored(self) -> ScoredEvent:
        return self.document.events[self.place]

    def to_record(self) -> dict[str, Any]:
        slots, share, end = self.expected.slots, self.document.percentile, self.expected.end_probability
        record = {"id": self.id, "event": self.place + 1, **self.scored.to_record(slots)}
        record["document_nats"] = round(self.document.nats, 6)
        if share is not None:
            record["document_percentile"] = round(share, 2)
        record["expected"] = [event.to_record(slots) for event in self.expected.events]
        return record if end is None else {**record, "end_probability": end}

    def rows(self) -> Iterator[Row]:
        """Yield one row, with the most likely outcome of the forecast."""
        best = next(iter(self.expected.outcomes), None)
        yield {
            "id": self.id,
            "event": self.place + 1,
            **slot_columns(self.scored.event, self.expected.slots),
            "nats": self.scored.nats,
            "percentile": _or_nan(self.scored.percentile),
            "document_nats": self.document.nats,
            "document_percentile": _or_nan(self.document.percentile),
            "later": _or_nan(self.scored.later),
            "earlier": _or_nan(self.scored.earlier),
            "expected": None if best is None else best[0],
        }


def _ranked_by(
    document: ScoredDocument, medians: Sequence[float], by: Literal["event", "case"]
) -> list[tuple[float, int]]:
    """Return what to rank: nats and place of each event, or of the case and its most surprising one."""
    events = [(event.nats - medians[min(place, 1)], place) for place, event in enumerate(document.events)]
    return events if by == "event" else [(document.mean_nats, max(events)[1])]


def find_anomalies(
    model: Model, documents: Iterable[ScoredDocument], options: AnomalyOptions
) -> list[Anomaly]:
    """Return the events with the highest surprisal; no more than ``top`` documents are held.

    Where quantiles are known, it is that beyond the median of first events, or of later ones. By case: the
    documents with the highest mean surprisal, each with its most surprising event.
    """
    medians = [0.0, 0.0]
    if (quantiles := model.quantiles) is not None:
        medians = [float(np.median(quantiles.at(place)[0])) for place in (0, 1)]
    found: Iterator[tuple[float, int, int, ScoredDocument]] = (
        (nats, -number, place, document)
        for number, document in enumerate(documents)
        if document.events
        for nats, place in _ranked_by(document, medians, options.by)
    )
    best = heapq.nlargest(options.top, found, key=lambda one: one[:3])
    histories = [
        Document(document.id, tuple(event.event for event in document.events[:place]))
        for *_, place, document in best
    ]
    forecasts = next_events(model, histories, top=options.expected, beam=options.beam, batch=options.batch)
    return [
        Anomaly(document, place, expected, options.by)
        for (*_, place, document), expected in zip(best, forecasts, strict=True)
    ]
