"""The baselines of the paper: RNNLM and RNNLM+ROLE, as language models and as classifiers of frames."""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import FrameModel, Loss, Model
from ssdvae.models.cases import CaseModel
from ssdvae.models.decoders import GRUDecoder
from ssdvae.models.latents import FramePosterior, LatentQuery, Latents, most_likely
from ssdvae.models.layers import DocumentVector, PaddedGRU, dropout, full_precision, per_word
from ssdvae.models.losses import frame_nll, word_log_likelihood
from ssdvae.models.options import ClassifierOptions, RNNLMOptions, RNNLMRoleOptions


class RNNLM(CaseModel):
    """p(w) = Π_t p(w_t | w_<t) by a left-to-right GRU, without frames: the likelihood is exact.

    Not so with a document vector, which an encoder of its own computes as that of SSDVAE would.
    """

    config: RNNLMOptions | RNNLMRoleOptions

    def __init__(
        self,
        config: RNNLMOptions | RNNLMRoleOptions,
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
        decoded = self.decode_in_training(batch, latents, noise)
        drawn, offsets = self.draw_words(noise), latents.word_offsets
        log_p = word_log_likelihood(self.decoder.output, decoded.states, batch, drawn, offsets).sum((1, 2))
        return self.with_case_terms(Loss(-log_p, {"reconstruction": log_p}), batch, decoded.ends, noise)


class _DocumentReader(nn.Module):
    """A bidirectional GRU, and the document vector of its states."""

    def __init__(self, config: RNNLMOptions | RNNLMRoleOptions, width: int, vocabulary: int) -> None:
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


class RNNLMClassifier(Model, FrameModel):
    """p(f_m | w) = softmax(softplus(W h_m + b)), with h_m the last states of a bidirectional GRU.

    The last states of an event are the forward one at its last slot and the backward one at its head; with
    one event per document, as in the paper, these are the last states of the document. It learns from
    observed frames only and gives words no probability.
    """

    config: ClassifierOptions

    def __init__(
        self, config: ClassifierOptions, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.gru = PaddedGRU(self.word_reader.width, config.hidden, config.layers)
        self.w_out = nn.Linear(2 * config.hidden, len(frames))

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        nll = frame_nll(self._log_q(batch, noise), batch.observed, batch.mask)
        return Loss(nll, {"frame_nll": nll})

    def posterior(self, batch: Batch) -> FramePosterior:
        return FramePosterior(self._log_q(batch, None), batch.mask)

    def _log_q(self, batch: Batch, noise: Noise | None) -> Float[Tensor, "B M F"]:
        states = self.gru.at_words(self.word_reader(batch.tokens), batch.mask)
        forwards, backwards = states.view(*batch.tokens.shape, 2, -1).unbind(3)
        last = torch.cat([forwards[:, :, -1], backwards[:, :, 0]], dim=-1)
        last = dropout(last, self.config.dropout, noise if self.training else None)
        return full_precision(functional.softplus(self.w_out(last))).log_softmax(-1)


class RNNLMRoleClassifier(RNNLMClassifier):
    """RNNLM+ROLE as a classifier: with role embeddings."""
