"""The planner's decoder: frames that are foreseen, reweigh the head of an event, and guide its arguments.

    p(f | h)          = softmax(E^F Q h + b)                         what will happen next
    p(v | h)          = Σ_f p(f | h) p(v | f, h)                     the head of the event (``mixture``)
    r(f | h, v)       = p(f, v | h) / p(v | h)                       what happened, now that the head is read
    p(a_s | h, v, …)  = softmax(W_out (z_s + U_s Σ_f r_f E^F_f))     its arguments, given the words before

h is the state before the event, z_s that before slot s. With the mixture over the whole event, the arguments
depend on the frame itself and are summed too, and r reads them:

    p(v, a | h)       = Σ_f p(f, v | h) Π_s p(a_s | f, h, v, a_<s)   softmax(W_out (z_s + U_s E^F_f))

The arguments are scored once for each candidate frame of v: these are few. All other frames are taken to have
the arguments of v's first candidate or, if it has none, those of a vector that is no frame's.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.config import PlannerSettings
from ssdvae.models.decoder import Decoder, DecoderState
from ssdvae.models.flops import linear_flops
from ssdvae.models.mixture import EventScores, Support, candidates
from ssdvae.models.output import linear_cross_entropy, log_partition, target_logits
from ssdvae.models.recurrent import WordReader, full_precision
from ssdvae.models.sampled import Drawn, sampled_cross_entropy

PENALTY = 3.0
"""Where c_f starts: a frame begins by giving 5 % to heads that it was never seen with."""


class PlannerDecoder(Decoder):
    """A language model, the vectors E^F of the frames, and the candidates of each head."""

    table: Tensor

    def __init__(self, settings: PlannerSettings, reader: WordReader, frames: int, unknown: int) -> None:
        super().__init__(settings, reader, past=settings.past_vector, dropout=settings.state_dropout)
        words, width = reader.words.num_embeddings, reader.words.embedding_dim
        self.over_event, self.unknown = settings.mixture == "event", unknown
        # The last is no frame's: it stands for those of a head that was never seen with any.
        self.frame_vectors = nn.Parameter(torch.randn(frames + 1, width) * 0.1)
        self.foresee = nn.Linear(settings.hidden, width, bias=False)  # Q
        self.frame_bias = nn.Parameter(torch.zeros(frames))
        # U of each argument; an event may have none.
        self.guide = nn.Linear(width, (self.slots - 1) * settings.hidden, bias=False)
        self.penalty = nn.Parameter(torch.zeros(frames))
        self.bonus = nn.Parameter(torch.zeros(words, settings.candidates))
        self.unknown_bonus = nn.Parameter(torch.zeros(frames))
        self.register_buffer("table", torch.full((words, settings.candidates), -1))

    def initialize_from_data(
        self,
        heads: Int[Tensor, " N"],
        frames: Int[Tensor, " N"],
        vectors: Float[Tensor, "V e"] | None,
        lexicon: Int[Tensor, "P 2"] | None = None,
    ) -> None:
        """Candidates are what was observed together, or is in a lexicon; all else starts at its frequencies.

        Where p_0 is the frequency of heads, b_fv = log p(v | f) − log p(v) makes p(v | f, h) = p(v | f).
        With ``vectors`` of the words, a frame's vector starts at the mean of those of its heads.
        """
        words, most = self.table.shape
        # Counted where documents are; what is found is copied to where the parameters are.
        heads, frames = heads.cpu(), frames.cpu()
        known, total = heads != self.unknown, max(1, len(heads))
        table, together = candidates(heads[known], frames[known], words, most, lexicon)
        # Heads that only the lexicon knows are as frequent as what was seen once.
        by_head = heads.bincount(minlength=words).float().clamp_min(1)
        by_frame = frames.bincount(minlength=len(self.frame_bias)).float() + 1
        unknown = frames[~known].bincount(minlength=len(by_frame)) + 0.5
        expected = by_head[:, None] * by_frame[table.clamp_min(0)] / total
        with torch.no_grad():
            self.table.copy_(table)
            self.bonus.copy_((together / expected).log().masked_fill(table < 0, 0))
            self.unknown_bonus.copy_((unknown / by_frame * total / unknown.sum()).log())
            self.frame_bias.copy_((by_frame / by_frame.sum()).log())
            self.penalty.fill_(PENALTY)
            if vectors is not None:
                frames, vectors, random = frames[known], vectors.cpu(), self.frame_vectors.cpu()
                sums = torch.zeros_like(random).index_add_(0, frames, vectors[heads[known]])
                counts = frames.bincount(minlength=len(sums))[:, None]
                self.frame_vectors.copy_(torch.where(counts > 0, sums / counts, random))

    @property
    def support(self) -> Support:
        weights, others, unknown = (
            full_precision(x).exp() for x in (self.bonus, -self.penalty, self.unknown_bonus)
        )
        return Support(self.table, weights, others, self.unknown, unknown)

    def score(
        self,
        before: Float[Tensor, "N h"],
        joined: Float[Tensor, "N S e"],
        words: Int[Tensor, "N S"],
        drawn: Drawn | None = None,
        alike: bool = False,
    ) -> EventScores:
        """Some events by each frame, from the states before them and what is before W_out in each slot.

        ``alike``: whether all will weigh the same in what is minimised (``linear_cross_entropy``).
        """
        log_frames = self.log_frames(before)
        heads = log_frames + self._heads(joined[:, 0], words[:, 0], drawn)
        if not self.over_event:
            arguments = self._log_probs(joined[:, 1:] + self._mean(heads), words[:, 1:], drawn, alike)
            return EventScores(log_frames, heads, arguments[:, None])
        frames = self._frame_rows(words[:, 0])
        event, place = (frames >= 0).nonzero(as_tuple=True)
        rows = joined[event, 1:] + self._guidance(self.frame_vectors)[frames[event, place]]
        arguments = self._log_probs(rows, words[event, 1:], drawn, alike=False)
        by_place = arguments.new_zeros(*frames.shape, self.slots - 1).index_put((event, place), arguments)
        return EventScores(log_frames, heads, by_frame(by_place, frames, heads.shape[-1]))

    def log_frames(self, before: Float[Tensor, "N h"]) -> Float[Tensor, "N F"]:
        """log p(f | h)"""
        logits = functional.linear(self.foresee(before), self.frame_vectors[:-1], self.frame_bias)
        return full_precision(logits).log_softmax(-1)

    def _heads(
        self, rows: Float[Tensor, "N e"], heads: Int[Tensor, " N"], drawn: Drawn | None
    ) -> Float[Tensor, "N F"]:
        """log p(v | f, h) = log p_0(v | h) + log a_fv − log ρ_f"""
        weight, bias, support = self.w_out.weight, self.w_out.bias, self.support
        own = target_logits(rows, weight, bias, heads)
        if drawn is None:
            log_z = log_partition(rows, weight, bias, heads)
        else:
            log_z = own + sampled_cross_entropy(rows, weight, bias, heads, drawn)
        scores = full_precision(functional.linear(rows, weight[support.words], bias[support.words]))
        reach = support.reach((scores - log_z[:, None]).exp())
        return (own - log_z)[:, None] + support.of(heads).log() - reach.log()

    def _guidance(self, vectors: Float[Tensor, "*rows e"]) -> Float[Tensor, "*rows A d"]:
        """What a vector of frames adds before W_out, in each slot."""
        return self.narrowed(self.guide(vectors).unflatten(-1, (self.slots - 1, self.gru.hidden_size)))

    def _mean(self, log_r: Float[Tensor, "N F"]) -> Float[Tensor, "N A d"]:
        """The guidance of Σ_f r_f E^F_f."""
        r = log_r.softmax(-1).to(self.frame_vectors.dtype)
        return self._guidance(r @ self.frame_vectors[:-1])

    def _frame_rows(self, heads: Int[Tensor, " N"]) -> Int[Tensor, "N D"]:
        """The rows of E^F that the arguments of a head are scored with: one at least, at the left."""
        frames = self.table[heads]
        first = frames[:, :1].where(frames[:, :1] >= 0, len(self.frame_bias))
        return torch.cat([first, frames[:, 1:]], dim=1)

    def _log_probs(
        self, rows: Float[Tensor, "R A e"], words: Int[Tensor, "R A"], drawn: Drawn | None, alike: bool
    ) -> Float[Tensor, "R A"]:
        """log softmax(W_out row)[word]"""
        weight, bias, target = self.w_out.weight, self.w_out.bias, words.flatten()
        if drawn is None:
            nll = linear_cross_entropy(rows.flatten(0, 1), weight, bias, target, alike)
        else:
            nll = sampled_cross_entropy(rows.flatten(0, 1), weight, bias, target, drawn)
        return -nll.view(words.shape)

    def next_word(
        self,
        predicting: Float[Tensor, "B h"],
        state: DecoderState,
        given: Int[Tensor, " B"],
        words: Int[Tensor, " B"] | None,
        position: int,
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """log p(the next word) after ``words`` were read at a position of the event; its frame may be given.

        Within the event the state keeps the weights of the frames: p(f | h) / ρ_f until the head is read,
        then r, which the arguments change if the mixture is over them too.
        """
        joined = self.narrowed(predicting)
        if position == self.slots:  # the event is over, and a separator follows
            return full_precision(self.w_out(joined)).log_softmax(-1), DecoderState(state.layers, state.past)
        if words is None:
            return self._next_head(predicting, joined, state, given)
        assert state.log_frames is not None
        if position == 1:
            log_r = (state.log_frames + self.support.of(words).log()).log_softmax(-1)
            state = replace(state, log_frames=log_r, head=words)
        if not self.over_event:
            assert state.log_frames is not None
            logits = self.w_out(joined + self._mean(state.log_frames)[:, position - 1])
            return full_precision(logits).log_softmax(-1), state
        return self._next_argument(joined, state, words, position)

    def _next_argument(
        self, joined: Float[Tensor, "B e"], state: DecoderState, words: Int[Tensor, " B"], position: int
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """log p(a_s | h, v, a_<s) = log Σ_f r(f | h, v, a_<s) p(a_s | f, h, v, a_<s)"""
        assert state.log_frames is not None
        assert state.head is not None
        log_r, frames = state.log_frames, self._frame_rows(state.head)
        if state.candidates is not None:
            log_p = state.candidates.gather(2, words[:, None, None].expand(-1, frames.shape[1], 1))[..., 0]
            log_r = (log_r + by_frame(log_p, frames, log_r.shape[1])).log_softmax(-1)
        rows = joined[:, None] + self._guidance(self.frame_vectors)[frames, position - 1]
        by_candidate = full_precision(self.w_out(rows)).log_softmax(-1)
        # Each candidate counts for its own frame, and the first for all others too.
        places = torch.arange(frames.shape[1], device=frames.device).expand_as(frames)
        weights = log_r.new_zeros(frames.shape).scatter_add(
            1, by_frame(places, frames, log_r.shape[1]), log_r.exp()
        )
        log_p = (by_candidate + weights.log()[..., None]).logsumexp(1)
        return log_p, replace(state, log_frames=log_r, candidates=by_candidate)

    def _next_head(
        self,
        predicting: Float[Tensor, "B h"],
        joined: Float[Tensor, "B e"],
        state: DecoderState,
        given: Int[Tensor, " B"],
    ) -> tuple[Float[Tensor, "B V"], DecoderState]:
        """log p(v | h), or log p(v | f, h) where f is given."""
        support, log_p0 = self.support, full_precision(self.w_out(joined)).log_softmax(-1)
        log_reach = support.reach(log_p0[:, support.words].exp()).log()
        free, every = self.log_frames(predicting), torch.arange(log_reach.shape[1], device=given.device)
        certain = torch.zeros_like(free).masked_fill(every != given[:, None], -torch.inf)
        weights = certain.where(given[:, None] >= 0, free) - log_reach
        log_p = log_p0 + support.over_words(weights.exp()).log()
        # At the head alone, the arguments follow from the words: what was given is nothing to them.
        kept = weights if self.over_event else free - log_reach
        return log_p, DecoderState(state.layers, state.past, kept)

    def flops(self, documents: int, events: int, latents: int) -> int:
        """With the arguments scored once: those of further candidates are the price of summing over them."""
        rows, (frames, width) = events * documents, self.frame_vectors.shape
        foreseeing = linear_flops(self.foresee, rows) + 2 * rows * (frames - 1) * width
        weighing = 2 * rows * len(self.support.words) * self.w_out.in_features
        guided = frames if self.over_event else rows
        guiding = linear_flops(self.guide, guided)
        if self.narrow is not None:
            guiding += linear_flops(self.narrow, (self.slots - 1) * guided)
        if not self.over_event:
            guiding += 2 * rows * (frames - 1) * width
        return super().flops(documents, events, latents) + foreseeing + weighing + guiding


def by_frame(
    by_place: Shaped[Tensor, "N D *slots"], frames: Int[Tensor, "N D"], count: int
) -> Shaped[Tensor, "N F *slots"]:
    """Values of a head's candidates to their frames; all other frames have that of the first."""
    slots = by_place.shape[2:]
    row, place = ((frames >= 0) & (frames < count)).nonzero(as_tuple=True)
    default = by_place[:, :1].expand(-1, count, *slots)
    return default.index_put((row, frames[row, place]), by_place[row, place])
