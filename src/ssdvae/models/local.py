"""An encoder in which the frame of an event depends on the words, and on no other frame.

The chain of the paper knows its place in a document by nothing but the frame before, and loses it. Here each
event has its own place, so documents may be of any length, and all frames are drawn at once.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssdvae.config import SSDVAESettings
from ssdvae.models.attention import Looks, attend
from ssdvae.models.encoder import Encoder, Surroundings
from ssdvae.models.flops import linear_flops
from ssdvae.models.latent import Posterior
from ssdvae.models.plan import PlanRequest
from ssdvae.models.recurrent import full_precision


class LocalEncoder(Encoder):
    """q(f | w; I) = Π_m q(f_m | I_m, w) of the events that were read.

    h = GRU(x) + W_x x at each word; h_m is that at the head of event m, and H_m those at all of its words.

    q_m = W_in W_1 h_m; α = softmax(H_m q_m / √d); c_m = H_mᵀ α
    γ′_m = W_out (tanh(q_m) + tanh(c_m) + tanh(h_m))

    An event that was not read has only what is before it, as in the paper: q_m = W_in e_{m−1} with the frame
    before, H_m of the last event that was read, and no h_m.
    """

    def __init__(self, settings: SSDVAESettings, width: int, frames: int) -> None:
        super().__init__(settings, width, frames)
        self.w_x = nn.Linear(width, 2 * settings.hidden, bias=False)

    def read(
        self,
        inputs: Float[Tensor, "B M P d"],
        mask: Bool[Tensor, "B M"],
        around: Surroundings | None = None,
    ) -> Float[Tensor, "B T h"]:
        skipping: Tensor = self.w_x(inputs[:, :, 1:]).flatten(1, 2)
        return super().read(inputs, mask, around) + skipping

    def forward(
        self,
        hidden: Float[Tensor, "B T h"],
        frame_embedding: Float[Tensor, "F e"],
        request: PlanRequest,
        offsets: Float[Tensor, "B O F"] | None = None,
    ) -> Posterior:
        """Frames of the events that were read, all at once; then of the others, one after another."""
        read = request.read.mask
        size, count = read.shape
        # NaN · 0 is NaN: padding must be no number that spreads.
        states = hidden.view(size, count, -1, hidden.shape[-1]).masked_fill(~read[..., None, None], 0)
        queries = self.w_in(self.first(states[:, :, 0]))
        joined = self._joined(queries, states) + states[:, :, 0].tanh()
        steps = [self._drawn(joined, queries, frame_embedding, request, 0, offsets)]
        for m in range(count, request.mask.shape[1]):
            query = self.w_in(steps[-1].memory[:, -1:])
            joined = self._joined(query, states[:, -1:])
            steps.append(self._drawn(joined, query, frame_embedding, request, m, offsets))
        drawn = _Drawn(*(torch.cat(part, dim=1) for part in zip(*steps, strict=True)))
        looks = _looks(drawn.queries, states)
        return Posterior(drawn.raw_logits, drawn.logits, drawn.sample, drawn.memory, looks, request.mask)

    def _joined(
        self, query: Float[Tensor, "B N h"], states: Float[Tensor, "B N S h"]
    ) -> Float[Tensor, "B N h"]:
        """Each query with what it finds among the words of its event."""
        rows, words = query.flatten(0, 1)[:, None], states.flatten(0, 1)
        everything = torch.ones(words.shape[:2], dtype=torch.bool, device=words.device)
        context, _ = attend(rows, words, everything, zeroed=True)
        return self.attention.joined(query, context.view_as(query))

    def _drawn(
        self,
        joined: Float[Tensor, "B N h"],
        queries: Float[Tensor, "B N h"],
        frame_embedding: Float[Tensor, "F e"],
        request: PlanRequest,
        first: int,
        offsets: Float[Tensor, "B O F"] | None,
    ) -> _Drawn:
        """Frames of some events, from event ``first`` on."""
        raw_logits = full_precision(self.w_out(joined))
        if offsets is not None:
            own = slice(first, first + joined.shape[1]) if offsets.shape[1] > 1 else slice(None)
            raw_logits = raw_logits + offsets[:, own]
        logits = self.inject(raw_logits, request.observed[:, first : first + joined.shape[1]])
        sample = request.sampler(logits, request.noise)
        return _Drawn(raw_logits, logits, sample, sample.to(frame_embedding.dtype) @ frame_embedding, queries)

    def flops(self, documents: int, events: int, slots: int) -> int:
        frames, hidden = self.w_out.out_features, self.w_in.in_features
        layers = (self.first, self.w_in, self.w_out)
        each = sum(linear_flops(layer, 1) for layer in layers) + self.attention.flops(1, slots)
        each += slots * linear_flops(self.w_x, 1) + 2 * frames * hidden
        return documents * events * each


class _Drawn(NamedTuple):
    """Frames of some events, as in a ``Posterior``; and what each looked for."""

    raw_logits: Float[Tensor, "B N F"]
    logits: Float[Tensor, "B N F"]
    sample: Float[Tensor, "B N F"]
    memory: Float[Tensor, "B N e"]
    queries: Float[Tensor, "B N h"]


def _looks(queries: Float[Tensor, "B N h"], states: Float[Tensor, "B M S h"]) -> Looks:
    """Attention to the words of each event, or of the last one that was read."""
    _, count, slots, _ = states.shape
    own = torch.arange(queries.shape[1], device=states.device).clamp_max(count - 1)
    event = torch.arange(count, device=states.device).repeat_interleave(slots)
    words = states.flatten(1, 2)
    # Padding looks at padding, which is zeros.
    everything = torch.ones(words.shape[:2], dtype=torch.bool, device=words.device)
    return Looks(queries, words, everything, own[:, None] == event)
