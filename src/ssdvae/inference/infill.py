"""Infilling: candidates for missing events or words of a document, given what comes before and after.

Candidates are the most likely ones after what comes before (``search``), reweighted by what comes after:

    p(c | before, after) ∝ p(c | before) p(after | before, c)

normalised over the candidates, which are ranked as those of a forecast. Where cases end, what comes after
includes the end. Where the model is not exact, both factors are estimates, made as in the cloze: what is
there is encoded, and the latent variables of what follows are rolled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssdvae.data.batches import Batch, in_order
from ssdvae.data.events import HOLE, SLOTS, Document, Event, Slots, event_to_record, map_events
from ssdvae.inference.forecast import frequency_term, other_heads_first, search
from ssdvae.inference.inputs import to_batch
from ssdvae.inference.lookup import Substitutes, heads_known, unknown_words
from ssdvae.inference.output import Ranked, Row, ranked, slot_columns
from ssdvae.inference.prefixes import Rollout
from ssdvae.inference.surprisal import Kind, kind_of
from ssdvae.models.base import LanguageModel, Model, as_frame_model, as_language_model
from ssdvae.models.cases import log_ends
from ssdvae.models.latents import LatentQuery


@dataclass(frozen=True, slots=True)
class Filling:
    """A candidate for an event with missing words."""

    event: Event
    probability: float  # given both sides
    before: float  # given what comes before alone, among the same candidates

    def to_record(self, slots: Slots) -> dict[str, Any]:
        return {
            **slot_columns(self.event, slots),
            "probability": round(self.probability, 6),
            "before": round(self.before, 6),
        }


@dataclass(frozen=True, slots=True)
class Hole:
    """An event with missing words, and its candidates."""

    place: int  # of the event, from 0
    slots: tuple[str, ...]  # that are missing
    fillings: tuple[Filling, ...]  # the most likely first
    frames: Ranked  # empty in a model without frames

    def to_record(self, slots: Slots) -> dict[str, Any]:
        record: dict[str, Any] = {"event": self.place + 1, "slots": self.slots}
        if self.frames:
            record["frames"] = [frame.to_record("frame") for frame in self.frames]
        return {**record, "candidates": [filling.to_record(slots) for filling in self.fillings]}


@dataclass(frozen=True, slots=True)
class FilledDocument:
    """A document with the most likely words in all holes, and the other candidates."""

    id: str
    events: tuple[Event, ...]
    holes: tuple[Hole, ...]
    kind: Kind  # exact, or estimates
    unknown_words: Substitutes
    head_known: bool  # all heads that were read
    slots: Slots = SLOTS  # of the model

    @property
    def next_hole(self) -> int | None:
        """The place of the first event with missing words that is not filled yet; None if all are."""
        start = self.holes[-1].place + 1 if self.holes else 0
        return next(
            (place for place in range(start, len(self.events)) if HOLE in self.events[place].words), None
        )

    def to_record(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "kind": self.kind,
            "events": [event_to_record(event, self.slots) for event in self.events],
            "holes": [hole.to_record(self.slots) for hole in self.holes],
            "head_known": self.head_known,
            "unknown_words": self.unknown_words,
        }

    def rows(self) -> Iterator[Row]:
        """Yield one row per candidate."""
        for hole in self.holes:
            for rank, filling in enumerate(hole.fillings, start=1):
                yield {
                    "id": self.id,
                    "event": hole.place + 1,
                    "rank": rank,
                    **slot_columns(filling.event, self.slots),
                    "probability": filling.probability,
                    "before": filling.before,
                }


def missing_slots(event: Event, slots: int) -> tuple[int, ...]:
    """Return the slots of an event whose word is missing."""
    if event.words == (HOLE,):
        return tuple(range(slots))
    return tuple(slot for slot, word in enumerate(event.words) if word == HOLE)


def with_holes(document: Any) -> Any:
    """Return a document as users write it, with a hole in the place of each event that is None."""
    return map_events(document, lambda events: [Event(HOLE) if e is None else e for e in events])


def fill_documents(
    model: Model,
    documents: Iterable[Document],
    top: int = 5,
    beam: int = 100,
    batch: int = 200,
    specificity: float | None = None,
    open: bool = False,
) -> Iterator[FilledDocument]:
    """Yield documents with their holes filled from the left; cases that are not ``open`` end."""
    for document in documents:
        filled = unfilled(model, document)
        while filled.next_hole is not None:
            filled = fill_next(model, filled, top, beam, batch, specificity, open)
        yield filled


def unfilled(model: Model, document: Document) -> FilledDocument:
    """Return a document none of whose holes are filled yet."""
    model = as_language_model(model)
    unknown, known = unknown_words(model, document.events), heads_known(model, document.events)
    return FilledDocument(document.id, document.events, (), kind_of(model), unknown, known, model.slots)


def fill_next(
    model: Model,
    document: FilledDocument,
    top: int = 5,
    beam: int = 100,
    batch: int = 200,
    specificity: float | None = None,
    open: bool = False,
) -> FilledDocument:
    """Return the document with its first hole filled.

    Later holes are left out while it is filled; earlier ones keep their most likely filling.
    """
    model, place, events = as_language_model(model), document.next_hole, list(document.events)
    assert place is not None
    after = [event for event in events[place + 1 :] if HOLE not in event.words]
    missing = missing_slots(events[place], len(model.slots))
    # An end says nothing of this hole if another one comes after it.
    over = not open and not any(HOLE in event.words for event in events[place + 1 :])
    hole, events[place] = _fill(
        model, events[:place], events[place], after, missing, top, beam, batch, specificity, over
    )
    return replace(document, events=tuple(events), holes=(*document.holes, hole))


@torch.no_grad()
def _fill(
    model: LanguageModel,
    before: list[Event],
    event: Event,
    after: list[Event],
    missing: tuple[int, ...],
    top: int,
    beam: int,
    batch: int,
    specificity: float | None,
    over: bool,
) -> tuple[Hole, Event]:
    start = to_batch(model, [Document("", tuple(before))])
    fixed = to_batch(model, [Document("", (event,))]).tokens[:, 0]
    for slot in missing:
        fixed[:, slot] = -1
    found = search(model, Rollout.after(model, start), fixed, beam, specificity)
    possible = torch.isfinite(found.log_p[0])
    candidates, log_p = found.tokens[0, possible], found.log_p[0, possible]
    log_before = log_p.log_softmax(0)
    rest = to_batch(model, [Document("", tuple(after))]).tokens
    framed, later, by_frame = as_frame_model(model), [], []
    for rows in in_order(len(candidates), batch):
        some = candidates[torch.from_numpy(rows).to(model.device)]
        later.append(_continued(model, between(start.tokens, some, rest[:, :0]), rest))
        ends = log_ends(model, between(start.tokens, some, rest))
        if ends is not None:
            later[-1] += ends[:, len(before) : -1, 0].sum(1) + (ends[:, -1, 1] if over else 0)
        if framed is not None:
            posterior = framed.posterior(between(start.tokens, some, rest))
            by_frame.append(posterior.log_q[:, len(before)].double())
    log_p = log_p + torch.cat(later)
    log_share = log_p.log_softmax(0)
    frequency, ranking = frequency_term(model, specificity, candidates.device), log_share
    if frequency is not None:
        ranking = log_share - frequency.gather(1, candidates.T).sum(0)
    order = ranking.argsort(descending=True, stable=True)
    if frequency is not None and 0 in missing:
        order = order[torch.tensor(other_heads_first(model, candidates[order, 0].tolist()))]
    given = event.padded(len(model.slots))  # including unknown words
    names = [
        [model.vocabulary.name(word) if slot in missing else given[slot] for slot, word in enumerate(words)]
        for words in candidates[order].tolist()
    ]
    fillings = tuple(
        Filling(Event.of_words(words), float(log_share[row].exp()), float(log_before[row].exp()))
        for words, row in zip(names[:top], order.tolist(), strict=False)
    )
    frames: Ranked = ()
    if by_frame:
        frames = ranked((torch.cat(by_frame) + log_share[:, None]).logsumexp(0), model.frames, top)
    hole = Hole(len(before), tuple(model.slots[slot] for slot in missing), fillings, frames)
    return hole, Event.of_words(names[0])


def _continued(model: LanguageModel, begun: Batch, rest: Int[Tensor, "one L slots"]) -> Float[Tensor, " H"]:
    """Return log p(rest | beginning) of each beginning, its latent variables rolled out from there."""
    if not rest.shape[1]:
        return torch.zeros(len(begun), dtype=torch.float64, device=rest.device)
    latents = model.latents(LatentQuery.roll_out(begun, rest.shape[1]))
    options = rest.expand(len(begun), -1, -1)[:, None]
    return model.continuations(begun, latents, options)[:, 0].double()


def between(
    before: Int[Tensor, "one K slots"], candidates: Int[Tensor, "H slots"], after: Int[Tensor, "one L slots"]
) -> Batch:
    """Return H documents: the same one with each of H events in the same place."""
    rows = len(candidates)
    parts = (before.expand(rows, -1, -1), candidates[:, None], after.expand(rows, -1, -1))
    return Batch.of_words(torch.cat(parts, dim=1))
