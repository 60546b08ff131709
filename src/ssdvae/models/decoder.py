"""The decoders: the probability of the words, left to right, with or without a plan to follow."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ssdvae.config import ModelSettings
from ssdvae.models.attention import Attention
from ssdvae.models.flops import gru_flops, linear_flops


@dataclass(frozen=True)
class Plan:
    """What the words of a document follow beside the words before them: a vector for each latent variable.

    A language model has none: N = 0. ``frames`` names the frame of each vector, if these are frames.
    """

    vectors: Float[Tensor, "B N e"]
    mask: Bool[Tensor, "B N"]
    frames: Int[Tensor, "B N"] | None = None

    def rows(self, rows: Int[Tensor, " K"]) -> Plan:
        """Some of the documents, each as often as wanted."""
        frames = None if self.frames is None else self.frames[rows]
        return Plan(self.vectors[rows], self.mask[rows], frames)


class Decoder(nn.Module):
    """p(w_t | w_<t) by a GRU: logits_t = W_out z_t."""

    def __init__(self, settings: ModelSettings, width: int, vocabulary: int) -> None:
        super().__init__()
        self.layers = settings.layers
        self.gru = nn.GRU(width, settings.hidden, settings.layers, batch_first=True)
        self.w_out = nn.Linear(settings.hidden, vocabulary)

    def start(self, plan: Plan) -> Float[Tensor, "L B h"]:
        """The state before anything is read."""
        return self.w_out.weight.new_zeros(self.layers, len(plan.mask), self.gru.hidden_size)

    def join(self, state: Float[Tensor, "B Q h"], plan: Plan) -> Float[Tensor, "B Q e"]:
        """What ``w_out`` turns into logits."""
        return state

    def read(
        self, inputs: Float[Tensor, "B M 5 d"], state: Float[Tensor, "L B h"], plan: Plan
    ) -> tuple[Float[Tensor, "B M 4 e"], Float[Tensor, "L B h"]]:
        """What ``w_out`` turns into the logits of each word, and the state after the last one."""
        B, M = inputs.shape[:2]
        states, last = self.gru(inputs.flatten(1, 2), state)
        # The state after the separator predicts the verb, …, the state after the object the modifier.
        states = states.view(B, M, 5, -1)[:, :, :4].flatten(1, 2)
        return self.join(states, plan).view(B, M, 4, -1), last

    def forward(self, inputs: Float[Tensor, "B M 5 d"], plan: Plan) -> Float[Tensor, "B M 4 e"]:
        """A whole document, teacher-forced."""
        joined: Tensor = self.read(inputs, self.start(plan), plan)[0]
        return joined

    def flops(self, documents: int, events: int, latents: int) -> int:
        """Of scoring whole documents, each with a plan of ``latents`` variables."""
        words = 4 * events * documents
        return gru_flops(self.gru, 5 * events * documents) + linear_flops(self.w_out, words)


class GuidedDecoder(Decoder):
    """p(w_t | plan, w_<t) (Algorithm 2 of the paper, where the plan is E^M, a vector for each frame).

    z = GRU(w), started from e_1; α̂ = softmax(E^M Ŵ_in z_t / √d); c_t = E^Mᵀ α̂
    logits_t = Ŵ_out (tanh(Ŵ_in z_t) + tanh(c_t))

    No input feeding: the paper has none, and without it the GRU runs in one call.
    """

    def __init__(self, settings: ModelSettings, width: int, vocabulary: int) -> None:
        super().__init__(settings, width, vocabulary)
        hidden = settings.hidden
        self.first = nn.Linear(hidden, settings.layers * hidden)
        self.w_in = nn.Linear(hidden, hidden, bias=False)
        self.attention = Attention(hidden, settings.attention)

    def start(self, plan: Plan) -> Float[Tensor, "L B h"]:
        # [B, layers · h] → [layers, B, h]: the layer is the slower index within a document.
        first: Tensor = self.first(plan.vectors[:, 0]).tanh().view(len(plan.mask), self.layers, -1)
        return first.transpose(0, 1).contiguous()

    def join(self, state: Float[Tensor, "B Q h"], plan: Plan) -> Float[Tensor, "B Q e"]:
        joined: Tensor = self.attention(self.w_in(state), plan.vectors, plan.mask)[0]
        return joined

    def flops(self, documents: int, events: int, latents: int) -> int:
        words = 4 * events * documents
        return (
            super().flops(documents, events, latents)
            + linear_flops(self.first, documents)
            + linear_flops(self.w_in, words)
            + self.attention.flops(words, latents)
        )
