"""Cases of a log: where they end.

After event m of a case, with z_m the decoder's state after its last word,

    p(end | w_≤m)  = σ(w · z_m + b)
    p(v | w_≤m)    = (1 − p(end | w_≤m)) p(head v | w_≤m, the case goes on)

so that the end and the heads of all events sum to one, as if the end were one more head. The second factor is
the model without ends. So perplexity, frames and embeddings do not know of the end, and a model of a corpus
without ends has no such part. Before the first event the end is impossible: a case has one event at least.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.data.batches import Batch
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import LanguageModel, Loss, Model
from ssdvae.models.layers import full_precision
from ssdvae.models.options import ModelOptions


class CaseModel(LanguageModel):
    """A left-to-right language model that can learn where cases end."""

    def __init__(
        self, config: ModelOptions, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.end: nn.Linear | None = None

    def learn_cases(self, ends: bool) -> None:
        """Add the parts for a corpus of cases."""
        self.end = nn.Linear(self.config.hidden, 1) if ends else None

    def end_log_probs(self, states: Float[Tensor, "*events h"]) -> Float[Tensor, "*events 2"]:
        """Return log p(the case goes on) and log p(it ends) from the states after events."""
        assert self.end is not None
        logit = full_precision(self.end(states))
        return functional.logsigmoid(torch.cat([-logit, logit], dim=-1))

    def with_case_terms(self, loss: Loss, batch: Batch, states: Float[Tensor, "B M h"]) -> Loss:
        """Return the loss with −log p(goes on) of events that others follow, and −log p(end) of cases."""
        if self.end is None or batch.ends is None:
            return loss
        more, over = self.end_log_probs(states).unbind(-1)
        followed = functional.pad(batch.mask[:, 1:], (0, 1))
        log_p = (more * followed + over * batch.ends).sum(1)
        return replace(loss, per_document=loss.per_document - log_p, terms={**loss.terms, "end": log_p})


@torch.no_grad()
def log_ends(model: Model, batch: Batch) -> Float[Tensor, "B M 2"] | None:
    """Return log p(the case goes on) and log p(it ends) after each event; None without ends."""
    found = with_ends(model)
    return None if found is None else found.end_log_probs(found.event_states(batch)).double()


def with_ends(model: Model) -> CaseModel | None:
    """Return the model if it has learned where cases end."""
    return model if isinstance(model, CaseModel) and model.end is not None else None
