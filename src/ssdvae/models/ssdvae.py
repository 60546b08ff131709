"""SSDVAE: a variational autoencoder whose latent variables are a chain of partly observed frames."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ssdvae.config import ModelSettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import Beliefs, EventModel, Loss
from ssdvae.models.decoder import GuidedDecoder, Plan
from ssdvae.models.encoder import Encoder
from ssdvae.models.latent import (
    Elbo,
    Posterior,
    Sampler,
    SoftClusters,
    exact,
    importance_bounds,
    log_prior,
    mode,
    relaxed,
)


class SSDVAE(EventModel):
    """Encoder, decoder, and the frame embeddings E^F that they share."""

    def __init__(self, config: ModelSettings, vocabulary: Vocabulary, frames: Inventory) -> None:
        super().__init__(config, vocabulary, frames)
        self.frame_embedding = nn.Parameter(torch.randn(len(frames), config.hidden) * 0.1)
        self.encoder = Encoder(config, self.reader.width, len(frames))
        self.decoder = GuidedDecoder(config, self.reader.width, len(vocabulary))

    @property
    def latent_shape(self) -> tuple[int, int]:
        return 1, len(self.frames)

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        """The paper's objective: −L_w − α_q·L_q + α_c·L_c, each the mean over S chains."""
        inputs, sampler = self.reader(batch.tokens), relaxed(self.config.temperature)
        seen = batch.mask[:, : self._events_read(batch, noise)]
        hidden = self.encoder.read(inputs[:, : seen.shape[1]], seen)
        chains = []
        for _ in range(self.config.samples):
            posterior = self.encoder(
                hidden, seen, self.frame_embedding, batch.observed, batch.mask, sampler, noise
            )
            words = self.log_probs(batch, self._plan(posterior), inputs, noise)
            chains.append(
                (words.sum((1, 2)), posterior.entropy(batch.observed), posterior.frame_nll(batch.observed))
            )
        elbo = Elbo(*(torch.stack(term).mean(0) for term in zip(*chains, strict=True)))
        return Loss(elbo.loss(self.config, batch.words), vars(elbo))

    def flops(self, documents: int, events: int, chains: int = 1) -> int:
        drawn = self.encoder.flops(documents, events) + self.speaker.flops(documents, events, events)
        return self.encoder.reader.flops(documents, events) + chains * drawn

    def _events_read(self, batch: Batch, noise: Noise) -> int:
        """How many events the encoder reads: all of them, but for the steps that train its foresight."""
        events = batch.mask.shape[1]
        if not self.training or self.config.foresight == 0 or events == 1:
            return events
        # One choice for the whole batch, which all processes draw alike.
        chance, place = torch.rand(2, generator=noise.generator).tolist()
        return 1 + int(place * (events - 1)) if chance < self.config.foresight else events

    def plan(
        self,
        batch: Batch,
        observed: Int[Tensor, "B N"],
        chain: Bool[Tensor, "B N"],
        sampler: Sampler,
        noise: Noise,
    ) -> Plan:
        hidden = self.encoder.read(self.reader(batch.tokens), batch.mask)
        return self._plan(
            self.encoder(hidden, batch.mask, self.frame_embedding, observed, chain, sampler, noise)
        )

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        """From p(w | f) p(f) / q(f | w) with hard chains f ~ q(f | w)."""
        inputs = self.reader(batch.tokens)
        hidden = self.encoder.read(inputs, batch.mask)
        log_weights = []
        for _ in range(samples):
            posterior = self._chain(hidden, batch, exact, noise)
            words = self.log_probs(batch, self._plan(posterior), inputs).sum((1, 2))
            log_weights.append(words + log_prior(batch.mask, len(self.frames)) - posterior.log_q())
        return importance_bounds(torch.stack(log_weights))

    def infer(self, batch: Batch) -> Beliefs:
        """The greedy chain."""
        hidden = self.encoder.read(self.reader(batch.tokens), batch.mask)
        posterior = self._chain(hidden, batch, mode, Noise(torch.Generator(), len(batch)))
        log_q = posterior.logits.log_softmax(-1)
        clusters = (
            SoftClusters(
                hidden,
                log_q,
                self.frame_embedding,
                self.encoder.w_out.weight,
                self.speaker.w_out.weight,
            )
            if self.config.attention == "addition"
            else None
        )
        return Beliefs(log_q, batch.mask, attention=posterior.attention, clusters=clusters)

    def posterior(self, batch: Batch, sampler: Sampler, noise: Noise) -> Posterior:
        """A chain of frames for each document."""
        return self._chain(self.encoder.read(self.reader(batch.tokens), batch.mask), batch, sampler, noise)

    def _chain(
        self, hidden: Float[Tensor, "B T h"], batch: Batch, sampler: Sampler, noise: Noise
    ) -> Posterior:
        chain: Posterior = self.encoder(
            hidden, batch.mask, self.frame_embedding, batch.observed, batch.mask, sampler, noise
        )
        return chain

    @staticmethod
    def _plan(posterior: Posterior) -> Plan:
        return Plan(posterior.memory, posterior.mask, posterior.frame)
