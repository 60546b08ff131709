"""The decoders: the probability of the words, left to right, with or without a plan to follow."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.config import ModelSettings
from ssdvae.data.batches import Noise
from ssdvae.models.attention import Attention
from ssdvae.models.flops import gru_flops, linear_flops
from ssdvae.models.past import PastVector
from ssdvae.models.recurrent import WordReader, dropped


@dataclass(frozen=True)
class Plan:
    """What the words of a document follow beside the words before them: a vector for each latent variable.

    A language model has none: N = 0. ``frames`` names the frame of each vector, if these are frames.
    ``event`` is the place in the document of the event that is read or written next.
    """

    vectors: Float[Tensor, "B N e"]
    mask: Bool[Tensor, "B N"]
    frames: Int[Tensor, "B N"] | None = None
    event: int = 0

    def rows(self, rows: Int[Tensor, " K"]) -> Plan:
        """Some of the documents, each as often as wanted."""
        frames = None if self.frames is None else self.frames[rows]
        return Plan(self.vectors[rows], self.mask[rows], frames, self.event)

    def after(self, events: int) -> Plan:
        """The same plan, some events later."""
        return replace(self, event=self.event + events)


@dataclass(frozen=True)
class State:
    """All that a decoder remembers of the words before.

    The last three are the planner's, within an event (``ssdvae.models.planner``).
    """

    layers: Float[Tensor, "L B h"]  # of the GRU
    past: Float[Tensor, "B K"] | None = None  # the sum of the vectors of the events before this one
    log_frames: Float[Tensor, "B F"] | None = None  # log of the weight of each frame, up to a constant
    head: Int[Tensor, " B"] | None = None  # of this event
    voices: Float[Tensor, "B D V"] | None = None  # log p(the next word) by each candidate of the head

    def rows(self, rows: Int[Tensor, " K"]) -> State:
        """Some of the documents, each as often as wanted."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "layers"}
        taken = {name: None if value is None else value[rows] for name, value in kept.items()}
        return State(self.layers[:, rows].contiguous(), **taken)


@dataclass(frozen=True)
class Reading:
    """What a decoder made of some events."""

    states: Float[Tensor, "B M 4 h"]  # the upper ones that words are predicted from
    joined: Float[Tensor, "B M 4 e"]  # what ``w_out`` turns into the logits of each word
    ends: Float[Tensor, "B M h"]  # the upper state after each event
    state: State  # after the last one


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
    """p(w_t | w_<t) by a GRU: logits_t = W_out z_t; or E P z_t with the word vectors E, if these are tied.

    With a ``past`` of some width, z_t is joined by what a vector of the events so far says about its slot.
    """

    def __init__(self, settings: ModelSettings, reader: WordReader, extra: int = 0, past: int = 0) -> None:
        super().__init__()
        self.layers = settings.layers
        self.waits = False
        self.dropout = settings.state_dropout
        self.gru = nn.GRU(reader.width + extra, settings.hidden, settings.layers, batch_first=True)
        self.past = PastVector(settings.hidden, past) if past else None
        self.narrow: nn.Linear | None = None
        self.w_out: nn.Linear | TiedLinear
        if settings.tied:
            self.narrow = nn.Linear(settings.hidden, reader.words.embedding_dim, bias=False)
            self.w_out = TiedLinear(reader.words)
        else:
            self.w_out = nn.Linear(settings.hidden, reader.words.num_embeddings)

    def output_matrix(self) -> Float[Tensor, "V h"]:
        """What turns ``join`` into logits, the bias aside."""
        return self.w_out.weight if self.narrow is None else self.w_out.weight @ self.narrow.weight

    def start(self, plan: Plan) -> State:
        """The state before anything is read."""
        empty = self.w_out.weight.new_zeros
        layers = empty(self.layers, len(plan.mask), self.gru.hidden_size)
        return State(layers, None if self.past is None else empty(len(plan.mask), self.past.width))

    def guided(self, inputs: Float[Tensor, "B M K d"], plan: Plan) -> Float[Tensor, "B M K d2"]:
        """What the GRU reads at K places of M events."""
        return inputs

    def join(
        self, state: Float[Tensor, "B Q h"], plan: Plan, event: Int[Tensor, " Q"]
    ) -> Float[Tensor, "B Q h"]:
        """The state with what it finds in the plan, at its event."""
        return state

    def output(
        self, state: Float[Tensor, "B Q h"], plan: Plan, event: Int[Tensor, " Q"]
    ) -> Float[Tensor, "B Q e"]:
        """What ``w_out`` turns into logits."""
        return self.narrowed(self.join(state, plan, event))

    def narrowed(self, state: Float[Tensor, "*rows h"]) -> Float[Tensor, "*rows e"]:
        return state if self.narrow is None else self.narrow(state)

    def read(
        self, inputs: Float[Tensor, "B M 5 d"], state: State, plan: Plan, noise: Noise | None = None
    ) -> Reading:
        """Some events, teacher-forced, from the event of the plan on; ``noise`` is for dropout."""
        B, M = inputs.shape[:2]
        inputs = dropped(inputs, self.dropout, noise)
        states, last = self.gru(self.guided(inputs, plan).flatten(1, 2), state.layers)
        states = states.view(B, M, 5, -1)
        # The state after the separator predicts the verb, …, the state after the object the modifier.
        speaking, ends, sums = states[:, :, :4], states[:, :, 4], state.past
        if self.past is not None and sums is not None:
            before, sums = self.past.before(ends, sums)
            speaking = speaking + self.past(before, plan.event)
        speaking = dropped(speaking, self.dropout, noise)
        event = torch.arange(plan.event, plan.event + M, device=inputs.device).repeat_interleave(4)
        joined = self.output(speaking.flatten(1, 2), plan, event)
        return Reading(speaking, joined.view(B, M, 4, -1), ends, State(last, sums))

    def step(
        self, word: Float[Tensor, "B 1 d"], state: State, plan: Plan, place: int
    ) -> tuple[Float[Tensor, "B h"], State]:
        """Read one place of the event of the plan; returns what predicts the next word, and the state."""
        states, layers = self.gru(self.guided(word[:, None], plan)[:, 0], state.layers)
        speaking, sums = states[:, 0], state.past
        if self.past is not None and sums is not None:
            if place == 4:
                sums = sums + self.past.vectors(speaking)
            else:
                speaking = speaking + self.past(sums[:, None], plan.event)[:, 0, place]
        return speaking, replace(state, layers=layers, past=sums)

    def logits(self, state: Float[Tensor, "B h"], plan: Plan) -> Float[Tensor, "B V"]:
        """Those of the next word of the event of the plan."""
        event = torch.tensor([plan.event], device=state.device)
        logits: Tensor = self.w_out(self.output(state[:, None], plan, event))[:, 0]
        return logits

    def forward(self, inputs: Float[Tensor, "B M 5 d"], plan: Plan, noise: Noise | None = None) -> Reading:
        """Whole documents."""
        return self.read(inputs, self.start(plan), plan, noise)

    def flops(self, documents: int, events: int, latents: int) -> int:
        """Of scoring whole documents, each with a plan of ``latents`` variables."""
        words = 4 * events * documents
        narrowing = 0 if self.narrow is None else linear_flops(self.narrow, words)
        reading = gru_flops(self.gru, 5 * events * documents)
        looking = 0 if self.past is None else self.past.flops(events * documents)
        return reading + looking + narrowing + linear_flops(self.w_out, words)


class GuidedDecoder(Decoder):
    """p(w_t | plan, w_<t) (Algorithm 2 of the paper, where the plan is E^M, a vector for each frame).

    z = GRU(w), started from e_1; α̂ = softmax(E^M Ŵ_in z_t / √d); c_t = E^Mᵀ α̂
    logits_t = Ŵ_out (tanh(Ŵ_in z_t) + tanh(c_t))

    No input feeding: the paper has none, and without it the GRU runs in one call. With ``aligned`` variables,
    one for each event, the GRU reads that of its event beside every word. If it ``waits`` for variables that
    are drawn between the events, words follow only those up to their own.
    """

    def __init__(
        self, settings: ModelSettings, reader: WordReader, aligned: bool = False, waits: bool = False
    ) -> None:
        super().__init__(settings, reader, settings.hidden if aligned else 0)
        hidden = settings.hidden
        self.aligned, self.waits = aligned, waits
        self.first = nn.Linear(hidden, settings.layers * hidden)
        self.w_in = nn.Linear(hidden, hidden, bias=False)
        self.attention = Attention(hidden, settings.attention)

    def start(self, plan: Plan) -> State:
        # [B, layers · h] → [layers, B, h]: the layer is the slower index within a document.
        first: Tensor = self.first(plan.vectors[:, 0]).tanh().view(len(plan.mask), self.layers, -1)
        return State(first.transpose(0, 1).contiguous())

    def guided(self, inputs: Float[Tensor, "B M K d"], plan: Plan) -> Float[Tensor, "B M K d2"]:
        if not self.aligned:
            return inputs
        own = plan.vectors[:, plan.event : plan.event + inputs.shape[1], None]
        return torch.cat([inputs, own.expand(-1, -1, inputs.shape[2], -1)], dim=-1)

    def join(
        self, state: Float[Tensor, "B Q h"], plan: Plan, event: Int[Tensor, " Q"]
    ) -> Float[Tensor, "B Q h"]:
        allowed = None
        if self.waits:
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
