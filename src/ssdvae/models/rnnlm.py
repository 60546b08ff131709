"""The language models that the paper compares with: RNNLM and RNNLM+ROLE."""

from __future__ import annotations

from dataclasses import replace

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssdvae.config import SLOTS, RNNLMRoleSettings, RNNLMSettings, Slots
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import LanguageModel, LatentQuery, Latents, Loss, most_likely
from ssdvae.models.decoders import GRUDecoder
from ssdvae.models.layers import DocumentVector, PaddedGRU, per_word


class RNNLM(LanguageModel):
    """p(w) = Π_t p(w_t | w_<t) by a left-to-right GRU, without frames: the likelihood is exact.

    Not so with a document vector, which an encoder of its own computes as that of SSDVAE would.
    """

    config: RNNLMSettings | RNNLMRoleSettings

    def __init__(
        self,
        config: RNNLMSettings | RNNLMRoleSettings,
        vocabulary: Vocabulary,
        frames: Inventory,
        slots: Slots = SLOTS,
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.decoder = GRUDecoder(
            self.word_reader, config.hidden, config.layers, config.tied, config.context_vector
        )
        self.document: _DocumentReader | None = None
        if config.document_vector:
            self.document = _DocumentReader(config, self.word_reader.width, len(vocabulary))

    @property
    def conditions_on_targets(self) -> bool:
        return self.document is not None

    @property
    def has_elbo(self) -> bool:
        return self.document is None

    def parts(self) -> dict[str, nn.Module]:
        return {} if self.document is None else {"document-vector": self.document.vector}

    def latents(self, query: LatentQuery) -> Latents:
        latents, read = super().latents(query), query.read
        if self.document is None or not read.mask.shape[1]:
            return latents
        return replace(latents, word_offsets=self.document(self.word_reader(read.tokens), read.mask))

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        latents = self.latents(LatentQuery.whole(batch, most_likely, noise))
        log_p = self.log_probs(batch, latents, drawn=self.draw_words(noise)).sum((1, 2))
        return Loss(-log_p, {"reconstruction": log_p})


class _DocumentReader(nn.Module):
    """A bidirectional GRU, and the document vector of its states."""

    def __init__(self, config: RNNLMSettings | RNNLMRoleSettings, width: int, vocabulary: int) -> None:
        super().__init__()
        self.gru = PaddedGRU(width, config.hidden, config.layers)
        states = 2 * config.hidden
        # Scaled as attention is. Unscaled, θ of all documents collapses to one unit vector within sixty steps
        # of a learning rate of 3e-3.
        self.vector = DocumentVector(
            states, config.document_vector, config.hidden, vocabulary, scale=states**-0.5
        )

    def forward(self, inputs: Float[Tensor, "B M P d"], mask: Bool[Tensor, "B M"]) -> Float[Tensor, "B V"]:
        """Return what is added to the logits of the words."""
        hidden = self.gru.at_words(inputs, mask)
        offsets: Tensor = self.vector.words(self.vector(hidden, per_word(mask, hidden)))
        return offsets


class RNNLMRole(RNNLM):
    """RNNLM+ROLE (Pichotta and Mooney, 2016): beside each word vector, that of its role in the event."""
