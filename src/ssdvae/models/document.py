"""A vector of the whole document, as the authors' code of the paper's time has it and the paper does not.

It has read the words that it helps to predict, and nothing in the objective pays for that: with it the
perplexity is none of a model of sequences. ``ssdvae.models.past`` is like it and
does not read ahead.
"""

from __future__ import annotations

from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssdvae.models.flops import linear_flops


class DocumentVector(nn.Module):
    """θ = softmax(mean_t W_θ h_t), t = tanh(W_t θ): t for the logits of frames, ``words`` for those of words.

    h_t are the states at the words that were read: those of the whole document, or of the first events of
    one that is to be continued. ``scale`` multiplies W_θ: what Adam does to θ in a step is that much less.
    """

    def __init__(self, states: int, size: int, width: int, vocabulary: int, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.mixture = nn.Linear(states, size)
        self.vector = nn.Linear(size, width)
        self.words = nn.Linear(width, vocabulary, bias=False)

    def forward(self, hidden: Float[Tensor, "B T h"], words: Bool[Tensor, "B T"]) -> Float[Tensor, "B w"]:
        """t."""
        # What stands in the padding is not even multiplied by zero.
        hidden = hidden.masked_fill(~words[..., None], 0)
        mean = self.mixture(hidden.sum(1) / words.sum(1, keepdim=True).clamp_min(1))
        vector: Tensor = self.vector((self.scale * mean).softmax(-1)).tanh()
        return vector

    def flops(self, documents: int) -> int:
        return sum(linear_flops(layer, documents) for layer in (self.mixture, self.vector, self.words))
