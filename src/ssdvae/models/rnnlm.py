"""The language models that the paper compares with: RNNLM and RNNLM+ROLE."""

from __future__ import annotations

from ssdvae.config import LanguageModelSettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import EventModel, Loss
from ssdvae.models.contrast import with_contrast
from ssdvae.models.decoder import Decoder


class RNNLM(EventModel):
    """p(w) = Π_t p(w_t | w_<t) by a left-to-right GRU. No frames: the likelihood is exact."""

    config: LanguageModelSettings

    def __init__(self, config: LanguageModelSettings, vocabulary: Vocabulary, frames: Inventory) -> None:
        super().__init__(config, vocabulary, frames)
        self.decoder = Decoder(config, self.reader, past=config.past_vector, dropout=config.state_dropout)

    def forward(self, batch: Batch, noise: Noise, progress: float = 1.0) -> Loss:
        log_p = self.bounds(batch, 1, noise)[0]
        return with_contrast(self, self.config, batch, Loss(-log_p, {"reconstruction": log_p}))


class RNNLMRole(RNNLM):
    """RNNLM+ROLE (Pichotta and Mooney, 2016): beside each word vector, that of its role in the event."""
