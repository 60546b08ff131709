"""A small transformer as a language model: another architecture is one decoder and one model class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import Decoder, DecoderOutput, LanguageModel, Loss, State
from ssdvae.models.latents import LatentQuery, Latents, most_likely
from ssdvae.models.layers import WordOutput, WordReader
from ssdvae.models.options import LanguageModelOptions


class TransformerOptions(LanguageModelOptions):
    model: ClassVar[str] = "transformer"


@dataclass(frozen=True)
class History:
    """All vectors that were read."""

    read: Float[Tensor, "B T d"]

    def select(self, rows: Int[Tensor, " K"]) -> History:
        return History(self.read[rows])


class TransformerDecoder(Decoder):
    """Causal self-attention over all words so far, with sinusoidal positions."""

    def __init__(self, reader: WordReader, hidden: int, layers: int, tied: bool) -> None:
        super().__init__()
        self.narrow = nn.Linear(reader.width, hidden)
        block = nn.TransformerEncoderLayer(hidden, 2, 2 * hidden, 0.0, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.output = WordOutput(hidden, reader, tied)

    def init_state(self, latents: Latents) -> History:
        return History(self.output.weight.new_zeros(len(latents.mask), 0, self.narrow.in_features))

    def forward(self, inputs: Float[Tensor, "B M P d"], state: State, latents: Latents) -> DecoderOutput:
        states, history = self._attend(inputs.flatten(1, 2), state)
        states = states.view(*inputs.shape[:3], -1)
        return DecoderOutput(states[:, :, :-1], states[:, :, -1], history)

    def step(
        self, word: Float[Tensor, "B 1 d"], state: State, latents: Latents, position: int
    ) -> tuple[Float[Tensor, "B h"], State]:
        states, history = self._attend(word, state)
        return states[:, 0], history

    def _attend(self, new: Float[Tensor, "B N d"], state: State) -> tuple[Float[Tensor, "B N h"], History]:
        assert isinstance(state, History)
        read = torch.cat([state.read, new], dim=1)
        x = self.narrow(read)
        length, width = x.shape[1:]
        place = torch.arange(length, device=x.device, dtype=x.dtype)[:, None]
        rate = torch.exp(torch.arange(0, width, 2, device=x.device, dtype=x.dtype) * (-math.log(1e4) / width))
        x = x + torch.cat([(place * rate).sin(), (place * rate).cos()], dim=-1)[:, :width]
        later = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        states: Tensor = self.blocks(x, mask=later)
        return states[:, -new.shape[1] :], History(read)


class TransformerLM(LanguageModel):
    """p(w) = Π_t p(w_t | w_<t) by a transformer."""

    config: TransformerOptions

    def __init__(
        self, config: TransformerOptions, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.decoder = TransformerDecoder(self.word_reader, config.hidden, config.layers, config.tied)

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        latents = self.latents(LatentQuery.whole(batch, most_likely, noise))
        log_p = self.log_probs(batch, latents, drawn=self.draw_words(noise)).sum((1, 2))
        return Loss(-log_p, {"reconstruction": log_p})
