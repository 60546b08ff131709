"""The decoder of plain language models."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from ssdvae.models.base import Decoder, DecoderOutput, Latents, State
from ssdvae.models.layers import ContextVector, GRUState, WordOutput, WordReader


class GRUDecoder(Decoder):
    """p(w_t | w_<t) by a GRU. With a ``context`` vector, its part for each slot is added to the states."""

    def __init__(
        self, reader: WordReader, hidden: int, layers: int, tied: bool = False, context: int = 0
    ) -> None:
        super().__init__()
        self.layers, self.slots = layers, reader.slots
        self.gru = nn.GRU(reader.width, hidden, layers, batch_first=True)
        self.context = ContextVector(hidden, context, reader.slots) if context else None
        self.output = WordOutput(hidden, reader, tied)

    def init_state(self, latents: Latents) -> GRUState:
        empty, size = self.output.weight.new_zeros, len(latents.mask)
        layers = empty(self.layers, size, self.gru.hidden_size)
        return GRUState(layers, None if self.context is None else empty(size, self.context.width))

    def forward(self, inputs: Float[Tensor, "B M P d"], state: State, latents: Latents) -> DecoderOutput:
        assert isinstance(state, GRUState)
        z, layers = self.gru(inputs.flatten(1, 2), state.layers)
        z = z.view(*inputs.shape[:3], -1)
        # The state after the separator predicts the head, that after a slot the next slot.
        states, ends, sums = z[:, :, :-1], z[:, :, -1], state.context
        if self.context is not None and sums is not None:
            before, sums = self.context.before(ends, sums)
            states = states + self.context(before, latents.event)
        return DecoderOutput(states, ends, GRUState(layers, sums))

    def step(
        self, word: Float[Tensor, "B 1 d"], state: State, latents: Latents, position: int
    ) -> tuple[Float[Tensor, "B h"], State]:
        assert isinstance(state, GRUState)
        z, layers = self.gru(word, state.layers)
        states, sums = z[:, 0], state.context
        if self.context is not None and sums is not None:
            if position == self.slots:
                sums = sums + self.context.vectors(states)
            else:
                states = states + self.context(sums[:, None], latents.event)[:, 0, position]
        return states, GRUState(layers, sums)
