"""The paper's model: its bound against the sum over all F^M chains of frames, its formulas one by one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator

import pytest
import torch
from torch import Tensor
from torch.distributions import Categorical
from torch.nn import functional

from ssdvae.data.batches import Batch, Noise
from ssdvae.models.latents import LatentQuery, categorical, most_likely
from ssdvae.models.layers import LazyAttention, attend
from ssdvae.models.losses import frame_nll
from ssdvae.models.ssdvae import SSDVAE, Join, entropy, gumbel_softmax, inject, replace_observed
from tests.toys import FRAMES, noise, toy_batch, toy_ssdvae

EVENTS = 3


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(params=["addition", "concatenation"])
def model(request: pytest.FixtureRequest) -> SSDVAE:
    return toy_ssdvae(attention=request.param)


def every_chain(model: SSDVAE, document: Batch) -> tuple[Tensor, Tensor]:
    """log p(w, f) and log q(f | w) of each chain f, by forcing the encoder through it."""
    chains = torch.tensor(list(itertools.product(range(FRAMES), repeat=EVENTS)))
    copies = document.each(lambda part: part.expand(len(chains), *part.shape[1:]))
    one_hot = functional.one_hot(chains, FRAMES).double()
    place = itertools.count()

    def forced(logits: Tensor, noise: Noise) -> Tensor:
        return one_hot[:, next(place)]

    encoded = model._encode(copies)
    chain = model._chain(encoded, LatentQuery.whole(copies, forced, noise(len(chains))))
    assert torch.equal(chain.sample, one_hot)
    words = model.log_probs(copies, model._latents(chain, encoded)).sum((1, 2))
    return words - EVENTS * math.log(FRAMES), chain.log_q()


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
        assert (log_p - together).abs().min() < 1e-6  # log p(f) is of single precision
        assert together < log_p.logsumexp(0)


def test_importance_bounds_are_the_logs_of_the_mean_weights_so_far(model: SSDVAE) -> None:
    batch, stream = toy_batch([EVENTS, 2, 1, 3]), noise(4)
    log_weights = torch.stack([model.bounds(batch, 1, stream)[0] for _ in range(6)])
    for count, bound in enumerate(model.bounds(batch, 6, noise(4)), start=1):
        torch.testing.assert_close(bound, log_weights[:count].exp().mean(0).log())


@pytest.mark.parametrize("normalize", ["word", "document"])
def test_weights_count_once_per_word_or_once_per_document(normalize: str) -> None:
    model = toy_ssdvae(normalize=normalize, entropy_weight=0.2, frame_weight=0.5)
    batch = toy_batch([4, 1, 2])
    loss = model(batch, noise(3))
    scale = torch.tensor([16, 4, 8]) if normalize == "word" else torch.ones(3)
    extra = 0.5 * loss.terms["frame_nll"] - 0.2 * loss.terms["entropy"]
    torch.testing.assert_close(loss.per_document, scale * extra - loss.terms["reconstruction"])


def test_terms_of_the_loss_are_sums_over_the_right_events(model: SSDVAE) -> None:
    """The entropy of what is latent, after the injection; the surprise at what is observed, before it."""
    batch = toy_batch([3, 2], events=4)
    observed = torch.tensor([[2, -1, 0, -1], [-1, 1, 2, -1]])
    batch = Batch(batch.tokens, batch.frames, observed, batch.mask)
    loss = model(batch, noise(2))
    query = LatentQuery.whole(batch, gumbel_softmax(model.config.temperature), noise(2))
    chain = model._chain(model._encode(batch), query)
    latent, seen = [[(0, 1)], [(1, 0)]], [[(0, 0), (0, 2)], [(1, 1)]]
    torch.testing.assert_close(
        loss.terms["entropy"],
        torch.stack([sum_of(entropy(chain.logits[i]) for i in row) for row in latent]),
    )
    expected = torch.stack(
        [sum_of(-chain.raw_logits[i].log_softmax(-1)[observed[i]] for i in row) for row in seen]
    )
    torch.testing.assert_close(loss.terms["frame_nll"], expected)
    torch.testing.assert_close(
        frame_nll(chain.raw_logits.log_softmax(-1), batch.observed, batch.mask), expected
    )


def sum_of(terms: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(terms)).sum()


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
    for changed in (inject, replace_observed):
        alone = torch.cat([changed(raw[i : i + 1], observed[i : i + 1]) for i in range(4)])
        torch.testing.assert_close(changed(raw, observed), alone)


def test_in_the_code_an_observed_frame_replaces_the_logits_of_its_event() -> None:
    raw, observed = torch.randn(3, 5), torch.tensor([2, -1, 0])
    clamped = replace_observed(raw, observed)
    torch.testing.assert_close(clamped[1], raw[1])
    for row in (0, 2):
        expected = torch.zeros(5)
        expected[observed[row]] = raw[row].norm()
        torch.testing.assert_close(clamped[row], expected)
    chains = []
    for variant in ("text", "code"):
        model, batch = toy_ssdvae(variant=variant), toy_batch([2], observe=1)
        query = LatentQuery.whole(batch, most_likely, noise(1))
        chains.append((model._chain(model._encode(batch), query), batch.observed))
    (text, seen), (code, told) = chains
    torch.testing.assert_close(text.logits[:, 0], inject(text.raw_logits[:, 0], seen[:, 0]))
    torch.testing.assert_close(code.logits[:, 0], replace_observed(code.raw_logits[:, 0], told[:, 0]))


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


def test_the_most_likely_value_is_the_largest_logit_whatever_the_noise() -> None:
    logits = torch.randn(10, 5)
    assert torch.equal(most_likely(logits, noise(10)).argmax(-1), logits.argmax(-1))


def test_gumbel_noise_is_finite_even_where_the_uniform_draw_is_zero() -> None:
    class Zeros(Noise):
        def uniform(self, *shape: int, device: torch.device | str = "cpu") -> Tensor:
            return torch.zeros(self.size, *shape)

    assert torch.isfinite(Zeros(torch.Generator(), 3).gumbel(4)).all()


@pytest.mark.parametrize("kind", ["addition", "concatenation"])
def test_attention_is_blind_to_what_is_masked(kind: str) -> None:
    """However large it is, as long as it is finite; and the rest shares all the attention."""
    join, query, memory = Join(4, kind), torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    mask = torch.arange(5) < torch.tensor([[3], [5]])
    memory[0, 3:] = 1e30
    context, attention = attend(query, memory, mask)
    short, _ = attend(query[:1], memory[:1, :3], mask[:1, :3])
    torch.testing.assert_close(context[:1], short)
    torch.testing.assert_close(join(query, context)[:1], join(query[:1], short))
    torch.testing.assert_close(attention.sum(-1), torch.ones(2, 3))
    assert (attention[0, :, 3:] == 0).all()


def test_attention_that_is_asked_for_later_is_the_same() -> None:
    query, memory, mask = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.ones(2, 5, dtype=torch.bool)
    lazy = LazyAttention(query, memory, mask)
    expected = (query @ memory.transpose(1, 2) / 2).softmax(-1)
    torch.testing.assert_close(lazy.weights, expected)
    torch.testing.assert_close(lazy.of(1, 2), expected[1, :2])
