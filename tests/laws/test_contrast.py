"""Contrastive fine-tuning against the cloze that it is for."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from ssdvae.data.batches import Batch
from ssdvae.evaluation.options import log_mean
from ssdvae.models.contrast import contrast_losses, groups_of
from tests.toys import WORDS, noise, toy_batch, toy_model

LANGUAGE_MODELS = ["rnnlm", "rnnlm-role", "planner"]


def test_it_is_the_pmi_of_the_cloze() -> None:
    """The score of every option less the log of its mean probability after the seeds of others."""
    scores = torch.randn(3, 5, 5, dtype=torch.float64) * 3
    for group, losses in zip(scores.numpy(), contrast_losses(scores).numpy(), strict=True):
        for i in range(5):
            left_out = np.array([[k in (i, j) for k in range(5)] for j in range(5)])
            pmi = group[i] - log_mean(group.T, left_out)
            assert losses[i] == pytest.approx(-np.log(np.exp(pmi[i]) / np.exp(pmi).sum()))


def test_groups_are_of_whole_documents_each_once() -> None:
    batch = toy_batch([3, 2, 3, 3, 3, 1, 3, 3, 3])
    groups = groups_of(batch, 3)
    assert groups.tolist() == [[0, 2, 3], [4, 6, 7]]
    assert groups_of(toy_batch([1] * 9), 3).numel() == 0
    assert groups_of(toy_batch([2, 2]), 3).numel() == 0


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_it_adds_to_the_loss_of_a_model_in_training(name: str) -> None:
    model, batch = toy_model(name, contrast=2.0, contrast_group=3), toy_batch([3] * 7)
    plain = model(batch, noise(7)).per_document
    loss = model.train()(batch, noise(7))
    torch.testing.assert_close(loss.per_document, plain + 2 * loss.terms["contrast"])
    assert (loss.terms["contrast"][:6] > 0).all()
    assert loss.terms["contrast"][6] == 0


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_it_learns_what_belongs_together(name: str) -> None:
    """Documents that say one word again and again: after some steps each is known by its first event."""
    torch.manual_seed(0)
    model = toy_model(name, contrast=20.0, contrast_group=4).float().train()
    words = torch.arange(2, 10)[:, None, None].expand(-1, 2, 4)
    batch = Batch.of_words(words.contiguous())
    batch = dataclasses.replace(batch, tokens=batch.tokens % WORDS)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
    losses = []
    for step in range(60):
        loss = model(batch, noise(8, step))
        loss.per_document.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.terms["contrast"].mean().item())
    assert losses[-1] < 0.1 < losses[0]
