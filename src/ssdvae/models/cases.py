"""Cases of a log: where they end, and when events happen (``times``).

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

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import DecoderOutput, LanguageModel, Loss, Model
from ssdvae.models.latents import Latents
from ssdvae.models.layers import dropout, full_precision
from ssdvae.models.options import ModelOptions
from ssdvae.models.times import DROPOUT, TimeForecast, TimeModel, time_targets


class CaseModel(LanguageModel):
    """A left-to-right language model that can learn where cases end."""

    def __init__(
        self, config: ModelOptions, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.end: nn.Linear | None = None
        self.clock: TimeModel | None = None

    def learn_cases(self, ends: bool, times: bool) -> None:
        """Add the parts for a corpus of cases."""
        self.end = nn.Linear(self.config.hidden, 1) if ends else None
        self.clock = TimeModel(self.config.hidden) if times else None

    def case_dropout(self, values: Float[Tensor, "B *shape"], noise: Noise) -> Float[Tensor, "B *shape"]:
        """Return the values with dropout if the model is in training on cases: logs are small."""
        on_cases = self.training and (self.end is not None or self.clock is not None)
        return dropout(values, DROPOUT, noise if on_cases else None)

    def decode_in_training(self, batch: Batch, latents: Latents, noise: Noise) -> DecoderOutput:
        """Return the states of the decoder on the words of a batch, with ``case_dropout``."""
        inputs = self.case_dropout(self.word_reader(batch.tokens), noise)
        decoded: DecoderOutput = self.decoder(inputs, self.decoder.init_state(latents), latents)
        return replace(decoded, states=self.case_dropout(decoded.states, noise))

    def separate_parts(self) -> list[nn.Module]:
        """Return the parts that learn from the others as they are."""
        return [] if self.clock is None else [self.clock]

    def clipping_groups(self) -> list[list[nn.Parameter]]:
        """Clip the gradients of separate parts apart, so that the others learn as they would alone."""
        parts = [list(part.parameters()) for part in self.separate_parts()]
        theirs = {id(parameter) for group in parts for parameter in group}
        return [[p for p in self.parameters() if id(p) not in theirs], *parts]

    def next_heads(
        self, states: Float[Tensor, "N h"]
    ) -> tuple[Float[Tensor, "N V"], Float[Tensor, "N F"] | None]:
        """Return log p of the heads and of the frames of next events that follow these states."""
        return full_precision(self.decoder.output(states)).log_softmax(-1), None

    def end_log_probs(self, states: Float[Tensor, "*events h"]) -> Float[Tensor, "*events 2"]:
        """Return log p(the case goes on) and log p(it ends) from the states after events."""
        assert self.end is not None
        logit = full_precision(self.end(states))
        return functional.logsigmoid(torch.cat([-logit, logit], dim=-1))

    def with_case_terms(self, loss: Loss, batch: Batch, states: Float[Tensor, "B M h"], noise: Noise) -> Loss:
        """Return the loss with −log p(goes on) of events that others follow, −log p(end) of cases, and times.

        The ``time`` term trains the ``clock`` alone.
        """
        terms = self.case_terms(batch, states, noise)
        if not terms:
            return loss
        total = loss.per_document - torch.stack(list(terms.values())).sum(0)
        return replace(loss, per_document=total, terms={**loss.terms, **terms})

    def case_terms(
        self, batch: Batch, states: Float[Tensor, "B M h"], noise: Noise | None = None
    ) -> dict[str, Float[Tensor, " B"]]:
        """Return log p of ends, and of times, from the states after events; in training with ``noise``."""
        noise, terms = noise if self.training else None, {}
        if self.end is not None and batch.ends is not None:
            more, over = self.end_log_probs(dropout(states, DROPOUT, noise)).unbind(-1)
            followed = functional.pad(batch.mask[:, 1:], (0, 1))
            terms["end"] = (more * followed + over * batch.ends).sum(1)
        if self.clock is not None and batch.times is not None:
            found = self.clock(states, batch.times, noise)
            targets = time_targets(batch.times, batch.mask, batch.ends)
            each = [
                mixture.log_prob(x.nan_to_num()).masked_fill(x.isnan(), 0)
                for mixture, x in zip((found.gap, found.rest), targets, strict=True)
            ]
            terms["time"] = torch.stack(each).sum((0, 2))
        return terms


@torch.no_grad()
def log_ends(
    model: Model, batch: Batch, states: Float[Tensor, "B M h"] | None = None
) -> Float[Tensor, "B M 2"] | None:
    """Return log p(the case goes on) and log p(it ends) after each event; None without ends.

    ``states`` are those after the events, if they are there already.
    """
    found = with_ends(model)
    if found is None:
        return None
    return found.end_log_probs(found.event_states(batch) if states is None else states).double()


@torch.no_grad()
def forecast_times(
    model: Model, batch: Batch, states: Float[Tensor, "B M h"] | None = None
) -> TimeForecast | None:
    """Return the distributions of times after each event; None without a clock, or without times."""
    if not isinstance(model, CaseModel) or model.clock is None or batch.times is None:
        return None
    states = model.event_states(batch) if states is None else states
    found: TimeForecast = model.clock(states, batch.times)
    return found


def with_ends(model: Model) -> CaseModel | None:
    """Return the model if it has learned where cases end."""
    return model if isinstance(model, CaseModel) and model.end is not None else None
