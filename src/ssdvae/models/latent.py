"""The mathematics of the latent frames and of the objective, without parameters.

The generative story (paper, eq. 1): frames f_1 … f_M form a chain, words follow from them and from the words
before:

    p(w, f) = Π_t p(w_t | f, w_<t) · Π_m p(f_m | f_{m−1}),        p(f_m | f_{m−1}) = 1/F

and the encoder answers with q(f | w; I) = Π_m q(f_m | f_{m−1}, I_m, w), softly steered by what is observed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from ssdvae.config import LatentSettings, SSDVAESettings
from ssdvae.data.batches import Noise
from ssdvae.models.attention import Looks

Sampler = Callable[[Float[Tensor, "B *M F"], Noise], Float[Tensor, "B *M F"]]
"""From logits to a point of the simplex, with as much noise as that takes; of one event or of many."""


def entropy(logits: Float[Tensor, "*batch F"]) -> Float[Tensor, "*batch"]:
    """H(softmax(logits)) in nats."""
    log_q = logits.log_softmax(-1)
    return -(log_q.exp() * log_q).sum(-1)


def inject(raw_logits: Float[Tensor, "B *M F"], observed: Int[Tensor, "B *M"]) -> Float[Tensor, "B *M F"]:
    """γ = γ′ + ‖γ′‖·onehot(observed), where something is observed (Algorithm 1, line 5).

    The norm is per event: it must not depend on what else is in the batch.
    """
    strength = raw_logits.norm(dim=-1) * (observed >= 0)
    return raw_logits.scatter_add(-1, observed.clamp_min(0)[..., None], strength[..., None])


def clamp(raw_logits: Float[Tensor, "B *M F"], observed: Int[Tensor, "B *M"]) -> Float[Tensor, "B *M F"]:
    """γ = ‖γ′‖·onehot(observed), where something is observed, as in the authors' code of the paper's time."""
    strength = raw_logits.norm(dim=-1, keepdim=True)
    clamped = strength * _one_hot(observed.clamp_min(0), raw_logits)
    return torch.where((observed >= 0)[..., None], clamped, raw_logits)


INJECTIONS = {"add": inject, "replace": clamp}
"""What is made of the logits of an event whose frame is observed."""


def gumbel_softmax(temperature: float) -> Sampler:
    """softmax((logits + g) / τ) with Gumbel noise g: soft and differentiable."""
    return lambda logits, noise: ((logits + _gumbel(logits, noise)) / temperature).softmax(-1)


def straight_through(temperature: float) -> Sampler:
    """A hard draw, with the gradient of the Gumbel-Softmax that it is the largest value of."""

    def sample(logits: Float[Tensor, "B *M F"], noise: Noise) -> Float[Tensor, "B *M F"]:
        soft = gumbel_softmax(temperature)(logits, noise)
        return _one_hot(soft.argmax(-1), soft) + soft - soft.detach()

    return sample


def reinmax(temperature: float) -> Sampler:
    """A hard draw, with a gradient that is exact for quadratic functions at τ = 1 (Liu et al., 2023).

    The function is taken to be what Heun's method makes of its gradients at the draw: where the plain
    straight-through gradient is right to first order, this one is to second.
    """

    def sample(logits: Float[Tensor, "B *M F"], noise: Noise) -> Float[Tensor, "B *M F"]:
        drawn, q = categorical(logits, noise), logits.softmax(-1)
        middle = (drawn + (logits / temperature).softmax(-1)) / 2
        middle = ((middle.log() - logits).detach() + logits).softmax(-1)
        path = 2 * middle - q / 2
        return drawn + path - path.detach()

    return sample


ESTIMATORS = {"soft": gumbel_softmax, "straight-through": straight_through, "reinmax": reinmax}


def training_sampler(settings: SSDVAESettings) -> Sampler:
    """How frames are drawn in training."""
    return ESTIMATORS[settings.estimator](settings.temperature)


def categorical(logits: Float[Tensor, "B *M F"], noise: Noise) -> Float[Tensor, "B *M F"]:
    """A hard draw from softmax(logits): the largest of logits + g (Gumbel-max)."""
    return _one_hot((logits + _gumbel(logits, noise)).argmax(-1), logits)


def most_likely(logits: Float[Tensor, "B *M F"], noise: Noise) -> Float[Tensor, "B *M F"]:
    """The most likely frame, no noise."""
    return _one_hot(logits.argmax(-1), logits)


def probabilities(logits: Float[Tensor, "B *M F"], noise: Noise) -> Float[Tensor, "B *M F"]:
    """Every frame with its probability, no noise: the mean of a hard draw."""
    return logits.softmax(-1)


def _gumbel(logits: Float[Tensor, "B *M F"], noise: Noise) -> Float[Tensor, "B *M F"]:
    """As much as logits take; those of many events as if they came one after another."""
    *events, frames = logits.shape[1:]
    if not events:
        return noise.gumbel(frames, device=logits.device)
    return torch.stack([noise.gumbel(frames, device=logits.device) for _ in range(events[0])], dim=1)


def _one_hot(ids: Int[Tensor, "B *M"], like: Float[Tensor, "B *M F"]) -> Float[Tensor, "B *M F"]:
    return functional.one_hot(ids, like.shape[-1]).to(like.dtype)


def frame_nll(
    log_q: Float[Tensor, "B M F"], observed: Int[Tensor, "B M"], mask: Bool[Tensor, "B M"]
) -> Float[Tensor, " B"]:
    """−Σ_m log q(I_m) over the observed events."""
    chosen = log_q.gather(-1, observed.clamp_min(0)[..., None])[..., 0]
    return -(chosen * (mask & (observed >= 0))).sum(1)


def weight_scale(settings: LatentSettings, words: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    """How often the weights of an objective count in each document.

    The papers' weights were tuned against a mean per word, so with ``normalize: word`` they count once for
    each word of the document; with ``document`` the formula is as printed.
    """
    return words if settings.normalize == "word" else torch.ones_like(words)


@dataclass(frozen=True)
class Posterior:
    """One chain of frames for each document, as the encoder drew it."""

    raw_logits: Float[Tensor, "B M F"]
    logits: Float[Tensor, "B M F"]
    sample: Float[Tensor, "B M F"]
    memory: Float[Tensor, "B M e"]  # E^M: the embedding of each frame, or of a soft sample's mixture
    looks: Looks
    mask: Bool[Tensor, "B M"]

    @property
    def attention(self) -> Float[Tensor, "B M T"]:
        return self.looks.shares

    def first(self, events: int) -> Posterior:
        """The frames of the first events; what was looked at for those after them is still there."""
        names = ("raw_logits", "logits", "sample", "memory", "mask")
        return replace(self, **{name: getattr(self, name)[:, :events] for name in names})

    @property
    def frame(self) -> Int[Tensor, "B M"]:
        """The frame that weighs most in each sample; −1 at padding."""
        return self.sample.argmax(-1).masked_fill(~self.mask, -1)

    def entropy(self, observed: Int[Tensor, "B M"]) -> Float[Tensor, " B"]:
        """L_q = Σ_m H(softmax(γ_m)) over the latent events."""
        return (entropy(self.logits) * (self.mask & (observed < 0))).sum(1)

    def frame_nll(self, observed: Int[Tensor, "B M"]) -> Float[Tensor, " B"]:
        """L_c = −Σ_m log softmax(γ′_m)[I_m] over the observed events.

        Before the injection: after it, the observation would answer for the network.
        """
        return frame_nll(self.raw_logits.log_softmax(-1), observed, self.mask)

    def log_q(self) -> Float[Tensor, " B"]:
        """log q(f | w) of hard samples."""
        return self.log_prob_of_sample(self.logits.log_softmax(-1)).sum(1)

    def log_prob_of_sample(self, log_p: Float[Tensor, "B M F"]) -> Float[Tensor, "B M"]:
        """log p of the frames of hard samples; 0 at padding."""
        return (log_p * self.sample).sum(-1) * self.mask

    def divergence(
        self, log_p: Float[Tensor, "B M F"], observed: Int[Tensor, "B M"], free: float = 0.0
    ) -> Float[Tensor, " B"]:
        """What the frames cost: Σ_m KL(q(f_m) ‖ p(f_m)) where they are latent, −log p(I_m) where observed.

        Each is exact given the frames drawn before it. ``free`` nats of each latent frame cost nothing.
        """
        log_q = self.logits.log_softmax(-1)
        kl = (log_q.exp() * (log_q - log_p)).sum(-1).clamp_min(free)
        return (kl * (self.mask & (observed < 0))).sum(1) + frame_nll(log_p, observed, self.mask)

    def prior_cross_entropy(self, log_p: Float[Tensor, "B M F"]) -> Float[Tensor, " B"]:
        """−Σ_m Σ_f q(f) log p(f), of which only p learns: it is fitted to the frames as they are."""
        q = self.logits.softmax(-1).detach()
        return -((q * log_p).sum(-1) * self.mask).sum(1)


def importance_bounds(log_weights: Float[Tensor, "S B"]) -> Float[Tensor, "S B"]:
    """log (1/s) Σ_{i ≤ s} w_i for s = 1 … S, with w_i = p(w, f_i) / q(f_i | w).

    The mean of each is at most log p(w), and grows with s; the first is the ELBO.
    """
    counts = torch.arange(1, len(log_weights) + 1, device=log_weights.device)
    return log_weights.logcumsumexp(0) - counts.log()[:, None]


@dataclass(frozen=True)
class SoftClusters:
    """How much each word speaks for each frame, and each event's frame for each word (paper, section 4.2).

    β_enc = W_out tanh(Hᵀ)        β_dec = Ŵ_out tanh(E^Mᵀ)

    Kept as the two factors, because the mean of β is the matrix times the mean of what it multiplies, and
    multiplied out when asked for: who only wants frames does not pay. W_out and Ŵ_out are without their
    biases, which the paper does not have: these are the same for every word and every frame, and say only
    what is frequent.
    """

    hidden: Float[Tensor, "B T h"]  # H
    log_q: Float[Tensor, "B M F"]
    frame_embedding: Float[Tensor, "F e"]  # E^F
    w_frames: Float[Tensor, "F h"]  # W_out
    w_words: Callable[[], Float[Tensor, "V e"]]  # Ŵ_out, a product of two where word vectors are tied

    @property
    def states(self) -> Float[Tensor, "B T h"]:
        """tanh(H)"""
        return self.hidden.tanh()

    @property
    def memory(self) -> Float[Tensor, "B M e"]:
        """tanh(E^M), with the expected embedding of each frame, of which a soft sample is a noisy one."""
        return (self.log_q.exp().to(self.frame_embedding.dtype) @ self.frame_embedding).tanh()


@dataclass(frozen=True)
class Elbo:
    """The terms of the objective, one number per document."""

    reconstruction: Float[Tensor, " B"]
    entropy: Float[Tensor, " B"]
    frame_nll: Float[Tensor, " B"]
    divergence: Float[Tensor, " B"]
    prior_cross_entropy: Float[Tensor, " B"]

    def loss(
        self,
        settings: SSDVAESettings,
        words: Int[Tensor, " B"],
        progress: float = 1.0,
        *,
        learned_prior: bool = False,
    ) -> Float[Tensor, " B"]:
        """On the scale of a document, with the paper's objective or the bound:

        −L_w − α_q·L_q + α_c·L_c            (plus the cross-entropy of the prior, if that is learned)
        −L_w + β·KL + α_c·L_c               (β rises to its weight in the warm-up)

        ``progress`` is the fraction of the training that is done.
        """
        scale, labels = weight_scale(settings, words), settings.frame_weight * self.frame_nll
        if settings.objective == "bound":
            warmth = min(1.0, progress / settings.kl_warmup) if settings.kl_warmup else 1.0
            return -self.reconstruction + settings.kl_weight * warmth * self.divergence + scale * labels
        fitted = self.prior_cross_entropy if learned_prior else 0.0
        return -self.reconstruction + scale * (labels - settings.entropy_weight * self.entropy) + fitted
