"""SSDVAE: a variational autoencoder whose latent variables are a chain of partly observed frames."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ssdvae.config import ModelSettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import EventModel, Loss, log_likelihood
from ssdvae.models.decoder import Decoder
from ssdvae.models.encoder import Encoder
from ssdvae.models.latent import Elbo, Posterior, Sampler, exact, importance_bound, log_prior, mode, relaxed
from ssdvae.models.recurrent import WordReader


class SSDVAE(EventModel):
    """Encoder, decoder, and the frame embeddings E^F that they share."""

    def __init__(self, config: ModelSettings, vocabulary: Vocabulary, frames: Inventory) -> None:
        super().__init__(config, vocabulary, frames)
        width = config.word_width
        self.reader = WordReader(len(vocabulary), width)
        self.frame_embedding = nn.Parameter(torch.randn(len(frames), config.hidden) * 0.1)
        self.encoder = Encoder(config, width, len(frames))
        self.decoder = Decoder(config, width, len(vocabulary))

    def word_embedding(self) -> nn.Embedding:
        return self.reader.words

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        """The paper's objective: −L_w − α_q·L_q + α_c·L_c, each the mean over S chains."""
        inputs = self.reader(batch.tokens)
        hidden = self.encoder.read(inputs, batch.mask)
        chains = []
        for _ in range(self.config.samples):
            posterior = self._chain(hidden, batch, relaxed(self.config.temperature), noise)
            words = self._log_probs(inputs, batch, posterior.sample)
            chains.append(
                (words.sum((1, 2)), posterior.entropy(batch.observed), posterior.frame_nll(batch.observed))
            )
        elbo = Elbo(*(torch.stack(term).mean(0) for term in zip(*chains, strict=True)))
        return Loss(elbo.loss(self.config, batch.words), vars(elbo))

    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M 4"]:
        """log p(w_t | f, w_<t) with one soft chain f drawn from q(f | w), as in training."""
        inputs = self.reader(batch.tokens)
        hidden = self.encoder.read(inputs, batch.mask)
        posterior = self._chain(hidden, batch, relaxed(self.config.temperature), noise)
        return self._log_probs(inputs, batch, posterior.sample)

    def bound(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, " B"]:
        """log (1/S) Σ_s p(w | f_s) p(f_s) / q(f_s | w) with hard chains f_s ~ q(f | w)."""
        inputs = self.reader(batch.tokens)
        hidden = self.encoder.read(inputs, batch.mask)
        log_weights = []
        for _ in range(samples):
            posterior = self._chain(hidden, batch, exact, noise)
            words = self._log_probs(inputs, batch, posterior.sample).sum((1, 2))
            log_weights.append(words + log_prior(batch.mask, len(self.frames)) - posterior.log_q())
        return importance_bound(torch.stack(log_weights))

    def infer(self, batch: Batch) -> Int[Tensor, "B M"]:
        return self.posterior(batch, mode, Noise(torch.Generator().manual_seed(0), len(batch))).frame

    def posterior(self, batch: Batch, sampler: Sampler, noise: Noise) -> Posterior:
        """A chain of frames for each document."""
        return self._chain(self.encoder.read(self.reader(batch.tokens), batch.mask), batch, sampler, noise)

    def log_likelihood(self, batch: Batch, sample: Float[Tensor, "B M F"]) -> Float[Tensor, " B"]:
        """log p(w | f) for given frames."""
        return self._log_probs(self.reader(batch.tokens), batch, sample).sum((1, 2))

    def _chain(
        self, hidden: Float[Tensor, "B T h"], batch: Batch, sampler: Sampler, noise: Noise
    ) -> Posterior:
        chain: Posterior = self.encoder(
            hidden, batch.mask, self.frame_embedding, batch.observed, batch.mask, sampler, noise
        )
        return chain

    def _log_probs(
        self, inputs: Float[Tensor, "B M 5 d"], batch: Batch, sample: Float[Tensor, "B M F"]
    ) -> Float[Tensor, "B M 4"]:
        frame_memory = sample.to(self.frame_embedding.dtype) @ self.frame_embedding  # E^M
        joined = self.decoder(inputs, frame_memory, batch.mask)
        return log_likelihood(self.decoder.w_out, joined, batch)
