"""The language models that the paper compares with: RNNLM and RNNLM+ROLE."""

from __future__ import annotations

from dataclasses import replace

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssdvae.config import SLOTS, RNNLMRoleSettings, RNNLMSettings, Slots
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import EventModel, Loss
from ssdvae.models.contrast import with_contrast
from ssdvae.models.decoder import Decoder
from ssdvae.models.document import DocumentVector
from ssdvae.models.plan import Plan, PlanRequest
from ssdvae.models.recurrent import Bidirectional, per_word


class RNNLM(EventModel):
    """p(w) = Π_t p(w_t | w_<t) by a left-to-right GRU. No frames: the likelihood is exact.

    But with a vector of the whole document, which an encoder of its own reads as that of SSDVAE would.
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
        self.decoder = Decoder(config, self.reader, past=config.past_vector, dropout=config.state_dropout)
        self.document: _DocumentReader | None = None
        if config.document_vector:
            self.document = _DocumentReader(config, self.reader.width, len(vocabulary))

    @property
    def reads_ahead(self) -> bool:
        return self.document is not None

    @property
    def has_bound(self) -> bool:
        return self.document is None

    def parts(self) -> dict[str, nn.Module]:
        return {} if self.document is None else {"document-vector": self.document.vector}

    def plan(self, request: PlanRequest) -> Plan:
        plan, read = super().plan(request), request.read
        if self.document is None:
            return plan
        return replace(plan, word_offsets=self.document(self.reader(read.tokens), read.mask))

    def flops(self, documents: int, events: int, chains: int = 1) -> int:
        reading = 0 if self.document is None else self.document.flops(documents, events, len(self.slots))
        return super().flops(documents, events, chains) + reading

    def forward(self, batch: Batch, noise: Noise, progress: float = 1.0) -> Loss:
        log_p = self.bounds(batch, 1, noise)[0]
        return with_contrast(self, self.config, batch, Loss(-log_p, {"reconstruction": log_p}))


class _DocumentReader(nn.Module):
    """A bidirectional GRU, and the document vector of its states."""

    def __init__(self, config: RNNLMSettings | RNNLMRoleSettings, width: int, vocabulary: int) -> None:
        super().__init__()
        self.reader = Bidirectional(width, config.hidden, config.layers)
        states = 2 * config.hidden
        # Scaled as attention is. Unscaled, θ of all documents is one and the same unit vector after sixty
        # steps of a learning rate of 3e-3, and stays so.
        self.vector = DocumentVector(
            states, config.document_vector, config.hidden, vocabulary, scale=states**-0.5
        )

    def forward(self, inputs: Float[Tensor, "B M P d"], mask: Bool[Tensor, "B M"]) -> Float[Tensor, "B V"]:
        """What is added to the logits of the words."""
        hidden = self.reader(inputs, mask)
        offsets: Tensor = self.vector.words(self.vector(hidden, per_word(mask, hidden)))
        return offsets

    def flops(self, documents: int, events: int, slots: int) -> int:
        return self.reader.flops(documents, events, slots) + self.vector.flops(documents)


class RNNLMRole(RNNLM):
    """RNNLM+ROLE (Pichotta and Mooney, 2016): beside each word vector, that of its role in the event."""
