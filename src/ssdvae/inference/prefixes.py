"""What follows after every event of documents, in one pass: next head, next frame, end and times.

A left-to-right model has the distribution of the next head in the state after each separator. So one pass
over the documents, and one more separator at their ends, gives what ``Rollout.after`` gives prefix by prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from ssdvae.data.batches import Batch
from ssdvae.data.events import SLOTS, Document, Event, Slots
from ssdvae.data.process import duration_text
from ssdvae.inference.inputs import groups, to_batch
from ssdvae.inference.output import Ranked, Row, ranked_everywhere, slot_columns, suggested_heads
from ssdvae.io.progress import checkpoint
from ssdvae.models.base import DecoderOutput, LanguageModel, Model, State, as_language_model
from ssdvae.models.cases import CaseModel, forecast_times, log_ends
from ssdvae.models.latents import LatentQuery, Latents, refuse_nan
from ssdvae.models.times import DAY, TimeMixture

NUMBERS = 6_000_000
"""Probabilities that are held at once."""


@dataclass(frozen=True)
class Rollout:
    """Documents that were read once, before their next event: latent variables, state and p(frame)."""

    latents: Latents
    state: State
    log_frames: Float[Tensor, "B F"] | None  # log p(next frame); None in a model without frames

    @classmethod
    @torch.no_grad()
    def after(cls, model: LanguageModel, read: Batch, frame: int = -1) -> Rollout:
        """Encode documents of the same length and roll out the next event, whose frame may be given."""
        frames = None if frame < 0 else torch.full((len(read),), frame, device=model.device)
        latents = model.latents(LatentQuery.roll_out(read, 1, frames))
        state, latents = model.start(read, latents), latents.after(read.mask.shape[1])
        return cls(latents, state, model.next_frame(latents, state) if len(model.frames) else None)


@torch.no_grad()
def head_log_probs(model: LanguageModel, rollout: Rollout) -> Float[Tensor, "B V"]:
    """Return log p of every head of the next event, if there is one."""
    log_p, _ = model.next_word(rollout.state, rollout.latents, None, 0)
    return log_p.double()


@dataclass(frozen=True)
class Prefixes:
    """Some prefixes of the documents of a batch, and what follows them."""

    rows: Int[Tensor, " N"]  # the document
    places: Int[Tensor, " N"]  # the last event of the prefix
    log_heads: Float[Tensor, "N V"]  # includes that the case goes on
    log_frames: Float[Tensor, "N F"] | None
    log_end: Float[Tensor, " N"] | None  # None where cases do not end


Part = tuple[Tensor, Tensor, Tensor, Tensor | None]
"""Documents, places, log p of heads if the case goes on, and of frames."""


@torch.no_grad()
def read_once(model: Model, batch: Batch) -> DecoderOutput | None:
    """Return the states on documents with one more separator; None if each prefix must be read by itself."""
    if not isinstance(model, CaseModel) or model.conditions_on_targets:
        return None
    longer = Batch.of_words(functional.pad(batch.tokens, (0, 0, 0, 1)))
    latents = model.latents(LatentQuery.roll_out(longer, 0))
    inputs, start = model.word_reader(longer.tokens), model.decoder.init_state(latents)
    decoded: DecoderOutput = model.decoder(inputs, start, latents)
    return replace(decoded, states=decoded.states[:, 1:], ends=decoded.ends[:, :-1])


def after_every_event(
    model: LanguageModel, batch: Batch, decoded: DecoderOutput | None = None
) -> Iterator[Prefixes]:
    """Yield what follows each prefix of one event or more, no more than ``NUMBERS`` probabilities at once.

    ``decoded`` is what ``read_once`` returns, if it is there already.
    """
    decoded, (rows, places) = decoded or read_once(model, batch), batch.mask.nonzero(as_tuple=True)
    ends = log_ends(model, batch, None if decoded is None else decoded.ends)
    size = max(1, NUMBERS // len(model.vocabulary))
    if decoded is not None and isinstance(model, CaseModel):
        states = decoded.states[:, :, 0]
        starts, next_heads = range(0, len(rows), size), torch.no_grad()(model.next_heads)
        pieces = ((rows[start : start + size], places[start : start + size]) for start in starts)
        parts: Iterable[Part] = ((*piece, *next_heads(states[piece])) for piece in pieces)
    else:
        parts = _one_by_one(model, batch)
    for row, place, log_heads, log_frames in parts:
        checkpoint()
        refuse_nan(log_heads)
        log_heads, end = log_heads.double(), None
        if ends is not None:
            log_heads, end = log_heads + ends[row, place, :1], ends[row, place, 1]
        yield Prefixes(row, place, log_heads, log_frames, end)


def _one_by_one(model: LanguageModel, batch: Batch) -> Iterator[Part]:
    """Yield the same for a model that must read each prefix by itself."""
    for place in range(batch.mask.shape[1]):
        row = batch.mask[:, place].nonzero()[:, 0]
        rollout = Rollout.after(model, batch.rows(row).first(place + 1))
        yield row, torch.full_like(row, place), head_log_probs(model, rollout), rollout.log_frames


SHARE = 0.8
"""The probability of the interval that is shown beside a median."""


@dataclass(frozen=True, slots=True)
class TimeInterval:
    """The median of a time in seconds, and the central interval of probability ``SHARE``."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, mixture: TimeMixture) -> list[TimeInterval]:
        """Return the intervals of distributions, a row each."""
        points = (0.5, (1 - SHARE) / 2, (1 + SHARE) / 2)
        return [cls(*one) for one in zip(*[mixture.quantile(p).tolist() for p in points], strict=True)]

    def to_record(self) -> dict[str, float]:
        return {f"{name}_days": round(getattr(self, name) / DAY, 6) for name in ("median", "low", "high")}

    @property
    def short(self) -> str:
        """Return the median and the interval in little space: 1.2 d (3 h–6 d)."""
        middle, low, high = (duration(x, short=True) for x in (self.median, self.low, self.high))
        return middle if low == high else f"{middle} ({low}–{high})"

    def __str__(self) -> str:
        """Return the median and the interval in words, of which what is less than a minute is one part."""
        middle, low, high = map(duration, (self.median, self.low, self.high))
        if low == high:
            return middle
        spread = f"up to {high}" if low == MOMENT else f"between {low} and {high}"
        return f"{middle}, {SHARE:.0%} {spread}"


MOMENT = "less than a minute"


def duration(seconds: float, short: bool = False) -> str:
    """Return a time in words: 1.2 days, or 1.2 d."""
    if seconds < 60:
        return "<1 min" if short else MOMENT
    return duration_text(seconds, short)


Times = tuple[TimeInterval | None, TimeInterval | None]
"""The time to the next event and the remaining time of a case; None where they are not known."""


def times_after(model: Model, batch: Batch, decoded: DecoderOutput | None = None) -> list[list[Times]] | None:
    """Return the times after every event; None for a model or documents without times."""
    found = forecast_times(model, batch, None if decoded is None else decoded.ends)
    if found is None or batch.times is None:
        return None
    lengths = batch.mask.sum(1).tolist()
    there = batch.mask & (~batch.times.isnan() | ~batch.mask).all(1, keepdim=True)  # where all are known
    gaps = iter(TimeInterval.of(found.gap.select(there)))
    rests = iter(TimeInterval.of(found.rest.select(there))) if log_ends_known(model) else repeat(None)
    return [
        [(next(gaps), next(rests)) if known else (None, None) for _ in range(length)]
        for length, known in zip(lengths, there.any(1).tolist(), strict=True)
    ]


def log_ends_known(model: Model) -> bool:
    """Tell whether the model knows where cases end, so that they have a remaining time."""
    return isinstance(model, CaseModel) and model.end is not None


def time_columns(times: Times) -> Row:
    """Return times as columns of a table, in days."""
    names = zip(("next", "remaining"), times, strict=True)
    return {f"{n}_{k}": v for n, one in names if one is not None for k, v in one.to_record().items()}


def time_record(times: Times) -> dict[str, Any]:
    """Return times as parts of a JSON record."""
    names = zip(("next_time", "remaining_time"), times, strict=True)
    return {name: one.to_record() for name, one in names if one is not None}


@dataclass(frozen=True, slots=True)
class Prefix:
    """The forecast after one event."""

    event: Event  # the last one that is read
    heads: Ranked
    frames: Ranked
    end_probability: float | None
    times: Times


@dataclass(frozen=True, slots=True)
class PrefixForecasts:
    """The forecasts after every event of a document."""

    id: str
    prefixes: tuple[Prefix, ...]
    slots: Slots = SLOTS  # of the model

    def to_record(self) -> dict[str, Any]:
        return {"id": self.id, "prefixes": [self._record(n, p) for n, p in enumerate(self.prefixes, 1)]}

    def _record(self, read: int, prefix: Prefix) -> dict[str, Any]:
        record: dict[str, Any] = {"read": read, **slot_columns(prefix.event, self.slots)}
        if prefix.end_probability is not None:
            record["end_probability"] = round(prefix.end_probability, 6)
        record |= time_record(prefix.times)
        if prefix.frames:
            record["frames"] = [frame.to_record("frame") for frame in prefix.frames]
        return {**record, "heads": [head.to_record("head") for head in prefix.heads]}

    def rows(self) -> Iterator[Row]:
        """Yield one row per prefix, with the most likely heads."""
        for read, prefix in enumerate(self.prefixes, start=1):
            row: Row = {"id": self.id, "read": read, **slot_columns(prefix.event, self.slots)}
            if prefix.end_probability is not None:
                row["end_probability"] = prefix.end_probability
            for rank, head in enumerate(prefix.heads, start=1):
                row |= {f"next_{rank}": head.name, f"probability_{rank}": head.probability}
            yield {**row, **time_columns(prefix.times)}


def every_prefix(
    model: Model, documents: Iterable[Document], top: int = 5, batch: int = 100
) -> Iterator[PrefixForecasts]:
    """Yield what follows after every event of each document; no more than a batch is held at once."""
    model = as_language_model(model)
    for group in groups(documents, batch):
        full = [document for document in group if document.events]
        found = iter(_answers(model, full, top) if full else ())
        for document in group:
            yield PrefixForecasts(document.id, tuple(next(found)) if document.events else (), model.slots)


def _answers(model: LanguageModel, documents: Sequence[Document], top: int) -> list[list[Prefix]]:
    read = to_batch(model, documents)
    decoded = read_once(model, read)
    times = times_after(model, read, decoded)
    answers: list[list[Prefix]] = [[] for _ in documents]
    for part in after_every_event(model, read, decoded):
        heads = ranked_everywhere(
            suggested_heads(part.log_heads, model.vocabulary)[None], model.vocabulary, top
        )[0]
        frames: list[Ranked] = [()] * len(heads)
        if part.log_frames is not None:
            frames = ranked_everywhere(part.log_frames[None], model.frames, top)[0]
        ends = [None] * len(heads) if part.log_end is None else part.log_end.exp().tolist()
        where = zip(part.rows.tolist(), part.places.tolist(), strict=True)
        for (row, place), head, frame, end in zip(where, heads, frames, ends, strict=True):
            when = (None, None) if times is None else times[row][place]
            answers[row].append(Prefix(documents[row].events[place], head, frame, end, when))
    return answers
