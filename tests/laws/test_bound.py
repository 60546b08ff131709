"""The bound against the exact likelihood, summed over all F^M chains of frames."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from ssdvae.data.batches import Batch, Noise
from ssdvae.models.plan import PlanRequest
from ssdvae.models.ssdvae import SSDVAE
from tests.toys import FRAMES, noise, toy_batch, toy_ssdvae

EVENTS = 3

pytestmark = pytest.mark.usefixtures("_no_gradients")


@pytest.fixture
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def every_chain(model: SSDVAE, document: Batch) -> tuple[Tensor, Tensor]:
    """log p(w, f) and log q(f | w) of each chain f, by forcing the encoder through it."""
    chains = torch.tensor(list(itertools.product(range(FRAMES), repeat=EVENTS)))
    copies = document.each(lambda part: part.expand(len(chains), *part.shape[1:]))
    one_hot = functional.one_hot(chains, FRAMES).double()
    place = itertools.count()

    def forced(logits: Tensor, noise: Noise) -> Tensor:
        return one_hot if logits.dim() == 3 else one_hot[:, next(place)]

    inputs = model.reader(copies.tokens)
    states = model._read(inputs, copies.mask)
    posterior = model._chain(states, PlanRequest.whole(copies, forced, noise(len(chains))))
    words, log_p = model._score(copies, states, posterior, inputs)
    return (words + posterior.log_prob_of_sample(log_p)).sum(1), posterior.log_q()


KINDS: dict[str, dict[str, Any]] = {
    "paper": {},
    "markov": {"prior": "markov", "prior_rank": 2},
    "framenet": {"prior": "framenet"},
    "history": {"prior": "history", "guide": "aligned", "roles": True},
    "local": {"prior": "history", "guide": "local", "preference": True},
    "tied": {"prior": "markov", "guide": "aligned", "tied": True},
}


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> SSDVAE:
    return toy_ssdvae(**KINDS[request.param])


@pytest.mark.parametrize("observe", [0.0, 1.0])
def test_the_chains_of_the_encoder_have_probabilities_that_sum_to_one(model: SSDVAE, observe: float) -> None:
    _, log_q = every_chain(model, toy_batch([EVENTS], observe=observe))
    torch.testing.assert_close(log_q.logsumexp(0), torch.zeros((), dtype=torch.float64))


def test_the_exact_elbo_never_exceeds_the_exact_likelihood(model: SSDVAE) -> None:
    for _ in range(10):
        log_p, log_q = every_chain(model, toy_batch([EVENTS], observe=0))
        elbo = (log_q.exp() * (log_p - log_q)).sum()
        assert elbo <= log_p.logsumexp(0) + 1e-9


def test_one_sample_estimates_the_exact_elbo_and_many_reach_the_likelihood(model: SSDVAE) -> None:
    document = toy_batch([EVENTS], observe=0)
    log_p, log_q = every_chain(model, document)
    elbo, likelihood = (log_q.exp() * (log_p - log_q)).sum(), log_p.logsumexp(0)
    draws = 4000
    copies = document.each(lambda part: part.expand(draws, *part.shape[1:]))
    single = model.bounds(copies, 1, noise(draws))[0]
    assert abs(single.mean() - elbo) < 4 * single.std() / draws**0.5
    # The importance-weighted estimate lies between the two, and its gap shrinks with the samples.
    bounds = model.bounds(copies.part(slice(400)), 60, noise(400))
    few, many = bounds[4], bounds[59]
    # In the mean it grows with every sample: the differences are paired, so a small error shows.
    means = bounds.mean(1)
    growth = bounds[1:] - bounds[:-1]
    assert (growth.mean(1) > -4 * growth.std(1) / 400**0.5).all()
    assert means[0] < means[4] < means[59]
    error = 4 * few.std() / 400**0.5
    assert elbo - error < few.mean() < likelihood + error
    assert abs(many.mean() - likelihood) < abs(few.mean() - likelihood) + 4 * many.std() / 400**0.5
    assert (
        abs(many.mean() - likelihood)
        < 4 * many.std() / 400**0.5 + float((log_p - log_q - likelihood).exp().var()) / 60
    )


def test_words_with_their_likeliest_frames_are_one_chain_of_the_sum(model: SSDVAE) -> None:
    """So they are never more probable than the words alone."""
    for _ in range(5):
        document = toy_batch([EVENTS], observe=0)
        log_p, _ = every_chain(model, document)
        together = model.event_log_probs(document).sum()
        assert (log_p - together).abs().min() < 1e-9
        assert together < log_p.logsumexp(0)
