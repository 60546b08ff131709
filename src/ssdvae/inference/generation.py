"""Generate scripts after seed events, or from nothing.

The frames of the whole script are rolled out after reading the seed, as in the paper, or drawn from the
prior; then the words follow one by one, each given the seed, the frames, and the words before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ssdvae.data.batches import Batch, Noise, generator, in_order
from ssdvae.data.events import SLOTS, Document, Event, Slots, event_to_record
from ssdvae.data.vocabulary import Vocabulary
from ssdvae.inference.inputs import to_batch
from ssdvae.inference.options import GenerateOptions
from ssdvae.inference.output import suggested
from ssdvae.inference.posterior import infer_documents
from ssdvae.io.errors import UserError
from ssdvae.io.progress import checkpoint
from ssdvae.models.base import LanguageModel, Model, as_language_model
from ssdvae.models.cases import CaseModel, log_ends, with_ends
from ssdvae.models.latents import LatentQuery, Latents, Sampler, categorical, most_likely, refuse_nan

WordChoice = Callable[
    [Float[Tensor, "R V"], Float[Tensor, " R"]], tuple[Int[Tensor, " K"], Int[Tensor, " K"]]
]
"""From log p(word) of R scripts (−∞: forbidden) and log p of each script so far, to the rows of the K scripts
that continue and their words."""


def nucleus(
    log_p: Float[Tensor, "R V"], temperature: float = 1.0, top_p: float = 1.0
) -> Float[Tensor, "R V"]:
    """Return p^(1/τ) restricted to the fewest most likely words that sum to ``top_p`` or more, normalised."""
    p = (log_p.double() / temperature).softmax(-1)
    ordered = p.sort(dim=-1, descending=True, stable=True)
    # A word is left out if those before it are enough.
    left_out = ordered.values.cumsum(-1) - ordered.values >= top_p
    kept = p.masked_fill(left_out.gather(-1, ordered.indices.argsort(-1)), 0)
    return kept / kept.sum(-1, keepdim=True)


def draw(p: Float[Tensor, "R V"], uniform: Float[Tensor, " R"]) -> Int[Tensor, " R"]:
    """Return the word at which the cumulative probability passes u ∈ [0, 1), one u per script."""
    sums = p.cumsum(-1)
    # In doubles a float u below 1 stays below the sum of all; so the word that is found has a probability.
    return torch.searchsorted(sums, uniform.to(sums)[:, None] * sums[:, -1:], right=True)[:, 0]


def sampling(options: GenerateOptions, uniform: Callable[[], Float[Tensor, " R"]]) -> WordChoice:
    """Return the choice that samples a word for every script; ``uniform`` gives a number for each."""

    def choose(
        log_p: Float[Tensor, "R V"], total: Float[Tensor, " R"]
    ) -> tuple[Int[Tensor, " R"], Int[Tensor, " R"]]:
        p = nucleus(log_p, options.temperature, options.top_p)
        return torch.arange(len(p), device=p.device), draw(p, uniform())

    return choose


def searching(beam: int) -> WordChoice:
    """Return the choice of beam search: the ``beam`` most likely scripts continue; 1 is greedy."""

    def choose(
        log_p: Float[Tensor, "R V"], total: Float[Tensor, " R"]
    ) -> tuple[Int[Tensor, " K"], Int[Tensor, " K"]]:
        scores = (total[:, None] + log_p).flatten()
        best = scores.topk(min(beam, int((scores > -torch.inf).sum()))).indices
        return best // log_p.shape[1], best % log_p.shape[1]

    return choose


def forbidden(
    events: Int[Tensor, "R K S"],
    words: Int[Tensor, "R slot"],
    vocabulary: Vocabulary,
    options: GenerateOptions,
) -> Bool[Tensor, "R V"]:
    """Return the words that cannot come next, after K events and the first words of another.

    Only words that stand in the slot in training are proposed, never the unknown word, and an event always
    has a head. ``repeat`` and ``distinct_roles`` may forbid more; arguments that hardly any training event
    repeats are not repeated.
    """
    (R, slot), last = words.shape, events.shape[-1] - 1
    banned = (~suggested(vocabulary, slot)).to(words.device).repeat(R, 1)
    banned[:, vocabulary.unknown] = True
    if slot == 0:
        banned[:, vocabulary.missing] = True
    if slot > 1 and (options.distinct_roles or vocabulary.repeats_are_rare):
        # Two empty slots are not the same thing in two roles.
        rows, place = (words[:, 1:] != vocabulary.missing).nonzero(as_tuple=True)
        banned[rows, words[rows, 1 + place]] = True
    if slot == last and not options.repeat:
        rows, event = (events[:, :, :last] == words[:, None]).all(-1).nonzero(as_tuple=True)
        banned[rows, events[rows, event, last]] = True
    return banned


@dataclass(frozen=True)
class ScriptEvent:
    """A generated event, with the frame it was generated from and the frame inferred from the script.

    Both are None in a model without frames; the first also where the frame was summed out, the second where
    the head was never seen in training.
    """

    event: Event
    planned: str | None
    inferred: str | None
    probability: float | None  # of the inferred frame


@dataclass(frozen=True)
class Script:
    """The seed events, and the events generated after them.

    ``log_prob`` is that of the generated words, and of the end if the case has ``ended``, given the seed and
    the planned frames: the model's own, whatever was forbidden and however they were drawn.
    """

    events: tuple[ScriptEvent, ...]
    seeds: int
    log_prob: float
    slots: Slots = SLOTS  # of the model
    ended: bool | None = None  # None in a model without ends

    def to_record(self) -> dict[str, Any]:
        """Return the JSON record."""
        events = [{**vars(e), "event": event_to_record(e.event, self.slots)} for e in self.events]
        ended = {} if self.ended is None else {"ended": self.ended}
        return {"log_prob": self.log_prob, "seeds": self.seeds, **ended, "events": events}


@torch.no_grad()
def generate(
    model: Model,
    options: GenerateOptions | None = None,
    *,
    seed_events: Sequence[Event] = (),
    frames: Sequence[str | None] = (),
) -> list[Script]:
    """Return scripts that begin with the seed events, if any, the most likely first.

    ``frames`` are those of the events after the seed, None where one is left to the model. They are observed
    as in training: more likely, not certain. The frames of the seed events are ignored.
    """
    model, options = as_language_model(model), options or GenerateOptions()
    seed, observed = _seed(model, options, seed_events, frames)
    written: list[GeneratedScripts] = []
    if options.method == "sample":
        for rows in in_order(options.scripts, options.batch):
            # The noise of a script does not depend on how many others are drawn at once.
            mine = slice(int(rows[0]), int(rows[-1]) + 1)
            for_frames, for_words = (
                Noise(generator(options.seed, "generate", purpose), options.scripts, mine)
                for purpose in ("frames", "words")
            )
            seeds, asked = _copies(seed, len(rows)), observed.expand(len(rows), -1)
            latents = _latents(model, seeds, asked, categorical, for_frames)
            written.append(_write(model, options, seeds, latents, sampling(options, for_words.uniform)))
    else:
        unused = Noise(torch.Generator(), 1)
        latents = _latents(model, seed, observed, most_likely, unused)
        beam = options.beam if options.method == "beam" else 1
        written.append(_write(model, options, seed, latents, searching(beam)))
    scripts = [script for part in written for script in _scripts(model, seed_events, part)]
    return sorted(scripts, key=lambda script: -script.log_prob)[: options.scripts]


@torch.no_grad()
def sample_continuations(
    model: Model, seeds: Batch, observed: Int[Tensor, "B N"], options: GenerateOptions
) -> Int[Tensor, "B N slot"]:
    """Return one script after each of many seeds, as word ids; each has its own observed frames."""
    model, length = as_language_model(model), options.changed(events=observed.shape[1] - seeds.mask.shape[1])
    for_frames, for_words = (
        Noise(generator(options.seed, "generate", purpose), len(seeds)) for purpose in ("frames", "words")
    )
    latents = _latents(model, seeds, observed, categorical, for_frames)
    return _write(model, length, seeds, latents, sampling(length, for_words.uniform), ends=False).tokens


def _seed(
    model: Model, options: GenerateOptions, events: Sequence[Event], frames: Sequence[str | None]
) -> tuple[Batch, Int[Tensor, "1 N"]]:
    """Return the seed as a batch, and the observed frames of the whole script."""
    if not events and frames:
        raise UserError("frames are given to what follows a seed event, and there is none")
    if len(frames) > options.events:
        raise UserError(f"found {len(frames)} frames for the {options.events} events after the seed")
    observed = torch.full((1, len(events) + options.events), -1)
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
class GeneratedScripts:
    """Scripts as word ids. After its end a script has events without a head."""

    tokens: Int[Tensor, "R N S"]
    latents: Latents
    log_p: Float[Tensor, " R"]


def _write(
    model: LanguageModel,
    options: GenerateOptions,
    seeds: Batch,
    latents: Latents,
    choose: WordChoice,
    ends: bool = True,
) -> GeneratedScripts:
    """Write the words of each script, one after another; ``ends`` lets cases end."""
    state, tokens = model.start(seeds, latents), seeds.tokens
    latents = latents.after(seeds.mask.shape[1])
    total = torch.zeros(len(tokens), dtype=torch.float64, device=tokens.device)
    ending = with_ends(model) if ends else None
    for _ in range(options.events):
        checkpoint()
        words = tokens.new_zeros(len(tokens), 0)  # of the event being written
        for slot in range(len(model.slots)):
            log_p, state = model.next_word(state, latents, words[:, -1] if slot else None, slot)
            refuse_nan(log_p)
            log_p = log_p.double().masked_fill(
                forbidden(tokens, words, model.vocabulary, options), -torch.inf
            )
            if ending is not None and tokens.shape[1]:
                log_p = _with_end(ending, log_p, tokens, words)
            if not (log_p > -torch.inf).any(1).all():
                raise UserError("no word is left that would repeat no event: let the script be shorter")
            rows, word = choose(log_p, total)
            total = total[rows] + log_p[rows, word]
            state, latents, tokens = state.select(rows), latents.select(rows), tokens[rows]
            words = torch.cat([words[rows], word[:, None]], dim=1)
        _, state = model.next_word(state, latents, words[:, -1], len(model.slots))
        latents = latents.after(1)
        tokens = torch.cat([tokens, words[:, None]], dim=1)
    return GeneratedScripts(tokens, latents, total)


def _with_end(
    model: CaseModel, log_p: Float[Tensor, "R V"], tokens: Int[Tensor, "R K S"], words: Int[Tensor, "R slot"]
) -> Float[Tensor, "R V"]:
    """Return log p of the next words with the end as a head: the missing word, which is no head otherwise.

    A script that has ended stays so, at no cost.
    """
    missing, slot = model.vocabulary.missing, words.shape[1]
    over = (tokens[:, -1, 0] == missing) if not slot else (words[:, 0] == missing)
    if not slot:
        ends = log_ends(model, Batch.of_words(tokens))
        assert ends is not None
        log_p = log_p + ends[:, -1, :1]
        log_p[:, missing] = ends[:, -1, 1]
    certain = torch.full_like(log_p, -torch.inf)
    certain[:, missing] = 0
    return certain.where(over[:, None], log_p)


def _scripts(model: Model, seed: Sequence[Event], written: GeneratedScripts) -> list[Script]:
    """Return scripts by name; in a model with frames, these are inferred from each script."""
    names, frames, missing = model.vocabulary.name, written.latents.frames, model.vocabulary.missing
    documents = [
        Document(
            "script",
            (
                *seed,
                *(Event.of_words([*map(names, words)]) for words in script if words[0] != missing),
            ),
        )
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
                for read, frame in zip(document.events, planned, strict=False)  # less if it has ended
            )
            for document, planned in zip(infer_documents(model, documents), frames.tolist(), strict=True)
        ]
    ended = (written.tokens[:, -1, 0] == missing).tolist()
    return [
        Script(script, len(seed), log_p, model.slots, over if with_ends(model) is not None else None)
        for script, log_p, over in zip(events, written.log_p.tolist(), ended, strict=True)
    ]
