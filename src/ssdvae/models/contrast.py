"""Contrastive fine-tuning for the cloze: the true continuation against those of other documents.

Some documents of the same length are a group. With s_ij = log p(rest of document j | first event of i),

    pmi_ij = s_ij − log mean_{k ≠ i, j} p(rest of j | first event of k)
    loss_i = −log softmax_j(pmi_ij)[i]

which is the cloze as it is measured by pmi: the other documents of the group have the false continuations and
the other seeds.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ssdvae.config import LanguageModelSettings
from ssdvae.data.batches import Batch, Noise
from ssdvae.models.base import EventModel, Loss
from ssdvae.models.latent import probabilities
from ssdvae.models.plan import PlanRequest


def with_contrast(model: EventModel, settings: LanguageModelSettings, batch: Batch, loss: Loss) -> Loss:
    """The loss of a language model that is being trained, with the contrast that its settings ask for."""
    weight = settings.contrast
    if not weight or not model.training:
        return loss
    groups = groups_of(batch, settings.contrast_group)
    contrast = torch.zeros_like(loss.per_document)
    if groups.numel():
        contrast = contrast.index_put(
            (groups.flatten(),), contrast_losses(_scores(model, batch, groups)).flatten()
        )
    return Loss(loss.per_document + weight * contrast, {**loss.terms, "contrast": contrast})


def groups_of(batch: Batch, size: int) -> Int[Tensor, "K G"]:
    """Documents that have all events of the batch, in groups; what is left over takes no part."""
    if batch.mask.shape[1] < 2:
        return batch.tokens.new_zeros(0, size)
    whole = batch.mask.all(1).nonzero()[:, 0]
    return whole[: len(whole) // size * size].view(-1, size)


def _scores(model: EventModel, batch: Batch, groups: Int[Tensor, "K G"]) -> Float[Tensor, "K G G"]:
    """s_ij of each group."""
    count, size = groups.shape
    tokens = batch.tokens[groups]
    seeds = Batch.of_words(tokens[:, :, :1].flatten(0, 1))
    options = tokens[:, None, :, 1:].expand(-1, size, -1, -1, -1).flatten(0, 1)
    unknown = seeds.observed.expand(-1, batch.mask.shape[1])
    noise = Noise(torch.Generator(), len(seeds))
    plan = model.plan(PlanRequest.continuing(seeds, unknown, probabilities, noise))
    return model.continuations(seeds, plan, options).view(count, size, size)


def contrast_losses(scores: Float[Tensor, "K G G"]) -> Float[Tensor, "K G"]:
    """The loss of each document, from s_ij (i is the seed, j the continuation)."""
    size = scores.shape[-1]
    own = torch.eye(size, dtype=torch.bool, device=scores.device)
    # others[i, j, k] = s_kj without k = i and k = j
    others = scores.transpose(1, 2)[:, None].expand(-1, size, -1, -1)
    others = others.masked_fill(own[None, :, None] | own[None, None], -math.inf)
    counts = torch.where(own, size - 1, size - 2).to(scores)
    pmi = scores - (others.logsumexp(-1) - counts.log())
    return -pmi.log_softmax(-1).diagonal(dim1=1, dim2=2)
