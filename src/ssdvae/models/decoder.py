"""The decoders: the probability of the words, left to right, with or without a plan to follow."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.config import LatentSettings, WordPredictionSettings
from ssdvae.data.batches import Noise
from ssdvae.models.attention import Attention
from ssdvae.models.flops import gru_flops, linear_flops
from ssdvae.models.past import PastVector
from ssdvae.models.plan import Plan
from ssdvae.models.recurrent import WordReader, dropped


@dataclass(frozen=True)
class DecoderState:
    """All that a decoder remembers of the words before.

    The last three are the planner's, within an event (``ssdvae.models.planner_decoder``).
    """

    layers: Float[Tensor, "L B h"]  # of the GRU
    past: Float[Tensor, "B K"] | None = None  # the sum of the vectors of the events before this one
    log_frames: Float[Tensor, "B F"] | None = None  # log of the weight of each frame, up to a constant
    head: Int[Tensor, " B"] | None = None  # of this event
    candidates: Float[Tensor, "B D V"] | None = None  # log p(the next word) by each candidate of the head

    def rows(self, rows: Int[Tensor, " K"]) -> DecoderState:
        """Some of the documents, each as often as wanted."""
        others = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "layers"}
        taken = {name: None if value is None else value[rows] for name, value in others.items()}
        return DecoderState(self.layers[:, rows].contiguous(), **taken)


@dataclass(frozen=True)
class DecoderOutput:
    """What a decoder made of some events."""

    states: Float[Tensor, "B M S h"]  # the upper ones, that each word is predicted from
    joined: Float[Tensor, "B M S e"]  # what ``w_out`` turns into the logits of each word
    ends: Float[Tensor, "B M h"]  # the upper state after each event
    state: DecoderState  # after the last one


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
    the hidden units to their dimension. With a ``past`` of some width, z_t is the sum of the GRU's state and
    what a vector of the events so far adds for its slot. ``dropout`` is that of inputs and states.
    """

    def __init__(
        self,
        settings: WordPredictionSettings,
        reader: WordReader,
        extra: int = 0,
        past: int = 0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.layers, self.slots = settings.layers, reader.slots
        self.causal = False
        self.sampled_words = settings.sampled_words
        self.dropout = dropout
        self.gru = nn.GRU(reader.width + extra, settings.hidden, settings.layers, batch_first=True)
        self.past = PastVector(settings.hidden, past, reader.slots) if past else None
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

    def initial_state(self, plan: Plan) -> DecoderState:
        """The state before anything is read."""
        empty = self.w_out.weight.new_zeros
        layers = empty(self.layers, len(plan.mask), self.gru.hidden_size)
        return DecoderState(layers, None if self.past is None else empty(len(plan.mask), self.past.width))

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
        return self.narrowed(self.combine(state, plan, event))

    def narrowed(self, state: Float[Tensor, "*rows h"]) -> Float[Tensor, "*rows e"]:
        """P z, where word vectors are tied; else z."""
        return state if self.narrow is None else self.narrow(state)

    def read(
        self, inputs: Float[Tensor, "B M P d"], state: DecoderState, plan: Plan, noise: Noise | None = None
    ) -> DecoderOutput:
        """Some events, teacher-forced, from the event of the plan on; ``noise`` is for dropout."""
        B, M = inputs.shape[:2]
        inputs = dropped(inputs, self.dropout, noise)
        states, last = self.gru(self.gru_inputs(inputs, plan).flatten(1, 2), state.layers)
        states = states.view(*inputs.shape[:3], -1)
        # The state after the separator predicts the head, …, that after a slot the next one.
        predicting, ends, sums = states[:, :, :-1], states[:, :, -1], state.past
        if self.past is not None and sums is not None:
            before, sums = self.past.before(ends, sums)
            predicting = predicting + self.past(before, plan.event)
        predicting = dropped(predicting, self.dropout, noise)
        event = torch.arange(plan.event, plan.event + M, device=inputs.device)
        event = event.repeat_interleave(self.slots)
        joined = self.output(predicting.flatten(1, 2), plan, event)
        return DecoderOutput(predicting, joined.view(B, M, self.slots, -1), ends, DecoderState(last, sums))

    def step(
        self, word: Float[Tensor, "B 1 d"], state: DecoderState, plan: Plan, position: int
    ) -> tuple[Float[Tensor, "B h"], DecoderState]:
        """Read one position of the event of the plan; what the next word is predicted from, and the state."""
        states, layers = self.gru(self.gru_inputs(word[:, None], plan)[:, 0], state.layers)
        predicting, sums = states[:, 0], state.past
        if self.past is not None and sums is not None:
            if position == self.slots:
                sums = sums + self.past.vectors(predicting)
            else:
                predicting = predicting + self.past(sums[:, None], plan.event)[:, 0, position]
        return predicting, replace(state, layers=layers, past=sums)

    def logits(self, predicting: Float[Tensor, "B h"], plan: Plan) -> Float[Tensor, "B V"]:
        """Those of the next word of the event of the plan."""
        event = torch.tensor([plan.event], device=predicting.device)
        logits: Tensor = self.w_out(self.output(predicting[:, None], plan, event))[:, 0]
        return logits

    def forward(
        self, inputs: Float[Tensor, "B M P d"], plan: Plan, noise: Noise | None = None
    ) -> DecoderOutput:
        """Whole documents."""
        return self.read(inputs, self.initial_state(plan), plan, noise)

    def flops(self, documents: int, events: int, latents: int) -> int:
        """Of scoring whole documents, each with a plan of ``latents`` variables."""
        words = self.slots * events * documents
        narrowing = 0 if self.narrow is None else linear_flops(self.narrow, words)
        reading = gru_flops(self.gru, (self.slots + 1) * events * documents)
        past = 0 if self.past is None else self.past.flops(events * documents)
        return reading + past + narrowing + linear_flops(self.w_out, words)


class GuidedDecoder(Decoder):
    """p(w_t | plan, w_<t) (Algorithm 2 of the paper, where the plan is E^M, a vector for each frame).

    z = GRU(w), started from e_1; α̂ = softmax(E^M Ŵ_in z_t / √d); c_t = E^Mᵀ α̂
    logits_t = Ŵ_out (tanh(Ŵ_in z_t) + tanh(c_t))

    No input feeding: the paper has none, and without it the GRU runs in one call. With ``aligned`` variables,
    one for each event, the GRU reads the vector of its event beside every word. In a ``causal`` decoder a
    word attends to the variables up to its own event: later ones are drawn after it. In a ``local`` one c_t
    is the vector of its event: what was before is in the GRU, and a document may be as long as it likes.
    """

    def __init__(
        self,
        settings: LatentSettings,
        reader: WordReader,
        aligned: bool = False,
        causal: bool = False,
        local: bool = False,
    ) -> None:
        super().__init__(settings, reader, settings.hidden if aligned else 0)
        hidden = settings.hidden
        self.aligned, self.causal, self.local = aligned, causal, local
        self.first = nn.Linear(hidden, settings.layers * hidden)
        self.w_in = nn.Linear(hidden, hidden, bias=False)
        self.attention = Attention(hidden, settings.attention)

    def initial_state(self, plan: Plan) -> DecoderState:
        # [B, layers · h] → [layers, B, h]: the layer is the slower index within a document.
        first: Tensor = self.first(plan.vectors[:, 0]).tanh().view(len(plan.mask), self.layers, -1)
        return DecoderState(first.transpose(0, 1).contiguous())

    def gru_inputs(self, inputs: Float[Tensor, "B M K d"], plan: Plan) -> Float[Tensor, "B M K d2"]:
        if not self.aligned:
            return inputs
        own = plan.vectors[:, plan.event : plan.event + inputs.shape[1], None]
        return torch.cat([inputs, own.expand(-1, -1, inputs.shape[2], -1)], dim=-1)

    def combine(
        self, state: Float[Tensor, "B Q h"], plan: Plan, event: Int[Tensor, " Q"]
    ) -> Float[Tensor, "B Q h"]:
        if self.local:
            return self.attention.joined(self.w_in(state), plan.vectors[:, event])
        allowed = None
        if self.causal:
            allowed = torch.arange(plan.mask.shape[1], device=event.device) <= event[:, None]
        joined: Tensor = self.attention(self.w_in(state), plan.vectors, plan.mask, allowed)[0]
        return joined

    def flops(self, documents: int, events: int, latents: int) -> int:
        words = self.slots * events * documents
        return (
            super().flops(documents, events, latents)
            + linear_flops(self.first, documents)
            + linear_flops(self.w_in, words)
            + self.attention.flops(words, 0 if self.local else latents)
        )
