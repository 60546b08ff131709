"""SSDVAE: a variational autoencoder whose latent variables are a chain of partly observed frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.config import SLOTS, Slots, SSDVAESettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import Beliefs, EventModel, Loss
from ssdvae.models.decoder import DecoderState, GuidedDecoder
from ssdvae.models.document import DocumentVector
from ssdvae.models.encoder import Encoder, Surroundings
from ssdvae.models.foresight import Foresight
from ssdvae.models.latent import (
    Elbo,
    Posterior,
    Sampler,
    SoftClusters,
    categorical,
    importance_bounds,
    most_likely,
    training_sampler,
)
from ssdvae.models.local import LocalEncoder
from ssdvae.models.plan import Plan, PlanRequest
from ssdvae.models.preference import Preference
from ssdvae.models.prior import PRIORS, relations_between
from ssdvae.models.recurrent import per_word

AROUND = 3
"""Events on each side of a document that the encoder reads with it, where it reads surroundings."""


class SSDVAE(EventModel):
    """Encoder, decoder, and the frame embeddings E^F that they share."""

    config: SSDVAESettings
    decoder: GuidedDecoder
    infers_frames = True
    infers_with_attention = True

    def __init__(
        self, config: SSDVAESettings, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.frame_embedding = nn.Parameter(torch.randn(len(frames), config.hidden) * 0.1)
        local = config.guide == "local"
        self.encoder = (LocalEncoder if local else Encoder)(config, self.reader.width, len(frames))
        prior = PRIORS[config.prior]
        self.decoder = GuidedDecoder(
            config, self.reader, aligned=config.guide != "attention", causal=prior.causal, local=local
        )
        self.prior = prior.new(config, len(frames))
        self.preference = Preference(len(vocabulary), len(frames)) if config.preference else None
        self.document: DocumentVector | None = None
        if config.document_vector:
            self.document = DocumentVector(
                2 * config.hidden, config.document_vector, len(frames), len(vocabulary)
            )

    @property
    def reads_any_length(self) -> bool:
        return self.config.guide == "local"

    @property
    def latent_shape(self) -> tuple[int, int]:
        return 1, len(self.frames)

    @property
    def training_sampler(self) -> Sampler:
        return training_sampler(self.config)

    @property
    def training_chains(self) -> int:
        return self.config.samples

    @property
    def trained_for_bound(self) -> bool:
        return self.config.objective == "bound" and self.has_bound

    @property
    def has_bound(self) -> bool:
        return self.document is None

    @property
    def needs_relations(self) -> bool:
        return self.prior.needs_relations

    def forward(self, batch: Batch, noise: Noise, progress: float = 1.0) -> Loss:
        """The objective, each of its terms the mean over S chains."""
        inputs, sampler = self.reader(batch.tokens), self.training_sampler
        read = batch.first(self._events_read(batch, noise))
        seen = self._with_gaps(inputs[:, : read.mask.shape[1]], noise)
        states = self._read(seen, read.mask, self._around(read, noise))
        request = PlanRequest(read, batch.observed, batch.mask, sampler, noise)
        chains = []
        for _ in range(self.config.samples):
            posterior = self._chain(states, request)
            words, log_p = self._score(batch, states, posterior, inputs, noise)
            chains.append(
                (
                    words.sum(1),
                    posterior.entropy(batch.observed),
                    posterior.frame_nll(batch.observed),
                    posterior.divergence(log_p, batch.observed, self.config.free_nats),
                    posterior.prior_cross_entropy(log_p),
                )
            )
        elbo = Elbo(*(torch.stack(term).mean(0) for term in zip(*chains, strict=True)))
        loss = elbo.loss(self.config, batch.words, progress, learned_prior=self.prior.learned)
        return Loss(loss, vars(elbo))

    def _read(
        self,
        inputs: Float[Tensor, "B M P d"],
        mask: Bool[Tensor, "B M"],
        around: Surroundings | None = None,
    ) -> _States:
        """What the encoder makes of events, and the document vector of that."""
        hidden = self.encoder.read(inputs, mask, around)
        if self.document is None:
            return _States(hidden)
        vector = self.document(hidden, per_word(mask, hidden))
        return _States(hidden, vector[:, None], self.document.words(vector))

    def _chain(self, states: _States, request: PlanRequest) -> Posterior:
        offsets = states.frame_offsets
        if self.preference is not None:
            heads, own = request.read.tokens[..., 0], request.read.observed if self.training else None
            known = self.preference.for_encoder(heads, own)
            # Nothing is known of the heads of events that were not read.
            unread = request.mask.shape[1] - known.shape[1]
            known = functional.pad(known, (0, 0, 0, unread))
            offsets = known if offsets is None else known + offsets
        chain: Posterior = self.encoder(states.hidden, self.frame_embedding, request, offsets)
        return chain

    def _score(
        self,
        batch: Batch,
        states: _States,
        posterior: Posterior,
        inputs: Float[Tensor, "B M P d"],
        noise: Noise | None = None,
    ) -> tuple[Float[Tensor, "B M"], Float[Tensor, "B M F"]]:
        """log p(w | f) of each event, and log p(f_m | before) of all frames there."""
        plan = self._plan(posterior, states)
        output = self.word_decoder(inputs, plan)
        words = self.likelihood(output.joined, batch, plan, noise)
        # What stands in the padding is not even multiplied by zero.
        ends, sample = output.ends.masked_fill(~batch.mask[..., None], 0), posterior.sample
        if self.config.objective == "paper":
            # The prior is fitted beside, and nothing else is to learn from that.
            ends, sample = ends.detach(), sample.detach()
        return words.sum(2), self.prior(sample, ends)

    def parts(self) -> dict[str, nn.Module]:
        found: dict[str, nn.Module] = {"frames": self.encoder, "state": self.decoder.first}
        return found if self.document is None else {"document-vector": self.document, **found}

    def initialize_from_data(
        self,
        heads: Int[Tensor, "N M"],
        observed: Int[Tensor, "N M"],
        relations: Sequence[Mapping[str, Any]],
        lexicon: Int[Tensor, "P 2"] | None = None,
        lemmas: Int[Tensor, " V"] | None = None,
    ) -> None:
        self.prior.initialize_from_data(observed, relations_between(relations, self.frames))
        if self.preference is not None:
            seen = observed >= 0
            unknown = self.vocabulary.unknown
            self.preference.initialize_from_data(heads[seen], observed[seen], unknown, lexicon, lemmas)

    def head_offsets(self, plan: Plan, mask: Bool[Tensor, "B M"]) -> Float[Tensor, "N V"] | None:
        if self.preference is None or plan.weights is None:
            return None
        return self.preference.for_decoder(plan.weights[:, plan.event : plan.event + mask.shape[1]][mask])

    def flops(self, documents: int, events: int, chains: int = 1) -> int:
        size = (documents, events, len(self.slots))
        drawn = self.encoder.flops(*size) + self.word_decoder.flops(documents, events, events)
        vector = 0 if self.document is None else self.document.flops(documents)
        return self.encoder.reader.flops(*size) + vector + chains * drawn

    def _events_read(self, batch: Batch, noise: Noise) -> int:
        """How many events the encoder reads: all of them, but for the steps that train its foresight."""
        events = batch.mask.shape[1]
        if not self.training or self.config.foresight == 0 or events == 1:
            return events
        # One choice for the whole batch, which all processes draw alike.
        chance, place = torch.rand(2, generator=noise.generator).tolist()
        return 1 + int(place * (events - 1)) if chance < self.config.foresight else events

    def _with_gaps(self, inputs: Float[Tensor, "B M P d"], noise: Noise) -> Float[Tensor, "B M P d"]:
        """What the encoder reads in training: some words are not there."""
        rate = self.config.word_dropout
        if not self.training or not rate:
            return inputs
        return inputs * (noise.uniform(*inputs.shape[1:3], device=inputs.device) >= rate)[..., None]

    @property
    def surroundings(self) -> int:
        return AROUND if self.config.surroundings else 0

    def _around(self, batch: Batch, noise: Noise) -> Surroundings | None:
        """What the encoder reads around the documents of a batch, in the steps in which it does."""
        if not self.training or batch.around is None:
            return None
        if torch.rand(1, generator=noise.generator).item() >= self.config.surroundings:
            return None
        known = batch.around[..., 0] >= 0
        return Surroundings(self.reader(batch.around.clamp_min(0)), known)

    def plan(self, request: PlanRequest) -> Plan:
        states = self._read(self.reader(request.read.tokens), request.read.mask)
        return self._plan(self._chain(states, request), states)

    def plan_from_prior(self, size: int, events: int, sampler: Sampler, noise: Noise) -> Plan:
        samples = [sampler(self.prior.first(size), noise)]
        for _ in range(0 if self.word_decoder.causal else events - 1):
            samples.append(sampler(self.prior.next(samples[-1]), noise))
        return self._plan_of(torch.stack(samples, dim=1))

    def extend_plan(self, plan: Plan, state: DecoderState, sampler: Sampler, noise: Noise) -> Plan:
        if plan.event < plan.mask.shape[1]:
            return plan
        # Only a prior that waits for the words comes here, and these are all in the state.
        sample = sampler(self.prior.next(state.layers[-1]), noise)
        return _followed_by(plan, self._plan_of(sample[:, None]))

    def foresee(
        self, read: Batch, samples: int, noise: Noise, given: Int[Tensor, " B"] | None = None
    ) -> Foresight:
        """Chains f ~ q(f | w) of the events, each with a next frame, weighed by p(w, f) / q(f | w).

        The next frame is from the prior. A uniform one says nothing of it: then it is what the encoder
        foresees, as in scripts that begin with a seed. A frame that is given weighs its chain by its chance.
        """
        draws = [self._foresee_once(read, noise, given) for _ in range(samples)]
        log_p = torch.stack([draw.log_p for draw in draws], dim=1)
        weights = torch.stack([draw.log_weight for draw in draws], dim=1).log_softmax(1)
        frames = (weights[..., None] + log_p).logsumexp(1)
        if given is not None:
            known = given.clamp_min(0)[:, None, None].expand(-1, samples, 1)
            told = log_p.gather(-1, known)[..., 0].masked_fill((given < 0)[:, None], 0)
            weights = (weights + told).log_softmax(1)
        # Document by document, all draws of one after another.
        order = torch.arange(samples * len(read), device=self.device).view(samples, -1).T.flatten()
        plan = Plan.together([draw.plan for draw in draws]).rows(order)
        layers = torch.cat([draw.layers for draw in draws], dim=1)
        return Foresight(plan.after(read.mask.shape[1]), DecoderState(layers).rows(order), weights, frames)

    def _foresee_once(self, read: Batch, noise: Noise, given: Int[Tensor, " B"] | None) -> _Draw:
        size, events = read.mask.shape
        if not events:
            log_p, log_weight = self.prior.first(size), self.frame_embedding.new_zeros(size)
            plan = self._plan_of(self._next_sample(log_p, noise, given)[:, None])
            return _Draw(plan, self.word_decoder.initial_state(plan).layers, log_weight, log_p)
        inputs = self.reader(read.tokens)
        states = self._read(inputs, read.mask)
        ahead = torch.full((size, events + 1), -1, device=self.device)
        chain = self._chain(states, PlanRequest.continuing(read, ahead, categorical, noise))
        read_chain = chain.first(events)
        plan = self._plan(read_chain, states)
        output = self.word_decoder(inputs, plan)
        words = self.likelihood(output.joined, read, plan).sum((1, 2))
        before = read_chain.log_prob_of_sample(self.prior(read_chain.sample, output.ends)).sum(1)
        log_p = chain.logits[:, -1].log_softmax(-1)
        if self.prior.learned:
            log_p = self.prior.next(self.prior.context(read_chain.sample, output.ends)[:, -1])
        new = self._plan_of(self._next_sample(log_p, noise, given)[:, None])
        return _Draw(_followed_by(plan, new), output.state.layers, words + before - read_chain.log_q(), log_p)

    def _next_sample(
        self, log_p: Float[Tensor, "B F"], noise: Noise, given: Int[Tensor, " B"] | None
    ) -> Float[Tensor, "B F"]:
        sample = categorical(log_p, noise)
        if given is None:
            return sample
        told = functional.one_hot(given.clamp_min(0), log_p.shape[-1]).to(sample)
        return told.where((given >= 0)[:, None], sample)

    def transitions(self) -> Float[Tensor, "F F"] | None:
        log_p = self.prior.transitions()
        return None if log_p is None else log_p.exp()

    def _plan_of(self, sample: Float[Tensor, "B M F"]) -> Plan:
        vectors = sample.to(self.frame_embedding.dtype) @ self.frame_embedding
        mask = torch.ones(sample.shape[:2], dtype=torch.bool, device=sample.device)
        return Plan(vectors, mask, sample.argmax(-1), weights=sample)

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        """From p(w | f) p(f) / q(f | w) with hard chains f ~ q(f | w)."""
        inputs = self.reader(batch.tokens)
        states = self._read(inputs, batch.mask)
        request = PlanRequest.whole(batch, categorical, noise)
        log_weights = []
        for _ in range(samples):
            posterior = self._chain(states, request)
            words, log_p = self._score(batch, states, posterior, inputs)
            log_weights.append((words + posterior.log_prob_of_sample(log_p)).sum(1) - posterior.log_q())
        return importance_bounds(torch.stack(log_weights))

    def event_log_probs(self, batch: Batch) -> Float[Tensor, "B M"]:
        """log p(w_m | f, w_<t) + log p(f_m | before) with the greedy chain: at most log p of all words."""
        inputs = self.reader(batch.tokens)
        states = self._read(inputs, batch.mask)
        posterior = self._chain(states, _greedy(batch))
        words, log_p = self._score(batch, states, posterior, inputs)
        return words + posterior.log_prob_of_sample(log_p)

    def infer(self, batch: Batch) -> Beliefs:
        """The greedy chain."""
        states = self._read(self.reader(batch.tokens), batch.mask)
        posterior = self._chain(states, _greedy(batch))
        log_q = posterior.logits.log_softmax(-1)
        clusters = (
            SoftClusters(
                states.hidden,
                log_q,
                self.frame_embedding,
                self.encoder.w_out.weight,
                self.word_decoder.output_matrix,
            )
            if self.config.attention == "addition"
            else None
        )
        return Beliefs(log_q, batch.mask, looks=posterior.looks, clusters=clusters)

    def posterior(self, request: PlanRequest) -> Posterior:
        """A chain of frames for each document."""
        return self._chain(self._read(self.reader(request.read.tokens), request.read.mask), request)

    @staticmethod
    def _plan(posterior: Posterior, states: _States) -> Plan:
        memory, offsets = posterior.memory, states.word_offsets
        return Plan(memory, posterior.mask, posterior.frame, word_offsets=offsets, weights=posterior.sample)


@dataclass(frozen=True)
class _States:
    """What was read of some events: the states at their words, and what a document vector adds."""

    hidden: Float[Tensor, "B T h"]
    frame_offsets: Float[Tensor, "B 1 F"] | None = None
    word_offsets: Float[Tensor, "B V"] | None = None


@dataclass(frozen=True)
class _Draw:
    """One chain of frames for each document, up to the next event."""

    plan: Plan
    layers: Float[Tensor, "L B h"]  # the decoder's state before the next event
    log_weight: Float[Tensor, " B"]
    log_p: Float[Tensor, "B F"]  # of the next frame


def _frames(plan: Plan) -> Int[Tensor, "B N"]:
    assert plan.frames is not None
    return plan.frames


def _followed_by(plan: Plan, later: Plan) -> Plan:
    """The plan with further frames."""
    return replace(
        plan,
        vectors=torch.cat([plan.vectors, later.vectors], dim=1),
        mask=torch.cat([plan.mask, later.mask], dim=1),
        frames=torch.cat([_frames(plan), _frames(later)], dim=1),
        weights=None
        if plan.weights is None or later.weights is None
        else torch.cat([plan.weights, later.weights], dim=1),
    )


def _greedy(batch: Batch) -> PlanRequest:
    """The most likely frame of each event, given that of the one before; takes no noise."""
    return PlanRequest.whole(batch, most_likely, Noise(torch.Generator(), len(batch)))
