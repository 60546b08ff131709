"""HAQAE: an autoencoder with a hierarchy of quantised variables (Weber et al., EMNLP 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from ssdvae.data.batches import Batch, Noise
from ssdvae.data.events import SLOTS, Slots
from ssdvae.data.vocabulary import Inventory, Vocabulary
from ssdvae.models.base import LanguageModel, LatentModel, Loss
from ssdvae.models.latents import LatentPosterior, LatentQuery, Latents
from ssdvae.models.layers import PaddedGRU, attend, per_word
from ssdvae.models.losses import weight_scale
from ssdvae.models.options import HAQAEOptions
from ssdvae.models.precision import autocast
from ssdvae.models.ssdvae import FrameAttentionDecoder

MEMORY, DEAD = 0.99, 0.05
"""The decay of the running mean of a code's use, and the share of its due below which it is dead."""


@dataclass(frozen=True)
class Quantized:
    """A query q, the nearest code e of a codebook, and its number (van den Oord et al., 2017)."""

    query: Float[Tensor, "B d"]
    nearest: Float[Tensor, "B d"]
    code: Int[Tensor, " B"]

    @property
    def vector(self) -> Float[Tensor, "B d"]:
        """e, with the gradient of q: straight through the choice, which has none."""
        return self.query + (self.nearest - self.query).detach()

    def codebook_loss(self) -> Float[Tensor, " B"]:
        """Return ‖sg(q) − e‖², which moves the code towards the query."""
        return (self.query.detach() - self.nearest).square().sum(-1)

    def commit_loss(self, query: Float[Tensor, "B d"] | None = None) -> Float[Tensor, " B"]:
        """Return ‖q − sg(e)‖², which keeps the query, or another one, near its code."""
        return ((self.query if query is None else query) - self.nearest.detach()).square().sum(-1)


def quantize(query: Float[Tensor, "B d"], codebook: Float[Tensor, "K d"]) -> Quantized:
    """Return the code at the smallest distance ‖q − e_k‖ for each query."""
    # ‖q − e‖² without its part ‖q‖², which is the same for all codes.
    with autocast("fp32", query.device):
        distance = codebook.square().sum(-1) - 2 * query @ codebook.T
    code = distance.argmin(-1)
    return Quantized(query, codebook[code], code)


class Query(nn.Module):
    """g(H, parent): what bilinear attention from the parent's code finds in H.

    α = softmax(H W parent / √d); g = U Hᵀ α
    """

    def __init__(self, hidden: int, width: int) -> None:
        super().__init__()
        self.bilinear = nn.Linear(width, hidden, bias=False)
        self.project = nn.Linear(hidden, width)

    def forward(
        self, hidden: Float[Tensor, "B T h"], words: Bool[Tensor, "B T"], parent: Float[Tensor, "B d"]
    ) -> Float[Tensor, "B d"]:
        context, _ = attend(self.bilinear(parent)[:, None], hidden, words)
        query: Tensor = self.project(context[:, 0])
        return query


class HAQAE(LanguageModel, LatentModel):
    """Each latent variable is the code nearest to a query that its parent's code asks of the words.

    ``structure``: a chain, or a binary tree in the order of a heap (node i has the parent (i − 1) // 2).
    Inference is deterministic: q gives one code all the probability, and frames are not used.
    """

    config: HAQAEOptions

    def __init__(
        self, config: HAQAEOptions, vocabulary: Vocabulary, frames: Inventory, slots: Slots = SLOTS
    ) -> None:
        super().__init__(config, vocabulary, frames, slots)
        hidden, width = 2 * config.hidden, config.code_width
        self.encoder = PaddedGRU(self.word_reader.width, config.hidden, config.layers)
        self.root = nn.Parameter(0.1 * torch.randn(width))
        self.queries = nn.ModuleList(Query(hidden, width) for _ in range(config.latents))
        # Close to zero, like the first queries: far-away codes would never be chosen, but for a few.
        first = (2 * torch.rand(config.latents, config.codes, width) - 1) / config.codes
        self.codebooks = nn.Parameter(first)
        self.widen = nn.Linear(width, config.hidden)
        self.decoder = FrameAttentionDecoder(
            self.word_reader, config.hidden, config.layers, config.attention, config.tied
        )
        self.use: Tensor
        self.register_buffer("use", torch.ones(config.latents, config.codes))

    @property
    def latent_shape(self) -> tuple[int, int]:
        return self.config.latents, self.config.codes

    def parent(self, variable: int) -> int:
        """Return the parent of a variable; −1 for the root."""
        return variable - 1 if self.config.structure == "chain" else (variable + 1) // 2 - 1

    def forward(self, batch: Batch, noise: Noise) -> Loss:
        """Return cross-entropy + codebook loss + 0.25 · commit loss + 0.15 · commit loss of the parents.

        The last is that of each query asked again of a constant H, so that it reaches the parents alone.
        """
        hidden = self.encoder.at_words(self.word_reader(batch.tokens), batch.mask)
        words = per_word(batch.mask, hidden)
        latents = self._quantized(hidden, words)
        reconstruction = self.log_probs(batch, self._widened(vectors(latents))).sum((1, 2))
        again = [self._ask(i, hidden.detach(), words, latents) for i in range(len(latents))]
        terms = {
            "codebook": sum_of(latent.codebook_loss() for latent in latents),
            "commit": sum_of(latent.commit_loss() for latent in latents),
            "parent_commit": sum_of(
                latent.commit_loss(query) for latent, query in zip(latents, again, strict=True)
            ),
        }
        extra = (
            terms["codebook"]
            + self.config.commit_weight * terms["commit"]
            + self.config.parent_commit_weight * terms["parent_commit"]
        )
        scale = weight_scale(self.config.normalize, batch.words)
        codes = torch.stack([latent.code for latent in latents])
        return Loss(scale * extra - reconstruction, {"reconstruction": reconstruction, **terms}, codes)

    @property
    def conditions_on_targets(self) -> bool:
        return True

    def latents(self, query: LatentQuery) -> Latents:
        """Return one vector per codebook: the variables stand for the document, not for its events.

        Where nothing is read, codes are drawn from the uniform prior.
        """
        if query.read.mask.shape[1]:
            return self._widened(vectors(self._read(query.read)))
        uniform = self.root.new_zeros(len(query.read), self.config.codes)
        drawn = [query.sampler(uniform, query.noise).to(book) @ book for book in self.codebooks]
        return self._widened(torch.stack(drawn, dim=1))

    def bounds(self, batch: Batch, samples: int, noise: Noise) -> Float[Tensor, "S B"]:
        """Return log p(w | z) + log p(z) − log q(z | w), with a uniform prior over codes and log q = 0."""
        words = self.log_probs(batch, self._widened(vectors(self._read(batch)))).sum((1, 2))
        return (words - self.config.latents * math.log(self.config.codes))[None]

    def posterior(self, batch: Batch) -> LatentPosterior:
        codes = torch.stack([latent.code for latent in self._read(batch)], dim=1)
        chosen = functional.one_hot(codes, self.config.codes).to(self.root.dtype)
        return LatentPosterior(chosen.log(), torch.ones_like(codes, dtype=torch.bool))

    @torch.no_grad()
    def after_step(self, loss: Loss, reduce: Callable[[Tensor], Tensor], generator: torch.Generator) -> None:
        """Keep count of the codes in use; with ``revive``, put dead ones beside living ones.

        A dead code becomes a neighbour of one that is drawn by its use: the busiest codes are split, as in
        the algorithm of Linde, Buzo and Gray.
        """
        assert loss.codes is not None
        counts = reduce(functional.one_hot(loss.codes, self.config.codes).sum(1).to(self.use))
        due = counts.sum(1, keepdim=True) / self.config.codes
        self.use.mul_(MEMORY).add_((1 - MEMORY) * counts / due)
        if not self.config.revive:
            return
        for use, codebook in zip(self.use, self.codebooks, strict=True):
            dead = (use < DEAD).nonzero()[:, 0]
            if not len(dead):
                continue
            living = use.where(use >= DEAD, 0).cpu()
            donor = torch.multinomial(living, len(dead), replacement=True, generator=generator).to(dead)
            shift = torch.randn(len(dead), codebook.shape[1], generator=generator).to(codebook)
            codebook[dead] = codebook[donor] * (1 + 0.01 * shift)
            # What a code and its new neighbours have together, each has a part of.
            whole = use.index_add(0, donor, use[dead])
            parts = torch.ones_like(use).index_add(0, donor, torch.ones_like(use[dead]))
            use.copy_(whole / parts)
            use[dead] = use[donor]

    def _read(self, batch: Batch) -> list[Quantized]:
        hidden = self.encoder.at_words(self.word_reader(batch.tokens), batch.mask)
        return self._quantized(hidden, per_word(batch.mask, hidden))

    def _quantized(self, hidden: Float[Tensor, "B T h"], words: Bool[Tensor, "B T"]) -> list[Quantized]:
        latents: list[Quantized] = []
        for i, codebook in enumerate(self.codebooks):
            latents.append(quantize(self._ask(i, hidden, words, latents), codebook))
        return latents

    def _ask(
        self, i: int, hidden: Float[Tensor, "B T h"], words: Bool[Tensor, "B T"], latents: list[Quantized]
    ) -> Float[Tensor, "B d"]:
        above = self.parent(i)
        parent = self.root.expand(len(hidden), -1) if above < 0 else latents[above].vector
        with autocast("fp32", hidden.device):
            query: Tensor = self.queries[i](hidden, words, parent)
        return query

    def _widened(self, codes: Float[Tensor, "B N d"]) -> Latents:
        with autocast("fp32", codes.device):
            vectors = self.widen(codes)
        return Latents(vectors, torch.ones(codes.shape[:2], dtype=torch.bool, device=codes.device))


def vectors(latents: list[Quantized]) -> Float[Tensor, "B N d"]:
    return torch.stack([latent.vector for latent in latents], dim=1)


def sum_of(terms: Iterable[Float[Tensor, " B"]]) -> Float[Tensor, " B"]:
    return torch.stack(list(terms)).sum(0)
