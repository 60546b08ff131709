"""The decoders: the probability of the words, left to right, with or without a plan to follow."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.config import LatentSettings, WordPredictionSettings
from ssdvae.models.attention import Attention
from ssdvae.models.flops import gru_flops, linear_flops
from ssdvae.models.plan import Plan
from ssdvae.models.recurrent import WordReader


@dataclass(frozen=True)
class DecoderOutput:
    """What a decoder made of some events."""

    joined: Float[Tensor, "B M 4 e"]  # what ``w_out`` turns into the logits of each word
    ends: Float[Tensor, "B M h"]  # the upper state after each event
    state: Float[Tensor, "L B h"]  # all states after the last one


class TiedLinear(nn.Module):
    """An output layer whose weights are the word vectors of somebody else."""

    def __init__(self, words: nn.Embedding) -> None:
        super().__init__()
        self.in_features, self.out_features = words.embedding_dim, words.num_embeddings
        self.bias = nn.Parameter(torch.zeros(words.num_embeddings))
        self._words = (words,)  # not a module of ours: the vectors are saved once

    @property
    def weight(self) -> Tensor:
        return self._words[0].weight

    def forward(self, rows: Tensor) -> Tensor:
        return functional.linear(rows, self.weight, self.bias)


class Decoder(nn.Module):
    """p(w_t | w_<t) by a GRU: logits_t = W_out z_t.

    With tied word vectors, logits_t = E P z_t with the word vectors E and the projection P (``narrow``) from
    the hidden units to their dimension.
    """

    def __init__(self, settings: WordPredictionSettings, reader: WordReader, extra: int = 0) -> None:
        super().__init__()
        self.layers = settings.layers
        self.causal = False
        self.sampled_words = settings.sampled_words
        self.gru = nn.GRU(reader.width + extra, settings.hidden, settings.layers, batch_first=True)
        self.narrow: nn.Linear | None = None
        self.w_out: nn.Linear | TiedLinear
        if settings.tied:
            self.narrow = nn.Linear(settings.hidden, reader.words.embedding_dim, bias=False)
            self.w_out = TiedLinear(reader.words)
        else:
            self.w_out = nn.Linear(settings.hidden, reader.words.num_embeddings)

    def output_matrix(self) -> Float[Tensor, "V h"]:
        """What turns the state, combined with the plan, into logits; the bias aside."""
        return self.w_out.weight if self.narrow is None else self.w_out.weight @ self.narrow.weight

    def initial_state(self, plan: Plan) -> Float[Tensor, "L B h"]:
        """The state before anything is read."""
        return self.w_out.weight.new_zeros(self.layers, len(plan.mask), self.gru.hidden_size)

    def gru_inputs(self, inputs: Float[Tensor, "B M K d"], plan: Plan) -> Float[Tensor, "B M K d2"]:
        """What the GRU reads at K places of M events."""
        return inputs

    def combine(
        self, state: Float[Tensor, "B Q h"], plan: Plan, event: Int[Tensor, " Q"]
    ) -> Float[Tensor, "B Q h"]:
        """The state, combined with what it finds in the plan; ``event`` is that of each state."""
        return state

    def output(
        self, state: Float[Tensor, "B Q h"], plan: Plan, event: Int[Tensor, " Q"]
    ) -> Float[Tensor, "B Q e"]:
        """What ``w_out`` turns into logits."""
        joined = self.combine(state, plan, event)
        return joined if self.narrow is None else self.narrow(joined)

    def read(
        self, inputs: Float[Tensor, "B M 5 d"], state: Float[Tensor, "L B h"], plan: Plan
    ) -> DecoderOutput:
        """Some events, teacher-forced, from the event of the plan on."""
        B, M = inputs.shape[:2]
        states, last = self.gru(self.gru_inputs(inputs, plan).flatten(1, 2), state)
        states = states.view(B, M, 5, -1)
        # The state after the separator predicts the verb, …, the state after the object the modifier.
        event = torch.arange(plan.event, plan.event + M, device=inputs.device).repeat_interleave(4)
        joined = self.output(states[:, :, :4].flatten(1, 2), plan, event)
        return DecoderOutput(joined.view(B, M, 4, -1), states[:, :, 4], last)

    def step(
        self, word: Float[Tensor, "B 1 d"], state: Float[Tensor, "L B h"], plan: Plan
    ) -> tuple[Float[Tensor, "B V"], Float[Tensor, "L B h"]]:
        """Read one position of the event of the plan; the logits of the next word, and the state."""
        states, state = self.gru(self.gru_inputs(word[:, None], plan)[:, 0], state)
        event = torch.tensor([plan.event], device=word.device)
        return self.w_out(self.output(states, plan, event))[:, 0], state

    def forward(self, inputs: Float[Tensor, "B M 5 d"], plan: Plan) -> DecoderOutput:
        """Whole documents."""
        return self.read(inputs, self.initial_state(plan), plan)

    def flops(self, documents: int, events: int, latents: int) -> int:
        """Of scoring whole documents, each with a plan of ``latents`` variables."""
        words = 4 * events * documents
        narrowing = 0 if self.narrow is None else linear_flops(self.narrow, words)
        reading = gru_flops(self.gru, 5 * events * documents)
        return reading + narrowing + linear_flops(self.w_out, words)


class GuidedDecoder(Decoder):
    """p(w_t | plan, w_<t) (Algorithm 2 of the paper, where the plan is E^M, a vector for each frame).

    z = GRU(w), started from e_1; α̂ = softmax(E^M Ŵ_in z_t / √d); c_t = E^Mᵀ α̂
    logits_t = Ŵ_out (tanh(Ŵ_in z_t) + tanh(c_t))

    No input feeding: the paper has none, and without it the GRU runs in one call. With ``aligned`` variables,
    one for each event, the GRU reads the vector of its event beside every word. In a ``causal`` decoder a
    word attends to the variables up to its own event: later ones are drawn after it.
    """

    def __init__(
        self, settings: LatentSettings, reader: WordReader, aligned: bool = False, causal: bool = False
    ) -> None:
        super().__init__(settings, reader, settings.hidden if aligned else 0)
        hidden = settings.hidden
        self.aligned, self.causal = aligned, causal
        self.first = nn.Linear(hidden, settings.layers * hidden)
        self.w_in = nn.Linear(hidden, hidden, bias=False)
        self.attention = Attention(hidden, settings.attention)

    def initial_state(self, plan: Plan) -> Float[Tensor, "L B h"]:
        # [B, layers · h] → [layers, B, h]: the layer is the slower index within a document.
        first: Tensor = self.first(plan.vectors[:, 0]).tanh().view(len(plan.mask), self.layers, -1)
        return first.transpose(0, 1).contiguous()

    def gru_inputs(self, inputs: Float[Tensor, "B M K d"], plan: Plan) -> Float[Tensor, "B M K d2"]:
        if not self.aligned:
            return inputs
        own = plan.vectors[:, plan.event : plan.event + inputs.shape[1], None]
        return torch.cat([inputs, own.expand(-1, -1, inputs.shape[2], -1)], dim=-1)

    def combine(
        self, state: Float[Tensor, "B Q h"], plan: Plan, event: Int[Tensor, " Q"]
    ) -> Float[Tensor, "B Q h"]:
        allowed = None
        if self.causal:
            allowed = torch.arange(plan.mask.shape[1], device=event.device) <= event[:, None]
        joined: Tensor = self.attention(self.w_in(state), plan.vectors, plan.mask, allowed)[0]
        return joined

    def flops(self, documents: int, events: int, latents: int) -> int:
        words = 4 * events * documents
        return (
            super().flops(documents, events, latents)
            + linear_flops(self.first, documents)
            + linear_flops(self.w_in, words)
            + self.attention.flops(words, latents)
        )
