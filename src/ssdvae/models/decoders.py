"""The decoders of the language models: a plain GRU, and the mixture over frames of the exact model."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.models.base import Decoder, DecoderOutput, State
from ssdvae.models.latents import Latents
from ssdvae.models.layers import ContextVector, GRUState, WordOutput, WordReader, full_precision
from ssdvae.models.losses import (
    Drawn,
    linear_cross_entropy,
    log_partition,
    sampled_cross_entropy,
    target_logits,
)
from ssdvae.models.mixture import EventScores, Support, candidates
from ssdvae.models.options import ExactOptions

PENALTY = 3.0
"""The initial −log λ_f: a frame begins by giving 5 % to heads that it was never seen with."""


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


@dataclass(frozen=True)
class ExactState:
    """The decoder's state, and within an event what its words so far say of the frame."""

    decoder: State
    log_frames: Float[Tensor, "B F"] | None = None  # log of the weight of each frame, up to a constant
    head: Int[Tensor, " B"] | None = None
    candidates: Float[Tensor, "B D V"] | None = None  # log p(next word) by each candidate of the head

    def select(self, rows: Int[Tensor, " K"]) -> ExactState:
        values = (getattr(self, field.name) for field in fields(self)[1:])
        return ExactState(self.decoder.select(rows), *(None if x is None else x[rows] for x in values))


class ExactDecoder(GRUDecoder):
    """A language model p_0, the vectors E^F of the frames, and the candidate frames of each head."""

    table: Tensor

    def __init__(self, config: ExactOptions, reader: WordReader, frames: int, unknown: int) -> None:
        super().__init__(reader, config.hidden, config.layers, config.tied, config.context_vector)
        words, width = reader.words.weight.shape
        self.unknown = unknown
        # The last one is no frame's: it stands for those of a head that was never seen with any.
        self.frame_vectors = nn.Parameter(torch.randn(frames + 1, width) * 0.1)
        self.foresee = nn.Linear(config.hidden, width, bias=False)  # Q
        self.frame_bias = nn.Parameter(torch.zeros(frames))
        # U of each argument; an event may have none.
        self.guide = nn.Linear(width, (self.slots - 1) * config.hidden, bias=False)
        self.penalty = nn.Parameter(torch.zeros(frames))
        self.bonus = nn.Parameter(torch.zeros(words, config.candidates))
        self.unknown_bonus = nn.Parameter(torch.zeros(frames))
        self.register_buffer("table", torch.full((words, config.candidates), -1, dtype=torch.int32))

    @torch.no_grad()
    def initialize_from_data(
        self,
        heads: Int[Tensor, " N"],
        frames: Int[Tensor, " N"],
        vectors: Float[Tensor, "V e"],
        lexicon: Int[Tensor, "P 2"] | None = None,
    ) -> None:
        """Take as candidates what was observed together or is in a lexicon; start at the frequencies.

        Where p_0 is the frequency of heads, b_fv = log p(v | f) − log p(v) makes p(v | f, h) = p(v | f).
        A frame's vector starts at the mean of the word vectors of its heads.
        """
        words, most = self.table.shape
        # Counted on the CPU, where the documents are.
        heads, frames = heads.cpu(), frames.cpu()
        known, total = heads != self.unknown, max(1, len(heads))
        table, together = candidates(heads[known], frames[known], words, most, lexicon)
        # Heads that only the lexicon has are as frequent as what was seen once.
        by_head = heads.bincount(minlength=words).float().clamp_min(1)
        by_frame = frames.bincount(minlength=len(self.frame_bias)).float() + 1
        unknown = frames[~known].bincount(minlength=len(by_frame)) + 0.5
        expected = by_head[:, None] * by_frame[table.clamp_min(0)] / total
        self.table.copy_(table)
        self.bonus.copy_((together / expected).log().masked_fill(table < 0, 0))
        self.unknown_bonus.copy_((unknown / by_frame * total / unknown.sum()).log())
        self.frame_bias.copy_((by_frame / by_frame.sum()).log())
        self.penalty.fill_(PENALTY)
        frames, vectors, random = frames[known], vectors.cpu(), self.frame_vectors.cpu()
        sums = torch.zeros_like(random).index_add_(0, frames, vectors[heads[known]])
        counts = frames.bincount(minlength=len(sums))[:, None]
        self.frame_vectors.copy_(torch.where(counts > 0, sums / counts, random))

    @property
    def support(self) -> Support:
        weights, others, unknown = (
            full_precision(x).exp() for x in (self.bonus, -self.penalty, self.unknown_bonus)
        )
        return Support(self.table.long(), weights, others, self.unknown, unknown)

    def score(
        self,
        states: Float[Tensor, "N S h"],
        words: Int[Tensor, "N S"],
        labels: tuple[Int[Tensor, "N K"], Float[Tensor, "N K"]],
        drawn: Drawn | None = None,
    ) -> EventScores:
        """Score events under each frame, from the states before each of their words.

        ``labels`` are frames and their weights in the loss (``Batch.labels``), 0 where it sums over all.
        """
        log_frames = self.log_frames(states[:, 0])
        rows = self.output.project(states)
        heads = log_frames + self._heads(rows[:, 0], words[:, 0], drawn)
        frames = self._frame_rows(words[:, 0])
        event, place = (frames >= 0).nonzero(as_tuple=True)
        guided = rows[event, 1:] + self._guidance()[frames[event, place]]
        # Of a labelled event, the rows of its label have a part in the loss; the first one stands for all
        # frames that are no candidates.
        label, weights = labels[0], labels[1].to(log_frames)
        own = (frames[:, :, None] == label[:, None]).long().argmax(1)
        shares = weights.new_zeros(frames.shape).scatter_add(1, own, weights)
        expected = shares.masked_fill(~weights.any(1, keepdim=True), torch.nan)[event, place]
        arguments = self._log_probs(guided, words[event, 1:], drawn, expected)
        by_place = arguments.new_zeros(*frames.shape, self.slots - 1).index_put((event, place), arguments)
        return EventScores(log_frames, heads, by_frame(by_place, frames, heads.shape[-1]))

    def log_frames(self, before: Float[Tensor, "N h"]) -> Float[Tensor, "N F"]:
        """Return log p(f | h)."""
        logits = functional.linear(self.foresee(before), self.frame_vectors[:-1], self.frame_bias)
        return full_precision(logits).log_softmax(-1)

    def _heads(
        self, rows: Float[Tensor, "N e"], heads: Int[Tensor, " N"], drawn: Drawn | None
    ) -> Float[Tensor, "N F"]:
        """Return log p(v | f, h) = log p_0(v | h) + log a_fv − log ρ_f."""
        weight, bias, support = self.output.weight, self.output.bias, self.support
        own = target_logits(rows, weight, bias, heads)
        if drawn is None:
            log_z = log_partition(rows, weight, bias, heads)
        else:
            log_z = own + sampled_cross_entropy(rows, weight, bias, heads, drawn)
        scores = full_precision(functional.linear(rows, weight[support.words], bias[support.words]))
        reach = support.reach((scores - log_z[:, None]).exp())
        return (own - log_z)[:, None] + support.of(heads).log() - reach.log()

    def _guidance(self) -> Float[Tensor, "G A e"]:
        """Return U_s E^F_f of each frame and argument, in the space of the output layer."""
        guided = self.guide(self.frame_vectors).unflatten(-1, (self.slots - 1, self.gru.hidden_size))
        return self.output.project(guided)

    def _frame_rows(self, heads: Int[Tensor, " N"]) -> Int[Tensor, "N D"]:
        """Return the rows of E^F that score the arguments of a head: at least one, from the left."""
        frames = self.table[heads].long()
        first = frames[:, :1].where(frames[:, :1] >= 0, len(self.frame_bias))
        return torch.cat([first, frames[:, 1:]], dim=1)

    def _log_probs(
        self,
        rows: Float[Tensor, "R A e"],
        words: Int[Tensor, "R A"],
        drawn: Drawn | None,
        expected: Float[Tensor, " R"],
    ) -> Float[Tensor, "R A"]:
        """Return log softmax(W_out row)[word]; ``expected`` as in ``linear_cross_entropy``."""
        weight, bias, target = self.output.weight, self.output.bias, words.flatten()
        if drawn is None:
            weights = expected.repeat_interleave(words.shape[1])
            nll = linear_cross_entropy(rows.flatten(0, 1), weight, bias, target, weights)
        else:
            nll = sampled_cross_entropy(rows.flatten(0, 1), weight, bias, target, drawn)
        return -nll.view(words.shape)

    def next_word(
        self,
        states: Float[Tensor, "B h"],
        decoder: State,
        before: ExactState,
        given: Int[Tensor, " B"],
        words: Int[Tensor, " B"] | None,
        position: int,
    ) -> tuple[Float[Tensor, "B V"], ExactState]:
        """Return log p(next word) after ``words`` at a position of the event, whose frame may be given.

        Within the event the state keeps the weights of the frames: p(f | h) / ρ_f until the head is read,
        then r, which each argument updates.
        """
        rows = self.output.project(states)
        if position == self.slots:  # the event is complete, and a separator follows
            return self._log_softmax(rows), ExactState(decoder)
        if words is None:
            log_p, weights = self._head_weights(states, given)
            return log_p, ExactState(decoder, weights)
        assert before.log_frames is not None
        if position == 1:
            log_r, head = (before.log_frames + self.support.of(words).log()).log_softmax(-1), words
        else:
            assert before.head is not None
            assert before.candidates is not None
            head = before.head
            chosen = words[:, None, None].expand(-1, before.candidates.shape[1], 1)
            log_p = before.candidates.gather(2, chosen)[..., 0]
            log_r = before.log_frames + by_frame(log_p, self._frame_rows(head), before.log_frames.shape[1])
            log_r = log_r.log_softmax(-1)
        # log p(a_s | h, v, a_<s) = log Σ_f r(f | h, v, a_<s) p(a_s | f, h, v, a_<s)
        frames = self._frame_rows(head)
        by_candidate = self._log_softmax(rows[:, None] + self._guidance()[frames, position - 1])
        # Each candidate counts for its own frame, and the first for all others too.
        places = torch.arange(frames.shape[1], device=frames.device).expand_as(frames)
        weights = log_r.new_zeros(frames.shape).scatter_add(
            1, by_frame(places, frames, log_r.shape[1]), log_r.exp()
        )
        log_p = (by_candidate + weights.log()[..., None]).logsumexp(1)
        return log_p, ExactState(decoder, log_r, head, by_candidate)

    def next_head(self, states: Float[Tensor, "B h"]) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B F"]]:
        """Return log p(v | h) and log p(f | h)."""
        nothing = torch.full((len(states),), -1, device=states.device)
        return self._head_weights(states, nothing)[0], self.log_frames(states)

    def _head_weights(
        self, states: Float[Tensor, "B h"], given: Int[Tensor, " B"]
    ) -> tuple[Float[Tensor, "B V"], Float[Tensor, "B F"]]:
        """Return log p(v | h), or log p(v | f, h) where f is given, and log p(f | h) / ρ_f."""
        support, log_p0 = self.support, self._log_softmax(self.output.project(states))
        log_reach = support.reach(log_p0[:, support.words].exp()).log()
        free, every = self.log_frames(states), torch.arange(log_reach.shape[1], device=given.device)
        certain = torch.zeros_like(free).masked_fill(every != given[:, None], -torch.inf)
        weights = certain.where(given[:, None] >= 0, free) - log_reach
        return log_p0 + support.over_words(weights.exp()).log(), weights

    def _log_softmax(self, rows: Float[Tensor, "*rows e"]) -> Float[Tensor, "*rows V"]:
        return full_precision(self.output.linear(rows)).log_softmax(-1)


def by_frame(
    by_place: Shaped[Tensor, "N D *slots"], frames: Int[Tensor, "N D"], count: int
) -> Shaped[Tensor, "N F *slots"]:
    """Return the values of a head's candidates by frame; all other frames have that of the first."""
    slots = by_place.shape[2:]
    row, place = ((frames >= 0) & (frames < count)).nonzero(as_tuple=True)
    default = by_place[:, :1].expand(-1, count, *slots)
    return default.index_put((row, frames[row, place]), by_place[row, place])
