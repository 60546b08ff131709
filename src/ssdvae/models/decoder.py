"""The decoder: from a chain of frames to the probability of the words (Algorithm 2 of the paper)."""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssdvae.config import ModelSettings
from ssdvae.models.attention import Attention


class Decoder(nn.Module):
    """p(w_t | f, w_<t), teacher-forced.

    z = GRU(w), started from e_1; α̂ = softmax(E^M Ŵ_in z_t / √d); c_t = E^Mᵀ α̂
    logits_t = Ŵ_out (tanh(Ŵ_in z_t) + tanh(c_t))

    No input feeding: the paper has none, and without it the GRU runs in one call.
    """

    def __init__(self, settings: ModelSettings, width: int, vocabulary: int) -> None:
        super().__init__()
        hidden = settings.hidden
        self.layers = settings.layers
        self.gru = nn.GRU(width, hidden, settings.layers, batch_first=True)
        self.first = nn.Linear(hidden, settings.layers * hidden)
        self.w_in = nn.Linear(hidden, hidden, bias=False)
        self.attention = Attention(hidden, settings.attention)
        self.w_out = nn.Linear(hidden, vocabulary)

    def forward(
        self,
        inputs: Float[Tensor, "B M 5 d"],
        frame_memory: Float[Tensor, "B N e"],
        mask: Bool[Tensor, "B N"],
    ) -> Float[Tensor, "B M 4 e"]:
        """What ``w_out`` turns into logits, for each word; ``mask`` says which of the N frames are real."""
        B, M = inputs.shape[:2]
        # [B, layers · h] → [layers, B, h]: the layer is the slower index within a document.
        first = self.first(frame_memory[:, 0]).tanh().view(B, self.layers, -1).transpose(0, 1).contiguous()
        state, _ = self.gru(inputs.flatten(1, 2), first)
        # The state after the separator predicts the verb, …, the state after the object the modifier.
        state = state.view(B, M, 5, -1)[:, :, :4].flatten(1, 2)
        joined: Tensor = self.attention(self.w_in(state), frame_memory, mask)[0]
        return joined.view(B, M, 4, -1)
