"""The fully supervised baselines of frame prediction: RNNLM and RNNLM+ROLE as classifiers."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.config import SLOTS, ClassifierSettings, Slots
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import FrameModel, FramePosterior, Loss, Model
from ssdvae.models.layers import PaddedGRU, dropout, full_precision
from ssdvae.models.losses import frame_nll


class RNNLMClassifier(Model, FrameModel):
    """p(f_m | w) = softmax(softplus(W h_m + b)), with h_m the last states of a bidirectional GRU.

    The last states of an event are the forward one at its last slot and the backward one at its head; with
    one event per document, as in the paper, these are the last states of the document. It learns from
    observed frames only and gives words no probability.
    """

    config: ClassifierSettings

    def __init__(
        self, config: ClassifierSettings, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
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
    """The same with role embeddings."""
