"""The encoder: from words to a chain of frames (Algorithm 1 of the paper)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ssdvae.config import SSDVAESettings
from ssdvae.models.attention import Attention, Looks
from ssdvae.models.flops import linear_flops
from ssdvae.models.latent import INJECTIONS, Posterior
from ssdvae.models.plan import PlanRequest
from ssdvae.models.recurrent import Bidirectional, full_precision, per_word, to_padded


class _Steps:
    """What each step of a chain gives, put together along the second dimension.

    Without gradients the places are there from the start: small tensors that are kept between large ones
    that are not leave holes in the memory, as large as the large ones.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.kept: list[tuple[Tensor, ...]] = []
        self.places: list[Tensor] = []

    def add(self, step: int, *parts: Tensor) -> None:
        if torch.is_grad_enabled():
            self.kept.append(parts)
            return
        if not self.places:
            self.places = [part.new_empty(len(part), self.count, *part.shape[1:]) for part in parts]
        for place, part in zip(self.places, parts, strict=True):
            place[:, step] = part

    def together(self) -> list[Tensor]:
        return self.places or [torch.stack(part, dim=1) for part in zip(*self.kept, strict=True)]


class Surroundings(NamedTuple):
    """The events that stand around documents: as many before as after them, as far as there are so many."""

    inputs: Float[Tensor, "B A P d"]
    mask: Bool[Tensor, "B A"]


class Encoder(nn.Module):
    """q(f | w; I) = Π_m q(f_m | f_{m−1}, I_m, w), one frame after another.

    e_{m−1} = f_{m−1}ᵀ E^F; α = softmax(H W_in e_{m−1} / √d); c_m = Hᵀ α
    γ′_m = W_out (tanh(W_in e_{m−1}) + tanh(c_m)); γ_m = γ′_m + ‖γ′_m‖ I_m; f_m ~ q(· | γ_m)

    The same weights serve all events, so any number of frames can be drawn. The paper leaves f_0 open: the
    first query is a learned projection of the mean of H. If ``guide`` is ``aligned``, the state at the head
    of event m is added as a third part, tanh(h_m), where that event was read; otherwise attention alone
    has to find out which event is meant.
    """

    def __init__(self, settings: SSDVAESettings, width: int, frames: int) -> None:
        super().__init__()
        hidden = 2 * settings.hidden
        self.aligned = settings.guide == "aligned"
        self.inject = INJECTIONS[settings.injection]
        self.reader = Bidirectional(width, settings.hidden, settings.layers)
        self.first = nn.Linear(hidden, settings.hidden)
        self.w_in = nn.Linear(settings.hidden, hidden, bias=False)
        self.attention = Attention(hidden, settings.attention)
        self.w_out = nn.Linear(hidden, frames)

    def read(
        self,
        inputs: Float[Tensor, "B M P d"],
        mask: Bool[Tensor, "B M"],
        around: Surroundings | None = None,
    ) -> Float[Tensor, "B T h"]:
        """H, the states at the words; with what is ``around`` read before and after them."""
        if around is not None:
            return self._read_between(inputs, mask, around)
        hidden: Tensor = self.reader(inputs, mask)
        return hidden

    def _read_between(
        self, inputs: Float[Tensor, "B M P d"], mask: Bool[Tensor, "B M"], around: Surroundings
    ) -> Float[Tensor, "B T h"]:
        half, events = around.mask.shape[1] // 2, mask.shape[1]
        wide = torch.cat([around.inputs[:, :half], inputs, around.inputs[:, half:]], dim=1)
        there = torch.cat([around.mask[:, :half], mask, around.mask[:, half:]], dim=1)
        lengths = there.sum(1, keepdim=True)
        # Moved together, with the padding behind; and afterwards back to where they were.
        tight = torch.arange(int(lengths.max()), device=mask.device) < lengths
        states = self.reader(to_padded(wide[there], tight), tight)
        by_event = states.view(*tight.shape, -1, states.shape[-1])[tight]
        return to_padded(by_event, there)[:, half : half + events].flatten(1, 2)

    def forward(
        self,
        hidden: Float[Tensor, "B T h"],
        frame_embedding: Float[Tensor, "F e"],
        request: PlanRequest,
        offsets: Float[Tensor, "B O F"] | None = None,
    ) -> Posterior:
        """Draw one chain of frames, after reading events whose states are ``hidden``.

        ``offsets`` are added to the logits: those of each event, or one for all.
        """
        mask, observed = request.read.mask, request.observed
        words = per_word(mask, hidden)
        # NaN · 0 is NaN: padding must be no number that spreads. Once, for all frames of the chain.
        hidden = hidden.masked_fill(~words[..., None], 0)
        mean = hidden.sum(1) / words.sum(1, keepdim=True)
        previous = self.first(mean)
        own = self._states_of_heads(hidden, mask)
        steps = _Steps(request.mask.shape[1])
        for m in range(request.mask.shape[1]):
            query = self.w_in(previous)
            joined = self.attention(query[:, None], hidden, words, zeroed=True)[0][:, 0]
            if m < own.shape[1]:
                joined = joined + own[:, m]
            raw_logits = full_precision(self.w_out(joined))
            if offsets is not None:
                raw_logits = raw_logits + offsets[:, min(m, offsets.shape[1] - 1)]
            logits = self.inject(raw_logits, observed[:, m])
            sample = request.sampler(logits, request.noise)
            previous = sample.to(frame_embedding.dtype) @ frame_embedding
            steps.add(m, raw_logits, logits, sample, previous, query)
        raw_logits, logits, sample, memory, queries = steps.together()
        return Posterior(raw_logits, logits, sample, memory, Looks(queries, hidden, words), request.mask)

    def _states_of_heads(
        self, hidden: Float[Tensor, "B T h"], mask: Bool[Tensor, "B K"]
    ) -> Float[Tensor, "B K2 h"]:
        """tanh(h_m) of each event that was read, if ``guide`` is ``aligned``; else of none."""
        if not self.aligned:
            return hidden[:, :0]
        heads = hidden.view(*mask.shape, -1, hidden.shape[-1])[:, :, 0]
        return heads.masked_fill(~mask[..., None], 0).tanh()

    def flops(self, documents: int, events: int, slots: int) -> int:
        """Of one chain, words not read."""
        frames, hidden = self.w_out.out_features, self.w_in.in_features
        attention = self.attention.flops(1, slots * events)
        each = linear_flops(self.w_in, 1) + attention + linear_flops(self.w_out, 1)
        embedding = 2 * frames * hidden
        return documents * (linear_flops(self.first, 1) + events * (each + embedding))
