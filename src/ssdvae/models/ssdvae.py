"""SSDVAE: a variational autoencoder over event sequences whose latent variables are a chain of frames,
observed for some events and latent for others (Rezaee and Ferraro, NAACL 2021). ``Alg.``, ``l.`` and ``eq.``
are the paper's algorithms, their lines, and its equations.

    p(w, f) = Π_t p(w_t | f, w_<t) · Π_m p(f_m | f_{m−1}),    p(f_m | f_{m−1}) = 1/F        eq. 3, section 3.4
    q(f | w; I) = Π_m q(f_m | f_{m−1}, I_m, w)                                              eq. 6
    loss = −L_w + n (α_c L_c − α_q L_q)                                                     eq. 7, negated

Where it departs from the paper, and why:

- α_c L_c is subtracted from the objective: added, as eq. 7 has it, it would penalize predicting the observed
  frames, which the text says it rewards.
- L_c is taken of γ′, before Alg. 1, l. 5: after it, the observation would predict itself.
- L_q is summed over latent events: the entropy of an observed one is not to be raised.
- α_q and α_c are multiplied by the number of words n (``normalize: word``), since they were tuned in code
  whose L_w is a mean per word. ``normalize: document`` takes them as printed, n = 1.
- Attention scores are divided by √d, so that they do not saturate with wide states.
- W_out and Ŵ_out have biases.

Where the paper is silent or misprinted:

- f_0: its embedding is a learned projection of the mean of H.
- The first state of the decoder: tanh of a learned projection of e_1, one part for each layer.
- l. 5 of Alg. 1 has γ on both sides: here γ = γ′ + ‖γ′‖ I with the L2 norm.
- d_e is the hidden size; the encoder's d_h is twice that, for its two directions.
- A separator stands before every event. Both networks read it, H has no row for it, and it is never
  predicted: its position is certain.

``variant: code`` is the authors' code of the paper's time: a document vector, which the paper does not
mention, is added to the logits of frames and words, and an observed frame replaces the logits of its event.
``variant: text`` is the paper.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import Attentive, Decoder, DecoderOutput, LanguageModel, Loss, State
from ssdvae.models.latents import (
    FramePosterior,
    LatentQuery,
    Latents,
    Sampler,
    SoftClusters,
    categorical,
    most_likely,
)
from ssdvae.models.layers import (
    DocumentVector,
    GRUState,
    LazyAttention,
    PaddedGRU,
    WordOutput,
    WordReader,
    attend,
    full_precision,
    per_word,
)
from ssdvae.models.losses import frame_nll, weight_scale
from ssdvae.models.options import SSDVAEOptions
from ssdvae.models.precision import autocast

DOCUMENT_VECTOR = 20
"""The width of the document vector in the authors' code."""


def entropy(logits: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch"]:
    """Return H(softmax(logits)) in nats."""
    log_q = logits.log_softmax(-1)
    return -(log_q.exp() * log_q).sum(-1)


def inject(raw_logits: Float[Tensor, "B F"], observed: Int[Tensor, " B"]) -> Float[Tensor, "B F"]:
    """Return γ = γ′ + ‖γ′‖ I: observed frames get likelier (Alg. 1, l. 5)."""
    strength = raw_logits.norm(dim=-1) * (observed >= 0)
    return raw_logits.scatter_add(-1, observed.clamp_min(0)[:, None], strength[:, None])


def replace_observed(raw_logits: Float[Tensor, "B F"], observed: Int[Tensor, " B"]) -> Float[Tensor, "B F"]:
    """Return γ = ‖γ′‖ I where a frame is observed, as in the authors' code, else γ′."""
    one_hot = functional.one_hot(observed.clamp_min(0), raw_logits.shape[-1]).to(raw_logits.dtype)
    clamped = raw_logits.norm(dim=-1, keepdim=True) * one_hot
    return torch.where((observed >= 0)[:, None], clamped, raw_logits)


def gumbel_softmax(temperature: float) -> Sampler:
    """Return the sampler softmax((logits + g) / τ) with Gumbel noise g (Alg. 1, l. 6)."""

    def sample(logits: Float[Tensor, "B F"], noise: Noise) -> Float[Tensor, "B F"]:
        return ((logits + noise.gumbel(logits.shape[-1], device=logits.device)) / temperature).softmax(-1)

    return sample


class Join(nn.Module):
    """Combine query and context: tanh(q) + tanh(c); or tanh(W [c; q]), for the ablation of the appendix."""

    def __init__(self, width: int, attention: str) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * width, width, bias=False) if attention == "concatenation" else None

    def forward(self, query: Float[Tensor, "*rows d"], context: Float[Tensor, "*rows d"]) -> Tensor:
        if self.linear is None:
            return query.tanh() + context.tanh()
        joined: Tensor = self.linear(torch.cat([context, query], -1)).tanh()
        return joined


@dataclass(frozen=True)
class Chain:
    """One chain of frames for each document, as the encoder drew it."""

    raw_logits: Float[Tensor, "B M F"]  # γ′
    logits: Float[Tensor, "B M F"]  # γ
    sample: Float[Tensor, "B M F"]  # f
    memory: Float[Tensor, "B M e"]  # E^M = f E^F
    attention: LazyAttention  # α
    mask: Bool[Tensor, "B M"]

    def log_q(self) -> Float[Tensor, " B"]:
        """Return log q(f | w; I) of a hard sample (eq. 6)."""
        return ((self.logits.log_softmax(-1) * self.sample).sum(-1) * self.mask).sum(1)


class Encoder(nn.Module):
    """q(f | w; I) (Algorithm 1)."""

    def __init__(self, config: SSDVAEOptions, width: int, frames: int) -> None:
        super().__init__()
        d_e, d_h = config.hidden, 2 * config.hidden  # d_h: two directions
        self.inject = replace_observed if config.variant == "code" else inject
        self.gru = PaddedGRU(width, config.hidden, config.layers)
        self.first = nn.Linear(d_h, d_e)
        self.w_in = nn.Linear(d_e, d_h, bias=False)  # W_in
        self.join = Join(d_h, config.attention)
        self.w_out = nn.Linear(d_h, frames)  # W_out

    def forward(
        self,
        H: Float[Tensor, "B T h"],
        frame_embedding: Float[Tensor, "F e"],
        request: LatentQuery,
        offsets: Float[Tensor, "B F"] | None = None,
    ) -> Chain:
        """Draw one chain of frames given H; ``offsets`` are added to the logits of all events."""
        word_mask = per_word(request.read.mask, H)
        embedding = self.first(H.sum(1) / word_mask.sum(1, keepdim=True))  # e of f_0
        steps = []
        for m in range(request.mask.shape[1]):
            q = self.w_in(embedding)  # W_in e, of l. 2 and 4
            context, _ = attend(q[:, None], H, word_mask)  # Alg. 1, l. 2-3
            raw_logits = self.w_out(self.join(q, context[:, 0]))  # Alg. 1, l. 4
            if offsets is not None:
                raw_logits = raw_logits + offsets
            logits = self.inject(raw_logits, request.observed[:, m])  # Alg. 1, l. 5
            sample = request.sampler(logits, request.noise)  # Alg. 1, l. 6-7
            embedding = sample.to(frame_embedding.dtype) @ frame_embedding  # Alg. 1, l. 1, of the next event
            steps.append((raw_logits, logits, sample, embedding, q))
        raw_logits, logits, sample, memory, queries = (
            torch.stack(x, dim=1) for x in zip(*steps, strict=True)
        )
        attention = LazyAttention(queries, H, word_mask)
        return Chain(raw_logits, logits, sample, memory, attention, request.mask)


class FrameAttentionDecoder(Decoder):
    """p(w_t | f, w_<t) (Algorithm 2): a GRU whose states attend to the rows of E^M.

    It has no input feeding: the paper has none, and without it the GRU runs in one call.
    """

    def __init__(
        self, reader: WordReader, hidden: int, layers: int, attention: str, tied: bool = False
    ) -> None:
        super().__init__()
        self.layers = layers
        self.gru = nn.GRU(reader.width, hidden, layers, batch_first=True)
        self.output = WordOutput(hidden, reader, tied)  # Ŵ_out
        self.first = nn.Linear(hidden, layers * hidden)
        self.w_in = nn.Linear(hidden, hidden, bias=False)  # Ŵ_in
        self.join = Join(hidden, attention)

    def init_state(self, latents: Latents) -> GRUState:
        first: Tensor = self.first(latents.vectors[:, 0]).tanh()
        return GRUState(first.view(len(first), self.layers, -1).transpose(0, 1).contiguous())

    def forward(self, inputs: Float[Tensor, "B M P d"], state: State, latents: Latents) -> DecoderOutput:
        assert isinstance(state, GRUState)
        z, layers = self.gru(inputs.flatten(1, 2), state.layers)
        z = z.view(*inputs.shape[:3], -1)
        # The state after the separator predicts the head; that after a slot predicts the next slot.
        predicting, ends = z[:, :, :-1], z[:, :, -1]
        states = self._attend(predicting.flatten(1, 2), latents).view_as(predicting)
        return DecoderOutput(states, ends, GRUState(layers))

    def step(
        self, word: Float[Tensor, "B 1 d"], state: State, latents: Latents, position: int
    ) -> tuple[Float[Tensor, "B h"], State]:
        assert isinstance(state, GRUState)
        z, layers = self.gru(word, state.layers)
        return self._attend(z, latents)[:, 0], GRUState(layers)

    def _attend(self, z: Float[Tensor, "B Q h"], latents: Latents) -> Float[Tensor, "B Q h"]:
        """Return what Ŵ_out turns into g (Alg. 2, l. 3); ``LanguageModel.log_probs`` has the rest."""
        with autocast("fp32", z.device):
            q = self.w_in(full_precision(z))  # Ŵ_in z, of l. 1 and 3
            context, _ = attend(q, latents.vectors, latents.mask)  # Alg. 2, l. 1-2; the vectors are E^M
            joined: Tensor = self.join(q, context)  # Alg. 2, l. 3
        return joined


@dataclass(frozen=True)
class Encoded:
    """The states H of the encoder, and what a document vector adds to the logits of frames and words."""

    H: Float[Tensor, "B T h"]
    frame_offsets: Float[Tensor, "B F"] | None = None
    word_offsets: Float[Tensor, "B V"] | None = None


class SSDVAE(LanguageModel, Attentive):
    """Encoder, decoder, and the frame embeddings E^F that they share."""

    config: SSDVAEOptions
    decoder: FrameAttentionDecoder
    any_length = False

    def __init__(
        self, config: SSDVAEOptions, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        self.frame_embedding = nn.Parameter(torch.randn(len(frames), config.hidden) * 0.1)  # E^F
        self.encoder = Encoder(config, self.word_reader.width, len(frames))
        self.decoder = FrameAttentionDecoder(self.word_reader, config.hidden, config.layers, config.attention)
        self.document: DocumentVector | None = None
        if config.variant == "code":
            self.document = DocumentVector(2 * config.hidden, DOCUMENT_VECTOR, len(frames), len(vocabulary))

    @property
    def conditions_on_targets(self) -> bool:
        return True

    @property
    def has_elbo(self) -> bool:
        return self.document is None

    def parts(self) -> dict[str, nn.Module]:
        found: dict[str, nn.Module] = {"frames": self.encoder, "state": self.decoder.first}
        return found if self.document is None else {"document-vector": self.document, **found}

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        """Return −L_w + n (α_c L_c − α_q L_q) (eq. 7), each term the mean over S chains (eq. 5)."""
        encoded = self._encode(batch)
        request = LatentQuery.whole(batch, gumbel_softmax(self.config.temperature), noise)
        is_latent = batch.mask & (batch.observed < 0)
        chains = []
        for _ in range(self.config.samples):  # S
            chain = self._chain(encoded, request)
            reconstruction = self.log_probs(batch, self._latents(chain, encoded)).sum((1, 2))  # L_w
            q_entropy = (entropy(chain.logits) * is_latent).sum(1)  # L_q; log p(f) is constant
            nll = frame_nll(chain.raw_logits.log_softmax(-1), batch.observed, batch.mask)  # L_c
            chains.append((reconstruction, q_entropy, nll))
        reconstruction, q_entropy, nll = (torch.stack(x).mean(0) for x in zip(*chains, strict=True))
        scale = weight_scale(self.config.normalize, batch.words)
        extra = self.config.frame_weight * nll - self.config.entropy_weight * q_entropy  # α_c L_c − α_q L_q
        terms = {"reconstruction": reconstruction, "entropy": q_entropy, "frame_nll": nll}
        return Loss(scale * extra - reconstruction, terms)

    # What follows is not in the paper: how the model is measured, and what it answers.

    def latents(self, query: LatentQuery) -> Latents:
        """Encode what is read and roll the chain out; where nothing is read, sample the uniform prior."""
        if query.read.mask.shape[1]:
            encoded = self._encode(query.read)
            return self._latents(self._chain(encoded, query), encoded)
        zero_logits = self.frame_embedding.new_zeros(len(query.mask), len(self.frames))
        samples = [query.sampler(zero_logits, query.noise) for _ in range(query.mask.shape[1])]
        sample = torch.stack(samples, dim=1)
        frame_logits = zero_logits[:, None].expand_as(sample)
        return Latents(
            sample @ self.frame_embedding, query.mask, sample.argmax(-1), frame_logits=frame_logits
        )

    def word_log_probs(self, batch: Batch, noise: Noise) -> Float[Tensor, "B M S"]:
        query = LatentQuery.whole(batch, gumbel_softmax(self.config.temperature), noise)
        return self.log_probs(batch, self.latents(query))

    def event_log_probs(self, batch: Batch) -> Float[Tensor, "B M"]:
        """Return log p(event m | f, words before) + log p(f_m) along the greedy chain."""
        words = self.log_probs(batch, self.latents(_greedy(batch))).sum(-1)
        return words - math.log(len(self.frames)) * batch.mask

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        """Return log (1/s) Σ_{i≤s} p(w | f_i) p(f_i) / q(f_i | w) for s = 1 … S, with hard chains f_i ~ q."""
        encoded, query = self._encode(batch), LatentQuery.whole(batch, categorical, noise)
        log_prior, log_weights = -math.log(len(self.frames)) * batch.mask.sum(1), []
        for _ in range(samples):
            chain = self._chain(encoded, query)
            words = self.log_probs(batch, self._latents(chain, encoded)).sum((1, 2))
            log_weights.append(words + log_prior - chain.log_q())
        counts = torch.arange(1, samples + 1, device=self.device)
        return torch.stack(log_weights).logcumsumexp(0) - counts.log()[:, None]

    def posterior(self, batch: Batch) -> FramePosterior:
        """Return q(f_m | f_{m−1}, I_m, w) along the greedy chain, with the clusters of section 4.2."""
        encoded = self._encode(batch)
        chain = self._chain(encoded, _greedy(batch))
        log_q, clusters = chain.logits.log_softmax(-1), None
        if self.config.attention == "addition":
            w_frames, w_words = self.encoder.w_out.weight, self.decoder.output.matrix
            clusters = SoftClusters(encoded.H, log_q, self.frame_embedding, w_frames, w_words)
        return FramePosterior(log_q, batch.mask, chain.attention, clusters)

    def _encode(self, batch: Batch) -> Encoded:
        H = self.encoder.gru.at_words(self.word_reader(batch.tokens), batch.mask)
        if self.document is None:
            return Encoded(H)
        vector = self.document(H, per_word(batch.mask, H))
        return Encoded(H, vector, self.document.words(vector))

    def _chain(self, encoded: Encoded, request: LatentQuery) -> Chain:
        with autocast("fp32", self.device):
            chain: Chain = self.encoder(encoded.H, self.frame_embedding, request, encoded.frame_offsets)
        return chain

    def _latents(self, chain: Chain, encoded: Encoded) -> Latents:
        frames = chain.sample.argmax(-1).masked_fill(~chain.mask, -1)
        return Latents(chain.memory, chain.mask, frames, 0, encoded.word_offsets, chain.raw_logits)


def _greedy(batch: Batch) -> LatentQuery:
    """Return the query for the most likely frame of each event, given that of the event before."""
    return LatentQuery.whole(batch, most_likely, Noise(torch.Generator(), len(batch)))
