"""Scripts from a seed, or from nothing: what could have happened next.

The frames of the whole script are rolled out after reading the seed, as in the paper, or drawn from the
prior; then the words follow one by one, each given the seed, the frames, and the words before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssdvae.answers.decoding import Choose, forbidden, sampling, searching
from ssdvae.answers.infer import infer_documents
from ssdvae.answers.inputs import to_batch
from ssdvae.config import GenerateSettings
from ssdvae.data.batches import Batch, Noise, generator, in_order
from ssdvae.data.events import SLOTS, Document, Event, Slots, event_to_record
from ssdvae.errors import UserError
from ssdvae.models.base import (
    LanguageModel,
    LatentQuery,
    Latents,
    Model,
    Sampler,
    as_language_model,
    categorical,
    most_likely,
    refuse_nan,
)


@dataclass(frozen=True)
class ScriptEvent:
    """An event with the frame that it was made from, and the one inferred when the script is read again.

    Both are None in a model without frames; the first also where the frame was summed out.
    """

    event: Event
    planned: str | None
    inferred: str | None
    probability: float | None  # of the inferred frame


@dataclass(frozen=True)
class Script:
    """The seed, and what was generated after it.

    ``log_prob`` is that of the generated words, given the seed and the planned frames: the model's own,
    whatever was forbidden and however they were drawn.
    """

    events: tuple[ScriptEvent, ...]
    seeds: int
    log_prob: float
    slots: Slots = SLOTS  # of the model

    def to_record(self) -> dict[str, Any]:
        """For JSON."""
        events = [{**vars(e), "event": event_to_record(e.event, self.slots)} for e in self.events]
        return {"log_prob": self.log_prob, "seeds": self.seeds, "events": events}


@torch.no_grad()
def generate(
    model: Model,
    settings: GenerateSettings | None = None,
    *,
    seed_events: Sequence[Event] = (),
    frames: Sequence[str | None] = (),
) -> list[Script]:
    """Scripts that begin with the seed, the likeliest first; without a seed, such as the model thinks of.

    ``frames`` are those of the events after the seed, None where one is left to the model. They are observed
    as in training: likelier, not certain. The frames of the seed events themselves are not looked at.
    """
    model, settings = as_language_model(model), settings or GenerateSettings()
    seed, observed = _seed(model, settings, seed_events, frames)
    written: list[Written] = []
    if settings.method == "sample":
        for rows in in_order(settings.scripts, settings.batch):
            # The numbers of a script do not depend on how many others are drawn at once.
            mine = slice(int(rows[0]), int(rows[-1]) + 1)
            for_frames, for_words = (
                Noise(generator(settings.seed, "generate", purpose), settings.scripts, mine)
                for purpose in ("frames", "words")
            )
            seeds, asked = _copies(seed, len(rows)), observed.expand(len(rows), -1)
            latents = _latents(model, seeds, asked, categorical, for_frames)
            written.append(_write(model, settings, seeds, latents, sampling(settings, for_words.uniform)))
    else:
        unused = Noise(torch.Generator(), 1)
        latents = _latents(model, seed, observed, most_likely, unused)
        beam = settings.beam if settings.method == "beam" else 1
        written.append(_write(model, settings, seed, latents, searching(beam)))
    scripts = [script for part in written for script in _scripts(model, seed_events, part)]
    return sorted(scripts, key=lambda script: -script.log_prob)[: settings.scripts]


@torch.no_grad()
def sample_continuations(
    model: Model, seeds: Batch, observed: Int[Tensor, "B N"], settings: GenerateSettings
) -> Int[Tensor, "B N slot"]:
    """One script after each of many seeds, in numbers and with the seed; each has frames of its own."""
    model, length = as_language_model(model), settings.changed(events=observed.shape[1] - seeds.mask.shape[1])
    for_frames, for_words = (
        Noise(generator(settings.seed, "generate", purpose), len(seeds)) for purpose in ("frames", "words")
    )
    latents = _latents(model, seeds, observed, categorical, for_frames)
    return _write(model, length, seeds, latents, sampling(length, for_words.uniform)).tokens


def _seed(
    model: Model, settings: GenerateSettings, events: Sequence[Event], frames: Sequence[str | None]
) -> tuple[Batch, Int[Tensor, "1 N"]]:
    """The seed in numbers, and the frames that are observed in the whole script."""
    if not events and frames:
        raise UserError("frames are given to what follows a seed event, and there is none")
    if len(frames) > settings.events:
        raise UserError(f"found {len(frames)} frames for the {settings.events} events after the seed")
    observed = torch.full((1, len(events) + settings.events), -1)
    for place, name in enumerate(frames, start=len(events)):
        if name is not None:
            observed[0, place] = model.frames.find(name, "frame")
    return to_batch(model, [Document("seed", tuple(events))]), observed.to(model.device)


def _latents(
    model: LanguageModel, seeds: Batch, observed: Int[Tensor, "B N"], sampler: Sampler, noise: Noise
) -> Latents:
    """Return the latent variables of a script after each seed."""
    latents = model.latents(LatentQuery.continuing(seeds, observed, sampler, noise))
    if latents.frames is None and (observed >= 0).any():
        raise UserError(f"{model.config.model} has no frames that could be given to it")
    return latents


def _copies(batch: Batch, size: int) -> Batch:
    return batch.each(lambda part: part.expand(size, *part.shape[1:]))


@dataclass(frozen=True)
class Written:
    """Scripts in numbers."""

    tokens: Int[Tensor, "R N S"]
    latents: Latents
    log_p: Float[Tensor, " R"]


def _write(
    model: LanguageModel, settings: GenerateSettings, seeds: Batch, latents: Latents, choose: Choose
) -> Written:
    """Write the words of each script, one after another."""
    state, tokens = model.start(seeds, latents), seeds.tokens
    latents = latents.after(seeds.mask.shape[1])
    total = torch.zeros(len(tokens), dtype=torch.float64, device=tokens.device)
    for _ in range(settings.events):
        words = tokens.new_zeros(len(tokens), 0)  # of the event being written
        for slot in range(len(model.slots)):
            log_p, state = model.next_word(state, latents, words[:, -1] if slot else None, slot)
            refuse_nan(log_p)
            log_p = log_p.double().masked_fill(
                forbidden(tokens, words, model.vocabulary, settings), -torch.inf
            )
            if not (log_p > -torch.inf).any(1).all():
                raise UserError("no word is left that would repeat no event: let the script be shorter")
            rows, word = choose(log_p, total)
            total = total[rows] + log_p[rows, word]
            state, latents, tokens = state.select(rows), latents.select(rows), tokens[rows]
            words = torch.cat([words[rows], word[:, None]], dim=1)
        _, state = model.next_word(state, latents, words[:, -1], len(model.slots))
        latents = latents.after(1)
        tokens = torch.cat([tokens, words[:, None]], dim=1)
    return Written(tokens, latents, total)


def _scripts(model: Model, seed: Sequence[Event], written: Written) -> list[Script]:
    """Words and frames by their names; where there are frames, every script is read once more."""
    names, frames = model.vocabulary.name, written.latents.frames
    documents = [
        Document("script", (*seed, *(Event.of_words([*map(names, words)]) for words in script)))
        for script in written.tokens[:, len(seed) :].tolist()
    ]
    if frames is None or not len(model.frames):
        events = [tuple(ScriptEvent(event, None, None, None) for event in d.events) for d in documents]
    else:
        events = [
            tuple(
                ScriptEvent(
                    read.event, None if frame < 0 else model.frames.name(frame), read.frame, read.probability
                )
                for read, frame in zip(document.events, planned, strict=True)
            )
            for document, planned in zip(infer_documents(model, documents), frames.tolist(), strict=True)
        ]
    scores = written.log_p.tolist()
    return [
        Script(script, len(seed), log_p, model.slots) for script, log_p in zip(events, scores, strict=True)
    ]
