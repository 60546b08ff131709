"""How the networks read a document: words with separators between events, through GRUs."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ssdvae.data.batches import Noise
from ssdvae.models.flops import gru_flops


class WordReader(nn.Module):
    """Word vectors, and one learned vector for the separator that stands before every event.

    The separator is no word of the vocabulary: it is read and never predicted, as its place is certain.
    The first one serves as the start of the document. With ``roles``, each vector is followed by one of
    that width for its place in the event: the separator, then each of the slots.
    """

    def __init__(self, vocabulary: int, width: int, slots: int, roles: int = 0) -> None:
        super().__init__()
        self.width, self.slots = width + roles, slots
        self.words = nn.Embedding(vocabulary, width)
        self.separator = nn.Parameter(torch.zeros(width))
        self.roles = nn.Parameter(torch.zeros(slots + 1, roles)) if roles else None
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=0.1)

    def forward(self, tokens: Int[Tensor, "B M S"]) -> Float[Tensor, "B M S+1 d"]:
        words = self.words(tokens)
        separator = self.separator.expand(*words.shape[:2], 1, -1)
        return self._with_roles(torch.cat([separator, words], dim=2), slice(None))

    def single_position(
        self, words: Int[Tensor, " B"] | None, place: int, size: int
    ) -> Float[Tensor, "B 1 d"]:
        """The vectors at one position of the event, ``size`` times: 0 is the separator, 1 the head, …"""
        vectors = self.separator.expand(size, 1, -1) if words is None else self.words(words)[:, None]
        return self._with_roles(vectors, slice(place, place + 1))

    def _with_roles(self, vectors: Tensor, places: slice) -> Tensor:
        if self.roles is None:
            return vectors
        return torch.cat([vectors, self.roles[places].expand(*vectors.shape[:-1], -1)], dim=-1)


class Bidirectional(nn.Module):
    """H: the states of a bidirectional GRU at each word."""

    def __init__(self, width: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.gru = nn.GRU(width, hidden, layers, batch_first=True, bidirectional=True)

    def forward(self, inputs: Float[Tensor, "B M P d"], mask: Bool[Tensor, "B M"]) -> Float[Tensor, "B T h"]:
        sequence = inputs.flatten(1, 2)
        if bool(mask.all()):
            states, _ = self.gru(sequence)
        else:
            states = self._padded(sequence, mask.repeat_interleave(inputs.shape[2], dim=1))
        words: Tensor = states.view(*inputs.shape[:3], -1)[:, :, 1:].flatten(1, 2)
        return words

    def _padded(
        self, sequence: Float[Tensor, "B T d"], present: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T h"]:
        """The backward direction starts at the end of each document; states are 0 in the padding.

        Documents are turned round, each by itself. Packing them does the same, but on a processor the
        gradient of each packed step fills a tensor as large as all steps: quadratic in the length.
        """
        if sequence.is_cuda:
            lengths = present.sum(1).cpu()
            packed = pack_padded_sequence(sequence, lengths, batch_first=True, enforce_sorted=False)
            return pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=len(present[0]))[0]
        place = torch.arange(present.shape[1], device=present.device).expand_as(present)
        turned = (present.sum(1, keepdim=True) - 1 - place).where(present, place)[..., None]
        states = sequence.masked_fill(~present[..., None], 0)
        start = sequence.new_zeros(1, len(sequence), self.gru.hidden_size)
        weights = self.gru.all_weights  # of both directions by turns
        for ahead, back in zip(weights[::2], weights[1::2], strict=True):
            forwards = torch.gru(states, start, tuple(ahead), True, 1, 0.0, False, False, True)[0]
            reverse = states.gather(1, turned.expand_as(states))
            backwards = torch.gru(reverse, start, tuple(back), True, 1, 0.0, False, False, True)[0]
            states = torch.cat([forwards, backwards.gather(1, turned.expand_as(backwards))], dim=-1)
        return states.masked_fill(~present[..., None], 0)

    def flops(self, documents: int, events: int, slots: int) -> int:
        return gru_flops(self.gru, (slots + 1) * events * documents)


def full_precision(logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """At least 32 bits: what comes out of mixed precision must not be exponentiated in 16."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def per_word(mask: Bool[Tensor, "B M"], hidden: Float[Tensor, "B T h"]) -> Bool[Tensor, "B T"]:
    """The mask of the events, for each of their words, which have these states."""
    return mask.repeat_interleave(hidden.shape[1] // mask.shape[1], dim=1)


def to_padded(values: Float[Tensor, "N *shape"], mask: Bool[Tensor, "B M"]) -> Float[Tensor, "B M *shape"]:
    """The rows of real events to their places; 0 at padding."""
    empty = values.new_zeros(*mask.shape, *values.shape[1:])
    return empty.masked_scatter(mask.view(*mask.shape, *[1] * (values.dim() - 1)), values)


def dropped(
    values: Float[Tensor, "B *shape"], share: float, noise: Noise | None
) -> Float[Tensor, "B *shape"]:
    """Dropout: a share of the values is set to 0, and the others are scaled so that the mean stays.

    Without noise nothing is dropped. It is our own noise, so that what a document loses depends on nothing
    but the seed and the step.
    """
    if noise is None or not share:
        return values
    keep = noise.uniform(*values.shape[1:], device=values.device) >= share
    return values * keep / (1 - share)
