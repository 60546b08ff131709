"""The language models that the paper compares with: RNNLM and RNNLM+ROLE."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ssdvae.config import ModelSettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import EventModel, Loss, log_likelihood
from ssdvae.models.recurrent import WordReader


class RNNLM(EventModel):
    """p(w) = Π_t p(w_t | w_<t) by a left-to-right GRU. No frames: the likelihood is exact."""

    def __init__(self, config: ModelSettings, vocabulary: Vocabulary, frames: Inventory) -> None:
        super().__init__(config, vocabulary, frames)
        width = config.word_width
        self.reader = WordReader(len(vocabulary), width)
        self.roles = self.new_roles(config)
        extra = 0 if self.roles is None else self.roles.shape[1]
        self.gru = nn.GRU(width + extra, config.hidden, config.layers, batch_first=True)
        self.w_out = nn.Linear(config.hidden, len(vocabulary))

    def new_roles(self, config: ModelSettings) -> nn.Parameter | None:
        """A vector for each place of an event (separator, verb, …, modifier), if the model has them."""
        return None

    def word_embedding(self) -> nn.Embedding:
        return self.reader.words

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        log_p = self.bound(batch, 1, noise)
        return Loss(-log_p, {"reconstruction": log_p})

    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M 4"]:
        inputs: Tensor = self.reader(batch.tokens)
        if self.roles is not None:
            inputs = torch.cat([inputs, self.roles.expand(*inputs.shape[:2], -1, -1)], dim=-1)
        B, M = batch.mask.shape
        state, _ = self.gru(inputs.flatten(1, 2))
        # The state after the separator predicts the verb, …, the state after the object the modifier.
        return log_likelihood(self.w_out, state.view(B, M, 5, -1)[:, :, :4], batch)

    def bound(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, " B"]:
        return self.word_log_probs(batch, noise).sum((1, 2))

    def infer(self, batch: Batch) -> None:
        return None


class RNNLMRole(RNNLM):
    """RNNLM+ROLE (Pichotta and Mooney, 2016): beside each word vector, that of its role in the event."""

    def new_roles(self, config: ModelSettings) -> nn.Parameter:
        return nn.Parameter(0.1 * torch.randn(5, config.role_embedding))
