"""Layers that several models share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from ssdvae.data.batches import Noise
from ssdvae.models.precision import lower


class WordReader(nn.Module):
    """Word vectors, with one learned vector for the separator that stands before every event.

    The separator is not in the vocabulary: it is read and never predicted, since its position is certain.
    The first separator marks the start of the document. With ``roles``, each vector is followed by a role
    vector of that width: one for the separator, one for each slot.
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
        self, words: Int[Tensor, " B"] | None, position: int, size: int
    ) -> Float[Tensor, "B 1 d"]:
        """Return the vectors at one position of ``size`` events: 0 is the separator, 1 the head, …"""
        vectors = self.separator.expand(size, 1, -1) if words is None else self.words(words)[:, None]
        return self._with_roles(vectors, slice(position, position + 1))

    def _with_roles(self, vectors: Tensor, positions: slice) -> Tensor:
        if self.roles is None:
            return vectors
        return torch.cat([vectors, self.roles[positions].expand(*vectors.shape[:-1], -1)], dim=-1)


class PaddedGRU(nn.Module):
    """A bidirectional GRU over sequences of different lengths; its states are 0 in the padding."""

    def __init__(self, width: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.gru = nn.GRU(width, hidden, layers, batch_first=True, bidirectional=True)

    def forward(
        self, sequence: Float[Tensor, "B T d"], present: Bool[Tensor, "B T"]
    ) -> Float[Tensor, "B T h"]:
        if bool(present.all()):
            states: Tensor = self.gru(sequence)[0]
            return states
        if sequence.is_cuda:
            lengths = present.sum(1).cpu()
            packed = pack_padded_sequence(sequence, lengths, batch_first=True, enforce_sorted=False)
            return pad_packed_sequence(self.gru(packed)[0], batch_first=True, total_length=len(present[0]))[0]
        # Reverse each sequence by itself. Packing does the same, but on a CPU the gradient of each packed
        # step fills a tensor as large as all steps: quadratic in the length.
        position = torch.arange(present.shape[1], device=present.device).expand_as(present)
        reversal = (present.sum(1, keepdim=True) - 1 - position).where(present, position)[..., None]
        states = sequence.masked_fill(~present[..., None], 0)
        start = sequence.new_zeros(1, len(sequence), self.gru.hidden_size)
        weights = self.gru.all_weights  # of both directions, alternating
        for ahead, back in zip(weights[::2], weights[1::2], strict=True):
            forwards = torch.gru(states, start, tuple(ahead), True, 1, 0.0, False, False, True)[0]
            reverse = states.gather(1, reversal.expand_as(states))
            backwards = torch.gru(reverse, start, tuple(back), True, 1, 0.0, False, False, True)[0]
            states = torch.cat([forwards, backwards.gather(1, reversal.expand_as(backwards))], dim=-1)
        return states.masked_fill(~present[..., None], 0)

    def at_words(self, inputs: Float[Tensor, "B M P d"], mask: Bool[Tensor, "B M"]) -> Float[Tensor, "B T h"]:
        """Return H, the states at the words of documents that the word reader has read, in full precision."""
        P = inputs.shape[2]
        states = full_precision(self(inputs.flatten(1, 2), mask.repeat_interleave(P, dim=1)))
        return states.view(*inputs.shape[:3], -1)[:, :, 1:].flatten(1, 2)


class WordOutput(nn.Module):
    """The output layer: logits of all words from a state.

    If ``tied``, logits = E P z + b with the word vectors E and a projection P to their width; else W z + b.
    """

    def __init__(self, hidden: int, reader: WordReader, tied: bool) -> None:
        super().__init__()
        vocabulary, width = reader.words.weight.shape
        self.narrow = nn.Linear(hidden, width, bias=False) if tied else None
        self.linear: nn.Linear | _Tied = _Tied(reader.words) if tied else nn.Linear(hidden, vocabulary)

    @property
    def weight(self) -> Float[Tensor, "V e"]:
        return self.linear.weight

    @property
    def bias(self) -> Float[Tensor, " V"]:
        return self.linear.bias

    def project(self, states: Float[Tensor, "*rows h"]) -> Float[Tensor, "*rows e"]:
        """Return P z where word vectors are tied, else z: what ``weight`` is multiplied with."""
        return lower(states if self.narrow is None else self.narrow(states))

    def matrix(self) -> Float[Tensor, "V h"]:
        """Return the matrix from states to logits, without the bias."""
        return self.weight if self.narrow is None else self.weight @ self.narrow.weight

    def forward(self, states: Float[Tensor, "*rows h"]) -> Float[Tensor, "*rows V"]:
        logits: Tensor = self.linear(self.project(states))
        return logits


class _Tied(nn.Module):
    """A linear layer whose weights are the word vectors of a reader."""

    def __init__(self, words: nn.Embedding) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(words.num_embeddings))
        self._words = (words,)  # not a submodule: the vectors are saved once

    @property
    def weight(self) -> Tensor:
        return self._words[0].weight

    def forward(self, rows: Tensor) -> Tensor:
        return functional.linear(rows, self.weight, self.bias)


class ContextVector(nn.Module):
    """k_m = (1/(m − 1)) Σ_{j<m} tanh(W z_j), z_j the state after event j; slot s adds U_s k_m to its state.

    A running mean over the completed events: what a document is about does not fade in it. It conditions on
    no word that is still to come, and is zero before the first event.
    """

    def __init__(self, hidden: int, width: int, slots: int) -> None:
        super().__init__()
        self.width, self.slots = width, slots
        self.write = nn.Linear(hidden, width)
        self.look = nn.Linear(width, slots * hidden, bias=False)

    def vectors(self, ends: Float[Tensor, "*events h"]) -> Float[Tensor, "*events K"]:
        """Return tanh(W z) of each completed event."""
        written: Tensor = self.write(ends).tanh()
        return written

    def before(
        self, ends: Float[Tensor, "B M h"], sums: Float[Tensor, "B K"]
    ) -> tuple[Float[Tensor, "B M K"], Float[Tensor, "B K"]]:
        """Return the sums of the vectors before each event and after the last, starting from ``sums``."""
        running = torch.cat([sums[:, None], self.vectors(ends)], dim=1).cumsum(1)
        return running[:, :-1], running[:, -1]

    def forward(self, sums: Float[Tensor, "B M K"], first: int) -> Float[Tensor, "B M S h"]:
        """Return U_s k_m of each slot; ``first`` is the position of the first of the M events."""
        events = torch.arange(first, first + sums.shape[1], device=sums.device).clamp_min(1)
        added: Tensor = self.look(sums / events[:, None])
        return added.view(*sums.shape[:2], self.slots, -1)


class DocumentVector(nn.Module):
    """θ = softmax(mean_t W_θ h_t), t = tanh(W_t θ): t for the logits of frames, ``words`` for those of words.

    The authors' code of the paper's time has it; the paper does not. It conditions on the words that it helps
    to predict, and no term of the objective accounts for that: such a perplexity is not that of a sequence
    model. ``scale`` multiplies W_θ.
    """

    def __init__(self, states: int, size: int, width: int, vocabulary: int, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.mixture = nn.Linear(states, size)
        self.vector = nn.Linear(size, width)
        self.words = nn.Linear(width, vocabulary, bias=False)

    def forward(self, hidden: Float[Tensor, "B T h"], words: Bool[Tensor, "B T"]) -> Float[Tensor, "B w"]:
        """Return t of states that are 0 in the padding."""
        mean = self.mixture(hidden.sum(1) / words.sum(1, keepdim=True).clamp_min(1))
        vector: Tensor = self.vector((self.scale * mean).softmax(-1)).tanh()
        return vector


@dataclass(frozen=True)
class GRUState:
    """The state of a GRU decoder; ``context`` is the sum of the vectors of the completed events."""

    layers: Float[Tensor, "L B h"]
    context: Float[Tensor, "B K"] | None = None

    def select(self, rows: Int[Tensor, " K"]) -> GRUState:
        context = None if self.context is None else self.context[rows]
        return GRUState(self.layers[:, rows].contiguous(), context)


def attend(
    query: Float[Tensor, "B Q d"], memory: Float[Tensor, "B K d"], mask: Bool[Tensor, "B K"]
) -> tuple[Float[Tensor, "B Q d"], Float[Tensor, "B Q K"]]:
    """Return the context c = Kᵀ α and the attention α = softmax(K q / √d) over unmasked positions.

    The memory must be finite in the padding, as the states of ``PaddedGRU`` are: NaN * 0 is NaN.
    """
    scores = torch.einsum("bqd,bkd->bqk", query, memory) * memory.shape[-1] ** -0.5
    attention = scores.masked_fill(~mask[:, None], -torch.inf).softmax(-1)
    return torch.einsum("bqk,bkd->bqd", attention, memory), attention


@dataclass(frozen=True)
class LazyAttention:
    """The attention of M queries over T positions, computed when asked for: M · T is much to hold."""

    query: Float[Tensor, "B M d"]
    memory: Float[Tensor, "B T d"]
    mask: Bool[Tensor, "B T"]

    @property
    def weights(self) -> Float[Tensor, "B M T"]:
        return attend(self.query, self.memory, self.mask)[1]

    def of(self, row: int, queries: int) -> Float[Tensor, "Q T"]:
        """Return the attention of the first queries of one document."""
        one = slice(row, row + 1)
        return attend(self.query[one, :queries], self.memory[one], self.mask[one])[1][0]


def full_precision(logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return at least 32 bits: what mixed precision computes must not be exponentiated in 16."""
    return logits.to(torch.promote_types(logits.dtype, torch.float32))


def per_word(mask: Bool[Tensor, "B M"], hidden: Float[Tensor, "B T h"]) -> Bool[Tensor, "B T"]:
    """Return the mask of the events repeated for each of their words, which have these states."""
    return mask.repeat_interleave(hidden.shape[1] // mask.shape[1], dim=1)


def to_padded(values: Float[Tensor, "N *shape"], mask: Bool[Tensor, "B M"]) -> Float[Tensor, "B M *shape"]:
    """Return the rows of real events in their positions, 0 at padding."""
    empty = values.new_zeros(*mask.shape, *values.shape[1:])
    return empty.masked_scatter(mask.view(*mask.shape, *[1] * (values.dim() - 1)), values)


def dropout(values: Float[Tensor, "B *shape"], rate: float, noise: Noise | None) -> Float[Tensor, "B *shape"]:
    """Apply dropout with noise that depends on the seed and the step alone; without noise, none."""
    if noise is None or not rate:
        return values
    keep = noise.uniform(*values.shape[1:], device=values.device) >= rate
    return values * keep / (1 - rate)
