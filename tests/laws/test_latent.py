"""The mathematics without parameters, against formulas and another library."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import pytest
import torch
from torch.distributions import Categorical

from ssdvae.config import SSDVAESettings
from ssdvae.data.batches import Noise
from ssdvae.models.attention import Attention, Looks
from ssdvae.models.latent import (
    Elbo,
    Posterior,
    categorical,
    entropy,
    gumbel_softmax,
    importance_bounds,
    inject,
    most_likely,
)
from tests.toys import noise


def test_entropy_is_that_of_torch_distributions() -> None:
    logits = 3 * torch.randn(20, 7)
    expected = Categorical(logits=logits).entropy()  # type: ignore[no-untyped-call]  # torch has no types there
    torch.testing.assert_close(entropy(logits), expected)


def test_injection_adds_the_norm_of_the_event_where_something_is_observed() -> None:
    raw = torch.randn(4, 6)
    observed = torch.tensor([2, -1, 0, 5])
    injected = inject(raw, observed)
    for row, frame in enumerate(observed.tolist()):
        expected = raw[row].clone()
        if frame >= 0:
            expected[frame] += math.sqrt(float((raw[row] ** 2).sum()))
        torch.testing.assert_close(injected[row], expected)


def test_injection_does_not_depend_on_the_rest_of_the_batch() -> None:
    raw, observed = torch.randn(4, 6), torch.tensor([2, -1, 0, 5])
    alone = torch.cat([inject(raw[i : i + 1], observed[i : i + 1]) for i in range(4)])
    torch.testing.assert_close(inject(raw, observed), alone)


def test_gumbel_softmax_samples_are_on_the_simplex_and_sharpen_as_the_temperature_falls() -> None:
    logits = torch.randn(50, 5)
    samples = [gumbel_softmax(t)(logits, noise(50)) for t in (2.0, 0.5, 1e-6)]
    for sample in samples:
        torch.testing.assert_close(sample.sum(-1), torch.ones(50))
    peaks = [sample.max(-1).values.mean() for sample in samples]
    assert peaks[0] < peaks[1] < peaks[2]
    torch.testing.assert_close(samples[2], categorical(logits, noise(50)), atol=1e-3, rtol=0)


def test_exact_samples_have_the_frequencies_of_the_softmax() -> None:
    draws, logits = 40_000, torch.tensor([0.5, -1.0, 1.5, 0.0])
    rows = logits.expand(draws, -1)
    counts = categorical(rows, noise(draws)).sum(0)
    expected = draws * logits.softmax(-1)
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 16.27  # the 99.9 % point of χ² with 3 degrees of freedom


def test_mode_is_the_largest_logit_whatever_the_noise() -> None:
    logits = torch.randn(10, 5)
    assert torch.equal(most_likely(logits, noise(10)).argmax(-1), logits.argmax(-1))


def test_gumbel_noise_is_finite_even_where_the_uniform_draw_is_zero() -> None:
    class Zeros(Noise):
        def uniform(self, *shape: int, device: torch.device | str = "cpu") -> torch.Tensor:
            return torch.zeros(self.size, *shape)

    assert torch.isfinite(Zeros(torch.Generator(), 3).gumbel(4)).all()


def test_terms_of_the_posterior_are_sums_over_the_right_events() -> None:
    """The entropy of what is latent, after the injection; the surprise at what is observed, before it."""
    raw, logits = torch.randn(2, 3, 5), torch.randn(2, 3, 5)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    observed = torch.tensor([[2, -1, 0], [-1, 4, 1]])
    nothing = torch.zeros(2, 3, 1)
    posterior = Posterior(raw, logits, logits.softmax(-1), nothing, Looks(nothing, nothing, mask), mask)
    latent = [[(0, 1)], [(1, 0)]]
    seen = [[(0, 0), (0, 2)], [(1, 1)]]
    torch.testing.assert_close(
        posterior.entropy(observed), torch.stack([sum_of(entropy(logits[i]) for i in row) for row in latent])
    )
    torch.testing.assert_close(
        posterior.frame_nll(observed),
        torch.stack([sum_of(-raw[i].log_softmax(-1)[observed[i]] for i in row) for row in seen]),
    )


def sum_of(terms: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.stack(list(terms)).sum()


@pytest.mark.parametrize("kind", ["addition", "concatenation"])
def test_attention_is_blind_to_what_is_masked(kind: Literal["addition", "concatenation"]) -> None:
    """Even to NaN, and the rest shares all the attention."""
    attend = Attention(4, kind)
    query, memory, mask = (
        torch.randn(2, 3, 4),
        torch.randn(2, 5, 4),
        torch.arange(5) < torch.tensor([[3], [5]]),
    )
    memory[0, 3:] = torch.nan
    joined, attention = attend(query, memory, mask)
    short, _ = attend(query[:1], memory[:1, :3], mask[:1, :3])
    torch.testing.assert_close(joined[:1], short)
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 3))
    assert (attention[0, :, 3:] == 0).all()


def test_importance_bounds_are_the_logs_of_the_mean_weights_so_far() -> None:
    log_weights = torch.randn(6, 4)
    for count, bound in enumerate(importance_bounds(log_weights), start=1):
        torch.testing.assert_close(bound, log_weights[:count].exp().mean(0).log())


def test_weights_count_once_per_word_or_once_per_document() -> None:
    elbo = Elbo(*(torch.tensor([value]) for value in (-50.0, 3.0, 7.0, 11.0, 13.0)))
    document = elbo.loss(_weights("document"), torch.tensor([20]))
    word = elbo.loss(_weights("word"), torch.tensor([20]))
    torch.testing.assert_close(document, torch.tensor([50 - 0.2 * 3 + 0.5 * 7]))
    torch.testing.assert_close(word, torch.tensor([50 + 20 * (0.5 * 7 - 0.2 * 3)]))


def _weights(normalize: Literal["word", "document"]) -> SSDVAESettings:
    return SSDVAESettings(normalize=normalize, entropy_weight=0.2, frame_weight=0.5)
