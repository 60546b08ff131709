"""Priors over frames: what they cost, and that nothing of the future is in them."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from ssdvae.config import SSDVAESettings
from ssdvae.data.relations import KEYS, read_relations
from ssdvae.data.vocabulary import Inventory
from ssdvae.errors import DataError
from ssdvae.models.attention import Looks
from ssdvae.models.latent import Elbo, Posterior, probabilities
from ssdvae.models.plan import PlanRequest
from ssdvae.models.prior import PRIORS, FrameNetPrior, UniformPrior, bigram_statistics, relations_between
from tests.toys import FRAMES, noise, toy_batch, toy_ssdvae

EVENTS = 3


def random_prior(name: Any) -> Any:
    prior = PRIORS[name].new(SSDVAESettings(prior=name, hidden=6, prior_rank=2), FRAMES).double()
    for parameter in prior.parameters():
        torch.nn.init.normal_(parameter)
    return prior


def one_hot(chains: torch.Tensor) -> torch.Tensor:
    return functional.one_hot(chains, FRAMES).double()


@pytest.mark.parametrize("name", PRIORS)
def test_the_chains_of_a_prior_have_probabilities_that_sum_to_one(name: str) -> None:
    """With the words, that is the states of the decoder, held fixed."""
    prior = random_prior(name)
    chains = one_hot(torch.tensor(list(itertools.product(range(FRAMES), repeat=EVENTS))))
    log_p = prior(chains, torch.randn(1, EVENTS, 6, dtype=torch.float64).expand(len(chains), -1, -1))
    total = (log_p * chains).sum((1, 2)).logsumexp(0)
    torch.testing.assert_close(total, torch.zeros_like(total))


@pytest.mark.parametrize("name", PRIORS)
def test_a_frame_depends_on_what_is_before_it_alone(name: str) -> None:
    prior = random_prior(name)
    sample, ends = torch.rand(1, EVENTS, FRAMES).double(), torch.randn(1, EVENTS, 6).double()
    before = prior(sample, ends)
    for place in range(EVENTS):
        changed, moved = sample.clone(), ends.clone()
        changed[:, place:] += 1
        moved[:, place:] += 1
        torch.testing.assert_close(prior(changed, moved)[:, : place + 1], before[:, : place + 1])


def test_a_uniform_prior_costs_ln_f_for_each_event() -> None:
    prior = UniformPrior(500)
    log_p = prior(torch.zeros(2, 3, 500), torch.zeros(2, 3, 1))
    torch.testing.assert_close(log_p, torch.full((2, 3, 500), -math.log(500)))


def posterior_of(logits: torch.Tensor, sample: torch.Tensor, mask: torch.Tensor) -> Posterior:
    nothing = logits.new_zeros(*logits.shape[:2], 1)
    return Posterior(logits, logits, sample, nothing, Looks(nothing, nothing, mask), mask)


def test_the_divergence_of_a_chain_is_that_by_enumeration() -> None:
    """Σ_f q(f) log q(f) / p(f) over all chains is what its steps cost, each in the mean over its prefix."""
    prior, logits = random_prior("markov"), torch.randn(1, EVENTS, FRAMES, dtype=torch.float64)
    chains = one_hot(torch.tensor(list(itertools.product(range(FRAMES), repeat=EVENTS))))
    count = len(chains)
    mask, latent = torch.ones(count, EVENTS, dtype=torch.bool), torch.full((count, EVENTS), -1)
    posterior = posterior_of(logits.expand(count, -1, -1), chains, mask)
    log_p = prior(chains, torch.zeros(count, EVENTS, 6).double())
    log_q = posterior.log_q()
    exact = (log_q.exp() * (log_q - posterior.log_prob_of_sample(log_p).sum(1))).sum()
    by_steps = (log_q.exp() * posterior.divergence(log_p, latent)).sum()
    torch.testing.assert_close(by_steps, exact)


def test_observed_frames_are_evidence_and_free_nats_cost_nothing() -> None:
    log_p = torch.randn(1, 3, FRAMES).log_softmax(-1)
    logits, mask = torch.randn(1, 3, FRAMES), torch.tensor([[True, True, False]])
    posterior = posterior_of(logits, logits.softmax(-1), mask)
    observed = torch.tensor([[1, -1, 0]])
    q = logits[0, 1].softmax(-1)
    kl = (q * (q.log() - log_p[0, 1])).sum()
    evidence = -log_p[0, 0, 1]
    torch.testing.assert_close(posterior.divergence(log_p, observed), (evidence + kl)[None])
    torch.testing.assert_close(
        posterior.divergence(log_p, observed, free=float(kl) + 1), (evidence + kl + 1)[None]
    )
    # Within the free nats nothing pulls.
    logits.requires_grad_()
    posterior_of(logits, logits.softmax(-1), mask).divergence(log_p, observed, free=99.0).sum().backward()  # type: ignore[no-untyped-call]  # torch's
    assert logits.grad is not None
    assert not logits.grad.any()


def test_the_bound_rises_with_warmup_and_the_paper_fits_its_prior_beside() -> None:
    values = (-50.0, 3.0, 7.0, 11.0, 13.0)
    elbo, words = Elbo(*(torch.tensor([value]) for value in values)), torch.tensor([20])

    def loss(progress: float = 1.0, learned: bool = False, **settings: Any) -> float:
        return elbo.loss(SSDVAESettings(**settings), words, progress, learned_prior=learned).item()

    bound: dict[str, Any] = {"objective": "bound", "frame_weight": 0.5, "kl_weight": 2.0, "kl_warmup": 0.4}
    for progress, share in ((0.0, 0.0), (0.1, 0.25), (0.4, 1.0), (0.9, 1.0)):
        assert loss(progress, **bound) == pytest.approx(50 + 2 * share * 11 + 20 * 0.5 * 7)
    paper = 50 + 20 * (0.1 * 7 - 0.1 * 3)
    assert loss() == pytest.approx(paper)
    assert loss(learned=True) == pytest.approx(paper + 13)


@pytest.mark.parametrize("prior", ["markov", "framenet", "history"])
def test_fitting_a_prior_beside_teaches_the_prior_alone(prior: Any) -> None:
    model = toy_ssdvae(prior=prior)
    batch = toy_batch([EVENTS] * 4)

    def learning(term: str) -> set[str]:
        model.zero_grad()
        model(batch, noise(4)).terms[term].sum().backward()
        return {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}

    assert learning("prior_cross_entropy") == {f"prior.{name}" for name, _ in model.prior.named_parameters()}
    assert not any(name.startswith("prior") for name in learning("reconstruction"))


def test_words_follow_no_frame_of_a_later_event_where_frames_follow_words() -> None:
    """Under the history prior, a frame is drawn after the words before it: these must not know it."""
    model, batch = toy_ssdvae(prior="history", guide="aligned"), toy_batch([EVENTS] * 2)
    with torch.no_grad():
        plan = model.plan(PlanRequest.whole(batch, probabilities, noise(2)))
        before = model.log_probs(batch, plan)
        for place in range(1, EVENTS):
            plan.vectors[:, place:] += 1
            torch.testing.assert_close(model.log_probs(batch, plan)[:, :place], before[:, :place])
            assert not torch.equal(model.log_probs(batch, plan)[:, place], before[:, place])
            plan.vectors[:, place:] -= 1


def test_bigrams_are_counted_where_both_are_observed_and_relatives_share_them() -> None:
    frames = np.array([[0, 1, -1, 2], [0, 1, 2, -1], [1, 0, -1, -1]])
    start, frequency, odds = bigram_statistics(frames, 4, [])
    for logs in (start, frequency):
        assert np.exp(logs).sum() == pytest.approx(1, rel=1e-5)
    conditional = np.exp(odds + frequency)
    assert conditional.sum(1) == pytest.approx(np.ones(4), rel=1e-5)
    # Never seen anywhere: every next frame is as likely as it is in general.
    assert odds[3] == pytest.approx(np.zeros(4), abs=1e-5)
    assert odds[0].argmax() == 1  # seen twice
    assert start.argmax() == 0
    shared = bigram_statistics(frames, 4, [("Inheritance", 0, 3)])[2]
    assert shared[3].argmax() == 1  # as its relative
    ordered = bigram_statistics(frames, 4, [("Precedes", 2, 3)])[2]
    assert ordered[2, 3] > ordered[3, 2]


def test_a_prior_of_full_rank_begins_with_the_frequencies() -> None:
    frames = torch.randint(0, 4, (200, 5))
    prior = FrameNetPrior(4, rank=4)
    prior.initialize_from_data(frames, [])
    start, frequency, odds = bigram_statistics(frames.numpy(), 4, [])
    after = prior.next(torch.eye(4)).detach()
    torch.testing.assert_close(after, torch.from_numpy(odds + frequency), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(prior.first(1)[0].detach(), torch.from_numpy(start), atol=1e-5, rtol=1e-5)


def test_relations_of_unknown_frames_and_kinds_are_left_out() -> None:
    frames = Inventory(["Arrest", "Trial"], [2, 1])
    relations = [
        {"relation": "Precedes", "sub": "Trial", "sup": "Arrest"},
        {"relation": "Precedes", "sub": "Trial", "sup": "Elsewhere"},
        {"relation": "See_also", "sub": "Trial", "sup": "Arrest"},
    ]
    # In FrameNet what is later stands below: an arrest precedes a trial.
    assert relations_between(relations, frames) == [("Precedes", 0, 1)]


NAMES = st.fixed_dictionaries({key: st.text() for key in KEYS})
ANYTHING = st.recursive(st.none() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x))


@given(st.lists(NAMES) | st.lists(NAMES | ANYTHING) | ANYTHING)
def test_a_file_of_relations_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    path: Path = tmp_path_factory.mktemp("relations") / "relations.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    right = isinstance(value, list) and all(
        isinstance(relation, dict) and all(isinstance(relation.get(key), str) for key in KEYS)
        for relation in value
    )
    if right:
        assert read_relations(path) == value
    else:
        with pytest.raises(DataError, match=r"relations\.json"):
            read_relations(path)
