"""The language models that the paper compares with: RNNLM and RNNLM+ROLE."""

from __future__ import annotations

from jaxtyping import Bool, Float, Int
from torch import Tensor

from ssdvae.config import ModelSettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import EventModel, Loss
from ssdvae.models.decoder import Decoder, Plan
from ssdvae.models.latent import Sampler


class RNNLM(EventModel):
    """p(w) = Π_t p(w_t | w_<t) by a left-to-right GRU. No frames: the likelihood is exact."""

    def __init__(self, config: ModelSettings, vocabulary: Vocabulary, frames: Inventory) -> None:
        super().__init__(config, vocabulary, frames)
        self.decoder = Decoder(config, self.reader.width, len(vocabulary))

    @property
    def latent_shape(self) -> tuple[int, int]:
        return 0, 0

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        log_p = self.bounds(batch, 1, noise)[0]
        return Loss(-log_p, {"reconstruction": log_p})

    def plan(
        self,
        batch: Batch,
        observed: Int[Tensor, "B N"],
        chain: Bool[Tensor, "B N"],
        sampler: Sampler,
        noise: Noise,
    ) -> Plan:
        """None: the words before are all there is."""
        return Plan(self.reader.separator.new_zeros(len(batch), 0, 0), batch.mask[:, :0])

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        return self.word_log_probs(batch, noise).sum((1, 2))[None]

    def infer(self, batch: Batch) -> None:
        return None


class RNNLMRole(RNNLM):
    """RNNLM+ROLE (Pichotta and Mooney, 2016): beside each word vector, that of its role in the event."""

    has_roles = True
