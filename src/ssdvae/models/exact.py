"""The exact model, our default: frames are summed out, so the likelihood is exact and nothing is sampled.

    p(w, f) = Π_m p(f_m | w_<m) p(v_m, a_m | f_m, w_<m)

An event is a head v and arguments a. With h the decoder's state before the event and z_s that before slot s,

    p(f | h)              = softmax(E^F Q h + b)                   the frame of the next event
    p(v | f, h)           ∝ p_0(v | h) a_fv                        a frame reweighs the heads (``mixture``)
    p(a_s | f, h, v, a_<) = softmax(W_out (z_s + U_s E^F_f))       and guides the arguments
    p(v, a | h)           = Σ_f p(f, v | h) Π_s p(a_s | f, h, v, a_<s)
    r(f | h, v, a)        = p(f, v, a | h) / p(v, a | h)           the exact posterior

Arguments are scored once for each candidate frame of v, of which there are few. All other frames are taken to
have the arguments of v's first candidate or, if it has none, those of an extra vector that is no frame's.

Given the words, frames are independent of each other, and later events say nothing of r. The **reader**
q(f_m | whole document) (``reader``) does use them. It names frames, and gradients never reach the generative
part from it. Two readers are trained in one run: one by the observed labels alone (κ = 0), one also by the KL
divergence from r on the other events (κ = 1). The better one on labelled validation events is kept, and

    posterior(f_m) ∝ (q(f_m | w) r(f_m | w_≤m)^power)^sharpness

with the power that gets most of them right and the sharpness that makes its probabilities fit. Without any
frames (F = 0) the model has a single component.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import DecoderOutput, FrameModel, Loss, State
from ssdvae.models.cases import CaseModel
from ssdvae.models.decoders import ExactDecoder, ExactState
from ssdvae.models.latents import FramePosterior, LatentQuery, Latents
from ssdvae.models.layers import to_padded
from ssdvae.models.losses import Drawn
from ssdvae.models.mixture import EventScores, expected
from ssdvae.models.options import ExactOptions
from ssdvae.models.reader import HIDDEN, FrameReader, HeadFrameCounts

ROTATED = 0.3
"""The share of the documents that the readers read from another event on, in training."""

POWER = 0.3
"""The power of the exact posterior where no labelled event can tell a better one."""


class ExactModel(CaseModel, FrameModel):
    """p(words, frames) with the frames summed out, and a reader that names them.

    ``Latents.frames`` are frames that are given, −1 where summed out.
    """

    config: ExactOptions
    decoder: ExactDecoder
    power: Tensor
    sharpness: Tensor
    use_rival: Tensor

    def __init__(
        self, config: ExactOptions, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.decoder = ExactDecoder(config, self.word_reader, max(1, len(frames)), vocabulary.unknown)
        self.counts = self._new_counts() if len(frames) else None
        self.frame_reader = self._new_reader() if len(frames) else None  # κ = 0, or the one that was kept
        self.rival: FrameReader | None = None  # κ = 1, in training only
        self.register_buffer("power", torch.tensor(POWER))
        self.register_buffer("sharpness", torch.tensor(1.0))
        self.register_buffer("use_rival", torch.tensor(True), persistent=False)

    def _new_counts(self) -> HeadFrameCounts:
        return HeadFrameCounts(len(self.vocabulary), len(self.frames), self.config.candidates)

    def _new_reader(self) -> FrameReader:
        width, hidden = self.word_reader.words.embedding_dim, min(HIDDEN, self.config.hidden)
        return FrameReader(width, len(self.slots), hidden, len(self.frames))

    def prepare_training(self) -> None:
        self.rival = self._new_reader() if len(self.frames) else None

    @property
    def reader(self) -> FrameReader:
        """The reader that names frames."""
        chosen = self.rival if self.rival is not None and bool(self.use_rival) else self.frame_reader
        assert chosen is not None
        return chosen

    def separate_parts(self) -> list[nn.Module]:
        return [*(r for r in (self.frame_reader, self.rival) if r is not None), *super().separate_parts()]

    def next_heads(
        self, states: Float[Tensor, "N h"]
    ) -> tuple[Float[Tensor, "N V"], Float[Tensor, "N F"] | None]:
        log_heads, log_frames = self.decoder.next_head(states)
        return log_heads, log_frames if len(self.frames) else None

    def weights_to_publish(self) -> Mapping[str, Tensor]:
        """Return the weights with one reader, the one that is kept."""
        weights = {name: x for name, x in self.state_dict().items() if not name.startswith("rival.")}
        if self.rival is not None and bool(self.use_rival):
            weights |= {f"frame_reader.{name}": x for name, x in self.rival.state_dict().items()}
        return weights

    def start_from(self, weights: Mapping[str, Tensor]) -> None:
        prefix = "frame_reader."
        rival = {
            f"rival.{name.removeprefix(prefix)}": x for name, x in weights.items() if name.startswith(prefix)
        }
        self.load_state_dict({**weights, **(rival if self.rival is not None else {})})

    def initialize_from_data(
        self,
        heads: Int[Tensor, " N"],
        observed: Int[Tensor, " N"],
        lexicon: Int[Tensor, "P 2"] | None = None,
        lemmas: Int[Tensor, " V"] | None = None,
    ) -> None:
        seen = observed >= 0
        if self.counts is None or (not seen.any() and lexicon is None):
            return
        heads, observed = heads[seen], observed[seen]
        self.decoder.initialize_from_data(heads, observed, self.word_reader.words.weight, lexicon)
        self.counts.initialize_from_data(heads, observed, self.vocabulary.unknown, lexicon, lemmas)

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        """Return G + R_0 + R_1, and the terms of cases; the losses R of the readers train only readers.

        G = −log p(words, observed frames) = ``frame_nll`` − ``reconstruction``; of a soft label s it is the
        expectation, −Σ_f s_f log p(f, event | h). It is computed as one term, so that the arguments of an
        observed event are scored by its own frame alone.
        """
        decoded = self.decode_in_training(batch, self._no_frames(batch), noise)
        scored = self._score_decoded(batch, decoded, self.draw_words(noise))
        log_p = to_padded(scored.marginal(), batch.mask).sum(1)
        log_r = scored.posterior()
        frame_nll = to_padded(_nll(log_r, batch), batch.mask).sum(1)
        loss = -to_padded(scored.joint_or_marginal(*batch.labels()), batch.mask).sum(1)
        terms = {"reconstruction": log_p, "frame_nll": frame_nll}
        shown, order = self._labels_shown(batch, noise), self._order_read(batch, noise)
        for kappa, reader in enumerate((self.frame_reader, self.rival)):
            if reader is not None:
                log_q = self._read(reader, batch, shown, order)
                each = _reader_loss(log_q, log_r.detach(), batch, kappa)
                terms[f"reader_{kappa}"] = to_padded(each, batch.mask).sum(1)
                loss = loss + terms[f"reader_{kappa}"]
        return self.with_case_terms(Loss(loss, terms), batch, decoded.ends, noise)

    def _labels_shown(self, batch: Batch, noise: Noise) -> Int[Tensor, "B M"]:
        """Hide labels at random: all of them in half of the documents, a random share in the others."""
        if not self.training or not len(self.frames):
            return batch.observed
        rate = (2 * noise.uniform(1, device=self.device) - 1).clamp_min(0)
        shown = noise.uniform(batch.mask.shape[1], device=self.device) < rate
        return batch.observed.where(shown, -1)

    def _order_read(self, batch: Batch, noise: Noise) -> Int[Tensor, "B M"] | None:
        """Rotate some documents in training, so that a beginning in the middle of a text is nothing new."""
        if not self.training or self.frame_reader is None:
            return None
        rotated, start = noise.uniform(2, device=self.device).unbind(1)
        length, place = batch.mask.sum(1, keepdim=True), torch.arange(batch.mask.shape[1], device=self.device)
        shift = (start[:, None] * length).long() * (rotated[:, None] < ROTATED)
        return ((place + shift) % length).where(batch.mask, place)

    def _read(
        self,
        reader: FrameReader,
        batch: Batch,
        labels: Int[Tensor, "B M"],
        order: Int[Tensor, "B M"] | None = None,
    ) -> Float[Tensor, "N F"]:
        """Return log q of the real events by one reader, which may read them in another order."""
        assert self.counts is not None
        words, heads = self.word_reader.words(batch.tokens).detach(), batch.tokens[..., 0]
        own = batch.observed if self.training else None
        log_q: Tensor
        if order is None:
            log_q = reader(words, heads, labels, batch.mask, self.counts, own)
            return log_q
        rows = torch.arange(len(batch), device=self.device)[:, None]
        words, heads, labels = (x[rows, order] for x in (words, heads, labels))
        own = None if own is None else own[rows, order]
        log_q = reader(words, heads, labels, batch.mask, self.counts, own)
        return to_padded(log_q, batch.mask)[rows, order.argsort(1)][batch.mask]

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        """Return one row: log p(words, observed frames), exactly."""
        scored = self._score(batch, self._no_frames(batch))
        log_p = scored.marginal() - _nll(scored.posterior(), batch)
        return to_padded(log_p, batch.mask).sum(1)[None]

    def posterior(self, batch: Batch) -> FramePosterior:
        """Return the reader times the exact posterior to a power; observed frames are certain."""
        exact = self.exact_posterior(batch)
        read = self._read(self.reader, batch, batch.observed)
        log_q = self._certain((self.sharpness * (read + self.power * exact)).log_softmax(-1), batch)
        parts = {"reader": to_padded(read, batch.mask), "exact": to_padded(exact, batch.mask)}
        return FramePosterior(to_padded(log_q, batch.mask), batch.mask, parts=parts)

    def exact_posterior(self, batch: Batch) -> Float[Tensor, "N F"]:
        """Return log r(f | words up to the end of the event) of the real events."""
        return self._score(batch, self._no_frames(batch)).posterior()

    def read_by_each(self, batch: Batch) -> Float[Tensor, "R N F"]:
        """Return log q of the real events by each reader, with no frame observed."""
        readers = [reader for reader in (self.frame_reader, self.rival) if reader is not None]
        nothing = torch.full_like(batch.observed, -1)
        return torch.stack([self._read(reader, batch, nothing) for reader in readers])

    @torch.no_grad()
    def keep_reader(self, which: int, power: float = POWER, sharpness: float = 1.0) -> None:
        """Name frames with one of the readers and this power of the exact posterior from now on."""
        self.use_rival.fill_(which == 1)
        self.power.fill_(power)
        self.sharpness.fill_(sharpness)

    def _certain(self, log_q: Float[Tensor, "N F"], batch: Batch) -> Float[Tensor, "N F"]:
        observed = batch.observed[batch.mask][:, None]
        every = torch.arange(log_q.shape[-1], device=log_q.device)
        certain = torch.zeros_like(log_q).masked_fill(every != observed, -torch.inf)
        return certain.where(observed >= 0, log_q)

    def next_frame(self, latents: Latents, state: State) -> Float[Tensor, "B F"]:
        """Return log p(f | h), with h the state after the separator."""
        assert isinstance(state, ExactState)
        separator = self.word_reader.single_position(None, 0, len(latents.mask))
        states, _ = self.decoder.step(separator, state.decoder, latents, 0)
        return self.decoder.log_frames(states)

    def latents(self, query: LatentQuery) -> Latents:
        """Return the observed frames of the events to come; all others are summed out."""
        return self._given(query.observed, query.mask)

    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M S"]:
        return self.log_probs(batch, self._given(batch.observed, batch.mask))

    def log_probs(
        self,
        batch: Batch,
        latents: Latents,
        state: State | None = None,
        drawn: Drawn | None = None,
    ) -> Float[Tensor, "B M S"]:
        assert latents.frames is not None
        given = latents.frames[:, latents.event : latents.event + batch.mask.shape[1]][batch.mask]
        return to_padded(self._score(batch, latents, state, drawn).words(given), batch.mask)

    def start(self, read: Batch, latents: Latents) -> State:
        return ExactState(super().start(read, latents))

    def next_word(
        self, state: State, latents: Latents, words: Int[Tensor, " B"] | None, position: int
    ) -> tuple[Float[Tensor, "B V"], State]:
        assert isinstance(state, ExactState)
        assert latents.frames is not None
        vectors = self.word_reader.single_position(words, position, len(latents.mask))
        states, after = self.decoder.step(vectors, state.decoder, latents, position)
        given = latents.frames[:, latents.event]
        return self.decoder.next_word(states, after, state, given, words, position)

    def _score(
        self, batch: Batch, latents: Latents, state: State | None = None, drawn: Drawn | None = None
    ) -> EventScores:
        """Score the real events of a batch, one row each; after a state, or from the start."""
        return self._score_decoded(batch, self._decode(batch, latents, state), drawn)

    def _decode(self, batch: Batch, latents: Latents, state: State | None = None) -> DecoderOutput:
        start = state.decoder if isinstance(state, ExactState) else self.decoder.init_state(latents)
        decoded: DecoderOutput = self.decoder(self.word_reader(batch.tokens), start, latents)
        return decoded

    def _score_decoded(self, batch: Batch, decoded: DecoderOutput, drawn: Drawn | None) -> EventScores:
        states, words = decoded.states[batch.mask], batch.tokens[batch.mask]
        return self.decoder.score(states, words, batch.labels(), drawn)

    def _no_frames(self, batch: Batch) -> Latents:
        return self._given(torch.full_like(batch.observed, -1), batch.mask)

    def _given(self, frames: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]) -> Latents:
        vectors = self.decoder.frame_vectors.new_zeros(*mask.shape, 0)
        return Latents(vectors, mask, frames.masked_fill(~mask, -1))


def _nll(log_q: Float[Tensor, "N F"], batch: Batch) -> Float[Tensor, " N"]:
    """Return −Σ_f s_f log q(f) of the labels s of the real events, 0 where there is none."""
    return -expected(log_q, *batch.labels())


def _reader_loss(
    log_q: Float[Tensor, "N F"], log_r: Float[Tensor, "N F"], batch: Batch, kappa: int
) -> Float[Tensor, " N"]:
    """Return the expected −log q of labelled events and κ KL(r ‖ q) of the others."""
    labelled = _nll(log_q, batch)
    if not kappa:
        return labelled
    r = log_r.exp()
    divergence: Tensor = -(r * log_q).sum(-1) - torch.special.entr(r).sum(-1)
    loss: Tensor = labelled + kappa * divergence.masked_fill(batch.observed[batch.mask] >= 0, 0)
    return loss
