"""Forecast: p(next frame), p(next head), and the most likely next events after the events of a document.

These are found by a beam search, slot by slot. Where the model is exact, so are the probabilities: the beam
may miss an event, never misjudge one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssdvae.data.batches import Batch
from ssdvae.data.events import END, MISSING, SLOTS, Document, Event, Slots, event_to_record
from ssdvae.inference.inputs import groups, to_batch
from ssdvae.inference.lookup import Substitutes, heads_known, lookup, unknown_words
from ssdvae.inference.output import (
    Candidate,
    Ranked,
    Row,
    ranked,
    slot_columns,
    suggested,
    suggested_heads,
)
from ssdvae.inference.prefixes import (
    NUMBERS,
    PrefixForecasts,
    Rollout,
    Times,
    time_record,
    times_after,
)
from ssdvae.inference.prefixes import every_prefix as prefix_forecasts
from ssdvae.io.errors import UserError
from ssdvae.io.progress import checkpoint
from ssdvae.models.base import FrameModel, LanguageModel, Model, as_frame_model, as_language_model
from ssdvae.models.cases import log_ends
from ssdvae.models.latents import refuse_nan


@dataclass(frozen=True)
class SearchResult:
    """The H most likely next events of each of B documents, the most likely first."""

    tokens: Int[Tensor, "B H slots"]
    log_p: Float[Tensor, "B H"]  # of the whole event, what was fixed included; −∞ where none was left
    heads: Float[Tensor, "B V"]  # log p of every head, given what was fixed
    log_fixed: Float[Tensor, " B"]  # log p of what was fixed: exact if it is the first slots
    bayes: bool  # True if a free slot comes before a fixed one: then ``log_fixed`` is a sum over the beam

    @property
    def log_share(self) -> Float[Tensor, "B H"]:
        """log p given the fixed words."""
        return self.log_p - self.log_fixed[:, None]


def documents_at_once(model: LanguageModel, beam: int) -> int:
    """Return how many documents to search for at once."""
    return max(1, NUMBERS // (beam * len(model.vocabulary)))


def search(
    model: LanguageModel,
    rollout: Rollout,
    fixed: Int[Tensor, "B slots"],
    beam: int,
    specificity: float | None = 0.0,
) -> SearchResult:
    """Return the best next events; ``fixed`` has the known words, −1 where one is searched for.

    They are ranked by log p(event | history) − s log p(event): s is the ``specificity``, None for the default
    of the model, and p(event) is the product of the frequencies of its words in their slots. At s > 0, events
    whose head has another form further up come last.

    Only words that stand in a slot in training are proposed for it, never the unknown word, and an event
    always has a head. Where hardly any training event has the same word in two arguments, none is proposed:
    models of topics find such events too likely. What remains keeps its probability.
    """
    frequency = frequency_term(model, specificity, fixed.device)  # slots V
    size, V = len(fixed), len(model.vocabulary)
    state, latents = rollout.state, rollout.latents
    total = torch.zeros(size, 1, dtype=torch.float64, device=fixed.device)  # B H
    common = total  # s log p(event)
    words = fixed.new_zeros(size, 1, 0)
    document = torch.arange(size, device=fixed.device)[:, None]
    every = torch.arange(V, device=fixed.device)
    last_fixed = int((fixed >= 0).any(0).nonzero().max()) if bool((fixed >= 0).any()) else -1
    log_fixed, heads = total.new_zeros(size), total.new_zeros(size, V)
    for slot in range(fixed.shape[1]):
        checkpoint()
        width = total.shape[1]
        log_p, state = model.next_word(state, latents, words[:, :, -1].flatten() if slot else None, slot)
        refuse_nan(log_p)
        mass = total[..., None] + log_p.view(size, width, V)  # B H V
        if slot == 0:
            heads = mass[:, 0]
        known = fixed[:, slot, None, None]
        free = (every != model.vocabulary.unknown) & ((every != model.vocabulary.missing) | (slot > 0))
        free = free & suggested(model.vocabulary, slot).to(free.device)
        if slot > 1 and model.vocabulary.repeats_are_rare:
            repeated = torch.zeros_like(mass, dtype=torch.bool).scatter(2, words[:, :, 1:], True)
            free = free & (~repeated | (every == model.vocabulary.missing))
        mass = mass.masked_fill(~torch.where(known >= 0, every == known, free), -torch.inf)
        if slot == last_fixed:
            log_fixed = mass.flatten(1).logsumexp(1)
            if slot:
                shares = (mass.logsumexp(2) - log_fixed[:, None]).exp()
                heads = torch.zeros_like(heads).scatter_add(1, words[:, :, 0], shares).log()
            else:
                heads = mass[:, 0] - log_fixed[:, None]
        most = width if bool((known >= 0).all()) else width * V
        ranking = mass if frequency is None else mass - common[..., None] - frequency[slot]
        best = ranking.flatten(1).topk(min(beam, most))
        parent, word = best.indices // V, best.indices % V
        total = mass.flatten(1).gather(1, best.indices)
        if frequency is not None:
            common = common.gather(1, parent) + frequency[slot][word]
        words = torch.cat([words[document, parent], word[..., None]], dim=2)
        rows = (document * width + parent).flatten()
        state, latents = state.select(rows), latents.select(rows)
    if frequency is not None and bool((fixed[:, 0] < 0).all()):
        order = torch.tensor([other_heads_first(model, heads) for heads in words[:, :, 0].tolist()])
        words, total = words[document, order], total[document, order]
    bayes = last_fixed >= 0 and bool((fixed[:, :last_fixed] < 0).any())
    return SearchResult(words, total, heads, log_fixed, bayes)


SPECIFICITY = 0.3
"""The default of models of text: their most likely events are those that are likely anywhere."""

SMOOTHING = 5
"""Added to each count of a word: a word that was hardly ever seen is not worth more than a rare one."""


def frequency_term(
    model: LanguageModel, specificity: float | None, device: torch.device
) -> Float[Tensor, "slots V"] | None:
    """Return s times the log frequency of each word in each slot; None where s is 0."""
    counts = model.vocabulary.slot_counts
    if specificity is None:
        specificity = SPECIFICITY if counts is not None and lookup(model).text else 0.0
    if not specificity:
        return None
    if counts is None:
        raise UserError(
            f"--specificity: found {specificity}, expected 0: the model does not know how frequent words are "
            "in each slot; prepare its corpus again and train it anew"
        )
    smooth = torch.from_numpy(counts).to(device, torch.float64) + SMOOTHING
    return specificity * (smooth / smooth.sum(1, keepdim=True)).log()


def other_heads_first(model: LanguageModel, heads: list[int]) -> list[int]:
    """Return the order of events in which those come last whose head has another form further up."""
    stems = [lookup(model).stem(model.vocabulary.name(head)) for head in heads]
    firsts = {stem: place for place, stem in reversed(list(enumerate(stems)))}
    return sorted(range(len(heads)), key=lambda place: firsts[stems[place]] != place)


FRAME = "frame"
"""The name of the frame among the slots that can be given."""


@dataclass(frozen=True, slots=True)
class NextEvent:
    """A candidate for the next event, with its probability and its most likely frame."""

    event: Event
    probability: float
    frame: Candidate | None

    def to_record(self, slots: Slots) -> dict[str, Any]:
        record = {**event_to_record(self.event, slots), "probability": round(self.probability, 8)}
        if self.frame is None:
            del record["frame"]
        else:
            record |= {"frame": self.frame.name, "frame_probability": round(self.frame.probability, 6)}
        return record


@dataclass(frozen=True, slots=True)
class Forecast:
    """The next-event distribution of a document, conditioned on what is ``given`` of the next event."""

    id: str
    read: int  # events
    given: dict[str, str]
    given_probability: float | None  # p(given); None if nothing is
    frames: Ranked
    heads: Ranked
    events: tuple[NextEvent, ...]
    exact: bool  # False if they are estimates
    note: str  # why they are no exact probabilities, or "exact"
    unknown_words: Substitutes
    head_known: bool  # all heads that were read
    slots: Slots = SLOTS  # of the model
    end_probability: float | None = None  # None if cases do not end, or something of the next event is given
    times: Times = (None, None)  # to the next event, and the rest of the case

    @property
    def outcomes(self) -> list[tuple[str, float]]:
        """The most likely events and the end of the case with their probabilities, the most likely first."""
        found = [(str(event.event), event.probability) for event in self.events]
        found += [] if self.end_probability is None else [(END, self.end_probability)]
        return sorted(found, key=lambda one: -one[1])

    def to_record(self) -> dict[str, Any]:
        record: dict[str, Any] = {"id": self.id, "read": self.read, "exact": self.exact, "note": self.note}
        if self.given:
            record |= {"given": self.given, "given_probability": self.given_probability}
        if self.end_probability is not None:
            record["end_probability"] = round(self.end_probability, 6)
        record |= time_record(self.times)
        if self.frames:
            record["frames"] = [frame.to_record("frame") for frame in self.frames]
        record["heads"] = [head.to_record("head") for head in self.heads]
        record["events"] = [event.to_record(self.slots) for event in self.events]
        return {**record, "head_known": self.head_known, "unknown_words": self.unknown_words}

    def rows(self) -> Iterator[Row]:
        """Yield one row per frame, head and event, and one for the end of the case."""
        if self.end_probability is not None:
            nothing: Row = {**dict.fromkeys(self.slots), "frame": None}
            yield self._row("end", 1, nothing, self.end_probability)
        for kind, names in (("frame", self.frames), ("head", self.heads)):
            for rank, one in enumerate(names, start=1):
                found = {"frame": one.name} if kind == "frame" else {"frame": None, self.slots[0]: one.name}
                yield self._row(kind, rank, {**dict.fromkeys(self.slots), **found}, one.probability)
        for rank, event in enumerate(self.events, start=1):
            frame = {"frame": None if event.frame is None else event.frame.name}
            yield self._row(
                "event", rank, {**slot_columns(event.event, self.slots), **frame}, event.probability
            )

    def _row(self, kind: str, rank: int, found: Row, probability: float) -> Row:
        return {"id": self.id, "kind": kind, "rank": rank, **found, "probability": probability}


def next_events(
    model: Model,
    documents: Iterable[Document],
    given: Mapping[str, str] | None = None,
    top: int = 5,
    beam: int = 100,
    batch: int = 100,
    specificity: float | None = None,
) -> Iterator[Forecast]:
    """Yield the forecast of each document; no more than a batch is held at once."""
    model, known = as_language_model(model), dict(given or {})
    frame, fixed = given_ids(model, known)
    for group in groups(documents, batch):
        answers: dict[int, Forecast] = {}
        # Documents of the same length need no padding.
        for length in sorted({len(document.events) for document in group}):
            places = [place for place, document in enumerate(group) if len(document.events) == length]
            size = documents_at_once(model, beam)
            for start in range(0, len(places), size):
                some = places[start : start + size]
                part = [group[place] for place in some]
                forecasts = _forecast(model, part, known, frame, fixed, top, beam, specificity)
                answers |= zip(some, forecasts, strict=True)
        yield from (answers[place] for place in range(len(group)))


def forecasts(
    model: Model,
    documents: Iterable[Document],
    given: Mapping[str, str] | None = None,
    every_prefix: bool = False,
    **options: Any,
) -> Iterator[Forecast] | Iterator[PrefixForecasts]:
    """Return the forecast of each document or, if ``every_prefix``, those after each of its events."""
    if not every_prefix:
        return next_events(model, documents, given, **options)
    if given:
        raise UserError(
            "--given: found with --every-prefix, which tells what is to be expected; leave out one"
        )
    return prefix_forecasts(model, documents, options["top"], options["batch"])


def given_ids(model: Model, given: Mapping[str, str]) -> tuple[int, list[int]]:
    """Return the ids of the given frame and of the given words by slot, −1 where none is given."""
    known = (FRAME, *model.slots)
    if unknown := [name for name in given if name not in known]:
        raise UserError(f"--given: no slot {unknown[0]!r}; there are: {', '.join(known)}")
    frame = model.frames.find(given[FRAME], "frame") if FRAME in given else -1
    if frame >= 0 and as_frame_model(model) is None:
        raise UserError(f"{model.config.model} has no frames that could be given to it")
    fixed = [
        model.vocabulary.find(_word(model, given[slot]), "word") if slot in given else -1
        for slot in model.slots
    ]
    return frame, fixed


def _word(model: Model, word: str) -> str:
    if word in ("-", "_", MISSING, ""):
        return MISSING
    return word.lower() if model.vocabulary.lowercase else word


@torch.no_grad()
def _forecast(
    model: LanguageModel,
    documents: Sequence[Document],
    given: dict[str, str],
    frame: int,
    fixed: Sequence[int],
    top: int,
    beam: int,
    specificity: float | None,
) -> list[Forecast]:
    read, framed = to_batch(model, documents), as_frame_model(model)
    rollout = Rollout.after(model, read, frame)
    words = torch.tensor(fixed, device=model.device).expand(len(documents), -1)
    found = search(model, rollout, words, max(beam, top), specificity)
    log_frames = rollout.log_frames
    ends = log_ends(model, read) if read.mask.shape[1] else None
    times = times_after(model, read) if read.mask.shape[1] else None
    # A case of which something is given goes on.
    log_more = torch.zeros_like(found.log_fixed) if ends is None else ends[:, -1, 0]
    log_share = found.log_share if given else found.log_share + log_more[:, None]
    log_heads = found.heads if given else found.heads + log_more[:, None]
    by_event = None if framed is None else _frames_of_events(framed, read, found.tokens[:, :top])
    log_given = found.log_fixed + log_more
    if frame >= 0 and log_frames is not None:
        log_given += log_frames[:, frame]
        certain = torch.arange(log_frames.shape[1], device=log_frames.device) == frame
        log_frames = torch.zeros_like(log_frames).masked_fill(~certain, -torch.inf)
    elif framed is not None and log_frames is not None and max(fixed) >= 0:
        # Over all events of the beam, since the given words inform the frame.
        weights = found.log_share.log_softmax(1)
        log_frames = (_frames_of_events(framed, read, found.tokens) + weights[..., None]).logsumexp(1)
    note = _note(model, found)
    answers = []
    for row, document in enumerate(documents):
        events = []
        for place in range(min(top, found.tokens.shape[1])):
            if not torch.isfinite(found.log_p[row, place]):
                break
            names = [model.vocabulary.name(word) for word in found.tokens[row, place].tolist()]
            events.append(
                NextEvent(
                    Event.of_words(names),
                    float(log_share[row, place].exp()),
                    None if by_event is None else ranked(by_event[row, place], model.frames, 1)[0],
                )
            )
        answers.append(
            Forecast(
                id=document.id,
                read=len(document.events),
                given=given,
                given_probability=float(log_given[row].exp()) if given else None,
                frames=() if log_frames is None else ranked(log_frames[row], model.frames, top),
                heads=ranked(suggested_heads(log_heads[row], model.vocabulary), model.vocabulary, top),
                events=tuple(events),
                exact=not model.conditions_on_targets and not found.bayes,
                note=note,
                unknown_words=unknown_words(model, document.events),
                head_known=heads_known(model, document.events),
                slots=model.slots,
                end_probability=None if ends is None or given else float(ends[row, -1, 1].exp()),
                times=(None, None) if times is None or given else times[row][-1],
            )
        )
    return answers


def _note(model: LanguageModel, found: SearchResult) -> str:
    notes = []
    if model.conditions_on_targets:
        notes.append("estimates: latent variables are rolled out from the events that were read")
    if found.bayes:
        notes.append("a later slot is given: normalised over the beam")
    return "; ".join(notes) or "exact"


def _frames_of_events(
    model: FrameModel, read: Batch, events: Int[Tensor, "B H slots"]
) -> Float[Tensor, "B H F"]:
    """Return log q(frame) of events that would follow those that were read."""
    log_q = model.posterior(followed_by(read, events)).log_q
    return log_q[:, -1].double().view(*events.shape[:2], -1)


def followed_by(read: Batch, events: Int[Tensor, "B H slots"]) -> Batch:
    """Return B · H documents: each of B documents of the same length, followed by each of H events."""
    rows = torch.arange(len(read), device=events.device).repeat_interleave(events.shape[1])
    return Batch.of_words(torch.cat([read.tokens[rows], events.flatten(0, 1)[:, None]], dim=1))
