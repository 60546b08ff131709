"""Planner: a language model of events that sums over frames, exactly (``planner_decoder`` has the maths).

All that it says is a function of words already read: the likelihood is exact, there is nothing to sample, and
a mistake about the frame of one event does no harm to that of the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from ssdvae.config import SLOTS, PlannerSettings, Slots
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import Beliefs, EventModel, Loss
from ssdvae.models.contrast import with_contrast
from ssdvae.models.decoder import DecoderState
from ssdvae.models.latent import Sampler
from ssdvae.models.mixture import EventScores
from ssdvae.models.plan import Plan, PlanRequest
from ssdvae.models.planner_decoder import PlannerDecoder
from ssdvae.models.recurrent import to_padded
from ssdvae.models.sampled import draw


class Planner(EventModel):
    """p(words, frames), where a plan names the frames that are given, and −1 where one is left open."""

    config: PlannerSettings
    decoder: PlannerDecoder
    infers_frames = True

    def __init__(
        self, config: PlannerSettings, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.decoder = PlannerDecoder(config, self.reader, len(frames), vocabulary.unknown)

    @property
    def latent_shape(self) -> tuple[int, int]:
        return 1, len(self.frames)

    @property
    def reads_ahead(self) -> bool:
        return False

    def initialize_from_data(
        self,
        heads: Int[Tensor, "N M"],
        observed: Int[Tensor, "N M"],
        relations: Sequence[Mapping[str, Any]],
        lexicon: Int[Tensor, "P 2"] | None = None,
        lemmas: Int[Tensor, " V"] | None = None,
    ) -> None:
        seen = observed >= 0
        if seen.any() or lexicon is not None:
            vectors = self.reader.words.weight if self.config.frame_vectors == "heads" else None
            self.decoder.initialize_from_data(heads[seen], observed[seen], vectors, lexicon)

    def forward(self, batch: Batch, noise: Noise, progress: float = 1.0) -> Loss:
        """−log p(words) − λ log r(observed frames), which at λ = 1 is −log p(words, observed frames)."""
        scored = self._score(batch, self._no_plan(batch), noise)
        log_p = to_padded(scored.marginal(), batch.mask).sum(1)
        frame_nll = -_observed_log_probs(scored, batch).sum(1)
        loss = self.config.label_weight * frame_nll - log_p
        terms = {"reconstruction": log_p, "frame_nll": frame_nll}
        return with_contrast(self, self.config, batch, Loss(loss, terms))

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        """One row: log p(words, observed frames), exactly."""
        scored = self._score(batch, self._no_plan(batch))
        words = to_padded(scored.marginal(), batch.mask)
        return (words + _observed_log_probs(scored, batch)).sum(1)[None]

    def infer(self, batch: Batch) -> Beliefs:
        """r(f | words up to the end of the event), exactly; what is observed is certain.

        Where the mixture is at the head, the arguments say nothing of the frame that the head has not said.
        """
        log_r = self._score(batch, self._no_plan(batch)).posterior()
        observed = batch.observed[batch.mask][:, None]
        every = torch.arange(log_r.shape[-1], device=log_r.device)
        certain = torch.zeros_like(log_r).masked_fill(every != observed, -torch.inf)
        return Beliefs(to_padded(certain.where(observed >= 0, log_r), batch.mask), batch.mask)

    def next_frame_log_probs(self, batch: Batch) -> Float[Tensor, "B M F"]:
        """From p(f | h); 0 at padding."""
        output = self.decoder(self.reader(batch.tokens), self._no_plan(batch))
        return to_padded(self.decoder.log_frames(output.states[:, :, 0][batch.mask]), batch.mask)

    def log_probs(
        self,
        batch: Batch,
        plan: Plan,
        inputs: Float[Tensor, "B M P d"] | None = None,
        noise: Noise | None = None,
    ) -> Float[Tensor, "B M S"]:
        return self._log_probs(batch, plan, self.decoder.initial_state(plan))

    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M S"]:
        return self.log_probs(batch, replace(self._no_plan(batch), frames=batch.observed))

    def continuations(
        self, seeds: Batch, plan: Plan, options: Int[Tensor, "B O E S"]
    ) -> Float[Tensor, "B O"]:
        rows = torch.arange(len(options), device=options.device).repeat_interleave(options.shape[1])
        later, state = plan.rows(rows).after(seeds.mask.shape[1]), self.begin(seeds, plan).rows(rows)
        words = Batch.of_words(options.flatten(0, 1))
        return self._log_probs(words, later, state).sum((1, 2)).view(options.shape[:2])

    def _log_probs(self, batch: Batch, plan: Plan, state: DecoderState) -> Float[Tensor, "B M S"]:
        assert plan.frames is not None
        given = plan.frames[:, plan.event : plan.event + batch.mask.shape[1]][batch.mask]
        return to_padded(self._score(batch, plan, state=state).words(given), batch.mask)

    def _score(
        self, batch: Batch, plan: Plan, noise: Noise | None = None, state: DecoderState | None = None
    ) -> EventScores:
        """The real events of a batch, one row each; after a state, or from the start."""
        noise, drawn = noise if self.training else None, None
        if noise is not None and self.config.sampled_words:
            drawn = draw(self.word_inclusion_probabilities, noise.generator)
        start = self.decoder.initial_state(plan) if state is None else state
        output = self.decoder.read(self.reader(batch.tokens), start, plan, noise)
        states, joined, words = (x[batch.mask] for x in (output.states, output.joined, batch.tokens))
        # Continuations are compared with each other; in training they do not weigh the same.
        return self.decoder.score(states[:, 0], joined, words, drawn, alike=state is None)

    # Word by word.

    def plan(self, request: PlanRequest) -> Plan:
        """The frames of events that were read; of those to come, what is observed, and the others open.

        What is open is summed over, so that continuations have their exact probability.
        """
        read, observed = request.read.mask.shape[1], request.observed
        log_r = self.infer(replace(request.read, observed=observed[:, :read])).log_q
        drawn = [request.sampler(log_r[:, event], request.noise).argmax(-1) for event in range(read)]
        frames = torch.cat([torch.stack(drawn, dim=1), observed[:, read:]], dim=1)
        return self._plan(frames, request.mask)

    def plan_from_prior(self, size: int, events: int, sampler: Sampler, noise: Noise) -> Plan:
        frames = torch.full((size, events), -1, device=self.device)
        return self._plan(frames, frames < 0)

    def next_word(
        self, state: DecoderState, plan: Plan, words: Int[Tensor, " B"] | None, position: int
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        assert plan.frames is not None
        vectors = self.reader.single_position(words, position, len(plan.mask))
        predicting, after = self.decoder.step(vectors, state, plan, position)
        return self.decoder.next_word(predicting, after, plan.frames[:, plan.event], words, position)

    def _no_plan(self, batch: Batch) -> Plan:
        """A plan in which no frame is given."""
        return self._plan(torch.full_like(batch.observed, -1), batch.mask)

    def _plan(self, frames: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]) -> Plan:
        vectors = self.decoder.frame_vectors.new_zeros(*mask.shape, 0)
        return Plan(vectors, mask, frames.masked_fill(~mask, -1))


def _observed_log_probs(scored: EventScores, batch: Batch) -> Float[Tensor, "B M"]:
    """log r of the observed frames; 0 where none is."""
    observed = batch.observed[batch.mask]
    log_r = scored.posterior().gather(1, observed.clamp_min(0)[:, None])[:, 0]
    return to_padded(log_r.masked_fill(observed < 0, 0), batch.mask)
