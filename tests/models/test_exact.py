"""The exact model against enumeration: of all events, of all frames, of all words; and its two readers."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Categorical, kl_divergence

import ssdvae
from ssdvae.data.batches import Batch
from ssdvae.inference.posterior import infer_latents
from ssdvae.models import losses
from ssdvae.models.base import as_frame_model
from ssdvae.models.exact import ExactModel
from ssdvae.models.latents import FramePosterior, LatentQuery
from ssdvae.models.layers import to_padded
from ssdvae.models.mixture import Support, candidates
from tests.toys import FRAMES, WORDS, noise, prepared, toy_batch, toy_exact

KINDS: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied": {"tied": False, "context_vector": 3},
    "one slot": {"slots": 1},
    "two slots": {"slots": 2, "tied": False},
}


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest) -> ExactModel:
    made = toy_exact(**KINDS[request.param])
    assert (made.decoder.table >= 0).any()
    return made


def in_training(**settings: Any) -> ExactModel:
    """With both readers, that learn different things."""
    model = prepared(toy_exact(**settings))
    assert isinstance(model, ExactModel)
    return model


def batch_of(model: ExactModel, lengths: list[int], **how: Any) -> Batch:
    return toy_batch(lengths, slots=len(model.slots), frames=len(model.frames), **how)


def every_event(model: ExactModel) -> Tensor:
    return torch.tensor(list(product(range(WORDS), repeat=len(model.slots))))


def after_seed(model: ExactModel, frame: int = -1) -> Tensor:
    """log p of every event after two others, whose own frame may be given."""
    seed = batch_of(model, [2], observe=0)
    latents = model.latents(LatentQuery.roll_out(seed, 1, torch.tensor([frame])))
    return model.continuations(seed, latents, every_event(model)[None, :, None])[0]


def with_frames(batch: Batch, frames: Tensor | int) -> Batch:
    return dataclasses.replace(batch, observed=torch.as_tensor(frames).expand_as(batch.observed))


def exact_part(posterior: FramePosterior) -> Tensor:
    """log r, without the reader."""
    assert posterior.parts is not None
    return posterior.parts["exact"]


def next_frames(model: ExactModel, batch: Batch) -> Tensor:
    """log p(f | h) before each event."""
    latents = [model.latents(LatentQuery.roll_out(batch.first(m), 1)) for m in range(batch.mask.shape[1])]
    states = [model.start(batch.first(m), before) for m, before in enumerate(latents)]
    frames = [model.next_frame(x.after(m), states[m]) for m, x in enumerate(latents)]
    return torch.stack(frames, dim=1)


def test_all_events_together_have_the_probability_one(model: ExactModel) -> None:
    torch.testing.assert_close(after_seed(model).logsumexp(0), torch.zeros((), dtype=torch.float64))


def test_given_a_frame_too(model: ExactModel) -> None:
    for frame in range(FRAMES):
        total = after_seed(model, frame).logsumexp(0)
        torch.testing.assert_close(total, torch.zeros((), dtype=torch.float64))


def test_words_and_frames_sum_to_the_words_and_their_shares_are_the_exact_posterior(
    model: ExactModel,
) -> None:
    batch = batch_of(model, [1] * 30, observe=0)
    with_each = torch.stack(
        [model.bounds(with_frames(batch, frame), 1, noise(30))[0] for frame in range(FRAMES)], dim=-1
    )
    alone = model.bounds(batch, 1, noise(30))[0]
    torch.testing.assert_close(with_each.logsumexp(-1), alone)
    torch.testing.assert_close(exact_part(model.posterior(batch))[:, 0], with_each - alone[:, None])
    torch.testing.assert_close(model.word_log_probs(batch, noise(30)).sum((1, 2)), alone)


def test_the_next_frame_is_predicted_and_the_words_follow_from_it(model: ExactModel) -> None:
    """log p(words, frame) = log p(frame | before) + log p(words | frame)"""
    batch = batch_of(model, [3] * 10, observe=1)
    ahead = next_frames(model, batch).gather(-1, batch.observed[..., None])[..., 0]
    words = model.word_log_probs(batch, noise(10)).sum(-1)
    torch.testing.assert_close((ahead + words).sum(1), model.bounds(batch, 1, noise(10))[0])


def test_the_mixture_is_that_of_its_formula(model: ExactModel) -> None:
    """Every softmax written out, with a matrix of all frames and words and a vector for every frame."""
    batch, decoder = batch_of(model, [3] * 10, observe=0), model.decoder
    latents, output = model._no_frames(batch), decoder.output
    states = decoder(model.word_reader(batch.tokens), decoder.init_state(latents), latents).states
    log_a = dense(decoder.support).log()
    scores = output(states[:, :, 0])
    log_f = decoder.foresee(states[:, :, 0]) @ decoder.frame_vectors[:FRAMES].T + decoder.frame_bias
    log_f = log_f.log_softmax(-1)
    by_frame = (scores[..., None, :] + log_a).log_softmax(-1)  # B M F V
    head = batch.tokens[..., 0]
    heads = log_f + by_frame.gather(-1, head[..., None, None].expand(*head.shape, FRAMES, 1))[..., 0]
    arguments = torch.zeros_like(heads)
    for frame in range(FRAMES):
        vectors = decoder.frame_vectors[_frame_row(model, head, frame)]
        guided = decoder.guide(vectors).unflatten(-1, (len(model.slots) - 1, model.config.hidden))
        log_p = output(states[:, :, 1:] + guided).log_softmax(-1)
        arguments[..., frame] = log_p.gather(-1, batch.tokens[..., 1:, None])[..., 0].sum(-1)
    joint = heads + arguments
    torch.testing.assert_close(model.event_log_probs(batch), joint.logsumexp(-1))
    torch.testing.assert_close(exact_part(model.posterior(batch)), joint.log_softmax(-1))


def _frame_row(model: ExactModel, heads: Tensor, frame: int) -> Tensor:
    """Whose vector the arguments of a head have, if the frame is this one."""
    rows = []
    for head in heads.flatten().tolist():
        own = [f for f in model.decoder.table[head].tolist() if f >= 0]
        rows.append(frame if frame in own else own[0] if own else FRAMES)
    return torch.tensor(rows).view(heads.shape)


def dense(support: Support) -> Tensor:
    """a_fv, pair by pair."""
    matrix = support.others[:, None].repeat(1, len(support.table))
    for word, frames in enumerate(support.table.tolist()):
        for place, frame in enumerate(frames):
            if frame >= 0:
                matrix[frame, word] = support.weights[word, place]
    matrix[:, support.unknown] = support.unknown_weights
    return matrix


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
def test_sums_over_words_and_frames_are_those_of_the_matrix(scale: float, dtype: torch.dtype) -> None:
    """Even where all heads of a frame are e³⁰⁰ times less likely than another word."""
    support = toy_exact().decoder.support
    scores = torch.randn(20, WORDS, dtype=torch.float64) * scale
    expected = (scores.log_softmax(-1)[:, None] + dense(support).log()).logsumexp(-1)
    low = Support(*(getattr(support, f.name) for f in dataclasses.fields(support)))
    if dtype == torch.float32:
        low = dataclasses.replace(
            support,
            weights=support.weights.float(),
            others=support.others.float(),
            unknown_weights=support.unknown_weights.float(),
        )
    p0 = scores.to(dtype).log_softmax(-1).exp()
    reach = low.reach(p0[:, low.words]).log()
    assert torch.isfinite(reach).all()
    torch.testing.assert_close(reach.double(), expected, rtol=1e-4, atol=1e-5)
    weights = torch.rand(20, FRAMES, dtype=torch.float64)
    torch.testing.assert_close(support.over_words(weights), weights @ dense(support))
    heads = torch.arange(WORDS)
    torch.testing.assert_close(support.of(heads), dense(support).T)


def test_frames_are_kept_in_mind_from_word_to_word(model: ExactModel) -> None:
    """Whatever the head: each argument changes the weights of the frames."""
    batch = batch_of(model, [2] * 40, observe=0)
    seed = batch.first(1)
    latents = model.latents(LatentQuery.roll_out(seed, 1))
    whole, state = model.word_log_probs(batch, noise(40)), model.start(seed, latents)
    words, latents = None, latents.after(1)
    for slot in range(len(model.slots)):
        log_p, state = model.next_word(state, latents, words, slot)
        words = batch.tokens[:, 1, slot]
        torch.testing.assert_close(log_p[torch.arange(40), words], whole[:, 1, slot])


def test_nothing_that_comes_later_changes_an_earlier_probability(model: ExactModel) -> None:
    """Neither words nor observed frames: of words, of the next frame, and of the exact posterior.

    The reader is another matter: it reads the whole document.
    """
    batch = batch_of(model, [4, 4, 4], observe=0.5)
    words, ahead = model.word_log_probs(batch, noise(3)), next_frames(model, batch)
    before = model.posterior(batch)
    for event in range(1, 4):
        tokens, observed = batch.tokens.clone(), batch.observed.clone()
        tokens[:, event:] = (tokens[:, event:] + 1) % WORDS
        observed[:, event:] = (observed[:, event:] + 2) % (FRAMES + 1) - 1
        other = dataclasses.replace(batch, tokens=tokens, observed=observed)
        after, latent = model.posterior(other), batch.observed[:, :event] < 0
        torch.testing.assert_close(model.word_log_probs(other, noise(3))[:, :event], words[:, :event])
        torch.testing.assert_close(next_frames(model, other)[:, : event + 1], ahead[:, : event + 1])
        torch.testing.assert_close(exact_part(after)[:, :event], exact_part(before)[:, :event])
        assert (next_frames(model, other)[:, event + 1 :] != ahead[:, event + 1 :]).all()
        assert (after.log_q[:, :event][latent] != before.log_q[:, :event][latent]).all()


def test_an_observed_frame_is_certain_and_leaves_the_exact_posterior_alone(model: ExactModel) -> None:
    """The frames of other events change by the reader alone."""
    batch = batch_of(model, [3] * 5, observe=0)
    free = model.posterior(batch)
    told = model.posterior(dataclasses.replace(batch, observed=batch.frames.where(torch.arange(3) == 1, -1)))
    assert (told.value[:, 1] == batch.frames[:, 1]).all()
    assert (told.log_q[:, 1].exp().sum(-1) == 1).all()
    torch.testing.assert_close(exact_part(told), exact_part(free))
    assert (told.log_q[:, ::2] != free.log_q[:, ::2]).all()


def test_the_arguments_speak_of_the_frame_where_a_head_has_several() -> None:
    model, batch = toy_exact(), toy_batch([1] * 60, observe=0)
    tokens = batch.tokens.clone()
    tokens[..., 1:] = (tokens[..., 1:] + 1) % WORDS
    other = dataclasses.replace(batch, tokens=tokens)
    change = exact_part(model.posterior(batch)) - exact_part(model.posterior(other))
    moved = (change.abs() > 1e-9).any(-1)[:, 0]
    several = (model.decoder.table[batch.tokens[:, 0, 0]] >= 0).sum(-1) > 1
    assert bool(several.any())
    assert moved.tolist() == several.tolist()


def test_the_loss_is_that_of_words_and_observed_frames_and_of_the_readers(model: ExactModel) -> None:
    batch = batch_of(model, [3, 2, 4])
    loss = model(batch, noise(3))
    assert loss.terms.keys() == {"reconstruction", "frame_nll", "reader_0"}
    generative = loss.per_document - loss.terms["reader_0"]
    torch.testing.assert_close(-generative, model.bounds(batch, 1, noise(3))[0])
    torch.testing.assert_close(generative, loss.terms["frame_nll"] - loss.terms["reconstruction"])
    both = prepared(model).eval()(batch, noise(3))
    assert both.terms.keys() == {*loss.terms, "reader_1"}
    readers = both.terms["reader_0"] + both.terms["reader_1"]
    torch.testing.assert_close(
        both.per_document, both.terms["frame_nll"] - both.terms["reconstruction"] + readers
    )


def test_a_reader_learns_observed_frames_and_the_rival_the_exact_posterior_of_the_others() -> None:
    """−log q of observed frames; with κ = 1 also KL(r ‖ q) where none is observed."""
    model, batch = in_training().eval(), toy_batch([4, 1, 3])
    assert model.frame_reader is not None
    assert model.rival is not None
    terms, mask = model(batch, noise(3)).terms, batch.mask
    seen = batch.observed[mask] >= 0
    r = Categorical(logits=model.exact_posterior(batch))
    for kappa, reader in enumerate((model.frame_reader, model.rival)):
        log_q = model._read(reader, batch, batch.observed)
        q = Categorical(logits=log_q)
        divergence = kl_divergence(r, q)
        own = -log_q.gather(1, batch.observed[mask].clamp_min(0)[:, None])[:, 0]
        each = own.where(seen, kappa * divergence)
        documents = torch.arange(3).repeat_interleave(mask.sum(1))
        expected = torch.zeros(3, dtype=torch.float64).index_add(0, documents, each)
        torch.testing.assert_close(terms[f"reader_{kappa}"], expected)


def gradients(model: ExactModel, batch: Batch, names: set[str] | None = None) -> dict[str, Tensor | None]:
    """Of the loss, or of the sum of some of its terms with their signs."""
    signs = {"reconstruction": -1}
    with torch.enable_grad():
        loss = model(batch, noise(len(batch)))
        total = loss.per_document.sum()
        if names is not None:
            total = torch.stack([signs.get(name, 1) * loss.terms[name].sum() for name in sorted(names)]).sum()
        found = torch.autograd.grad(total, list(model.parameters()), allow_unused=True)
    return dict(zip((name for name, _ in model.named_parameters()), found, strict=True))


def soft_batch(model: ExactModel) -> tuple[Batch, Tensor]:
    """Documents of one event with a label of three frames each, the label first, and the weights."""
    batch = batch_of(model, [1] * 20, observe=1)
    frames = (batch.observed[..., None] + torch.arange(3)) % FRAMES
    weights = torch.rand(20, 1, 3, dtype=torch.float64).softmax(-1)
    return dataclasses.replace(batch, soft_frames=frames, soft_weights=weights), weights[:, 0]


@pytest.mark.parametrize("sampled_words", [0, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_a_soft_label_has_the_expected_loss_and_gradient_of_hard_ones(kind: str, sampled_words: int) -> None:
    model = in_training(**KINDS[kind], sampled_words=sampled_words).eval()
    batch, weights = soft_batch(model)
    assert batch.soft_frames is not None
    hard = [with_frames(batch, batch.soft_frames[..., k]) for k in range(3)]
    # The others are none of a soft label, which counts where its first frame is the observed one.
    each = torch.stack([model(one, noise(20)).per_document for one in hard[1:]], dim=1)
    first = model(dataclasses.replace(batch, soft_frames=None, soft_weights=None), noise(20)).per_document
    mean = (weights * torch.cat([first[:, None], each], dim=1)).sum(1)
    torch.testing.assert_close(model(batch, noise(20)).per_document, mean)
    one = batch.part(slice(0, 1))
    plain = dataclasses.replace(one, soft_frames=None, soft_weights=None)
    parts = [gradients(model, plain)] + [gradients(model, part.part(slice(0, 1))) for part in hard[1:]]
    for name, gradient in gradients(model, one).items():
        of_parts = [part[name] for part in parts]
        if gradient is not None:
            known = [torch.zeros_like(gradient) if part is None else part for part in of_parts]
            terms = [weight * part for weight, part in zip(weights[0], known, strict=True)]
            torch.testing.assert_close(gradient, torch.stack(terms).sum(0))


def test_the_gradients_of_soft_labels_are_those_of_the_forward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their weights in the loss are known before it, so that no logits are computed twice."""
    model = in_training()
    batch, _ = soft_batch(model)
    real, made = losses._Gradients, list[object]()

    def count(layer: losses._Layer) -> losses._Gradients:
        made.append(layer)
        return real(layer)

    monkeypatch.setattr(losses, "_Gradients", count)
    gradients(model, batch)
    assert len(made) == 1


@pytest.mark.parametrize("sampled_words", [0, 4])
def test_the_readers_and_the_generative_part_learn_apart(sampled_words: int) -> None:
    """No gradient of one reaches the other: the generative part learns as it would alone."""
    model, batch = in_training(sampled_words=sampled_words), toy_batch([4, 1, 3])
    together = gradients(model, batch)
    alone = gradients(model, batch, {"reconstruction", "frame_nll"})
    by_reader = [gradients(model, batch, {f"reader_{kappa}"}) for kappa in (0, 1)]
    prefixes = ("frame_reader.", "rival.")
    for name, gradient in together.items():
        if not name.startswith(prefixes):
            expected = alone[name]
            assert gradient is not None, name
            assert expected is not None, name
            torch.testing.assert_close(gradient, expected)  # the terms are summed in another order
            assert by_reader[0][name] is by_reader[1][name] is None, name
        else:
            assert alone[name] is None, name
            mine = name.startswith("rival.")
            assert by_reader[mine][name] is not None, name
            assert by_reader[not mine][name] is None, name


def test_groups_of_clipping_are_the_generative_part_and_each_reader() -> None:
    """Together they are all parameters, each once."""
    for model, count in ((toy_exact(), 2), (in_training(), 3), (toy_exact(frames=0), 1)):
        groups = model.clipping_groups()
        assert len(groups) == count
        ids = [id(parameter) for group in groups for parameter in group]
        assert sorted(ids) == sorted(id(parameter) for parameter in model.parameters())
        assert len(set(ids)) == len(ids)
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        for group, prefix in zip(groups[1:], ("frame_reader.", "rival."), strict=False):
            assert all(names[id(parameter)].startswith(prefix) for parameter in group)


@pytest.mark.parametrize("which", [0, 1])
def test_one_reader_is_published_and_fine_tuning_starts_both_from_it(which: int, tmp_path: Path) -> None:
    model, batch = in_training().eval(), toy_batch([4, 1, 3])
    model.keep_reader(which, 0.7, 1.2)
    expected, kept = model.posterior(batch), model.reader
    assert kept is (model.rival if which else model.frame_reader)
    model.keep_reader(1 - which, 0.7, 1.2)
    assert (model.posterior(batch).log_q - expected.log_q).abs().nan_to_num(0).max() > 1e-3
    model.keep_reader(which, 0.7, 1.2)
    weights = model.weights_to_publish()
    assert not [name for name in weights if name.startswith("rival.")]
    for name, value in kept.state_dict().items():
        assert torch.equal(weights[f"frame_reader.{name}"], value)
    loaded = toy_exact()
    loaded.load_state_dict(weights)
    torch.testing.assert_close(loaded.posterior(batch).log_q, expected.log_q)
    model.save_pretrained(tmp_path / "model")
    read = ssdvae.load(tmp_path / "model").double()
    assert isinstance(read, ExactModel)
    torch.testing.assert_close(read.posterior(batch).log_q, expected.log_q, rtol=1e-4, atol=1e-5)
    tuned = in_training()
    tuned.start_from(weights)
    assert tuned.frame_reader is not None
    assert tuned.rival is not None
    for reader in (tuned.frame_reader, tuned.rival):
        for name, value in kept.state_dict().items():
            assert torch.equal(reader.state_dict()[name], value)
    torch.testing.assert_close(tuned.eval().posterior(batch).log_q, expected.log_q)


def test_the_label_of_an_event_informs_all_others_and_never_itself() -> None:
    model, batch = toy_exact(), toy_batch([4, 4, 3], observe=1)
    before = model._read(model.reader, batch, batch.observed)
    places = torch.arange(4).expand(3, 4)[batch.mask]
    for event in range(4):
        observed = batch.observed.clone()
        observed[:, event] = (observed[:, event] + 1) % FRAMES
        for labels in (observed, batch.observed.where(torch.arange(4) != event, -1)):
            after = model._read(model.reader, dataclasses.replace(batch, observed=labels), labels)
            torch.testing.assert_close(after[places == event], before[places == event], rtol=0, atol=0)
            told = (places != event) & (batch.mask.sum(1).repeat_interleave(batch.mask.sum(1)) > event)
            assert (after[told] != before[told]).all()


def test_labels_are_hidden_in_training_alone() -> None:
    """All of them in half of the documents, and some in the others; none is made up."""
    model, batch = in_training(), toy_batch([6] * 2000, observe=0.9)
    shown = model._labels_shown(batch, noise(2000))
    assert ((shown == batch.observed) | (shown == -1)).all()
    # A document that may show some shows each with a rate that is uniform between 0 and 1.
    without = float((shown < 0).all(1).double().mean())
    expected = 0.5 + 0.5 * sum((0.9 * (1 - u / 1000) + 0.1) ** 6 for u in range(1000)) / 1000
    assert abs(without - expected) < 4 * (0.25 / 2000) ** 0.5
    assert torch.equal(model.eval()._labels_shown(batch, noise(2000)), batch.observed)


def test_without_a_power_the_reader_names_frames_and_with_a_large_one_the_exact_posterior() -> None:
    model, batch = toy_exact(), toy_batch([4] * 20, observe=0)
    model.keep_reader(0, 0.0)
    posterior = model.posterior(batch)
    assert posterior.parts is not None
    torch.testing.assert_close(posterior.log_q, posterior.parts["reader"])
    best, mass = exact_part(posterior).argmax(-1), []
    assert (posterior.value != best).any()
    for power in (0.0, 0.5, 1.0, 2.0, 8.0, 1e8):
        model.keep_reader(0, power)
        mass.append(model.posterior(batch).log_q.exp().gather(-1, best[..., None]))
    assert all((after >= before - 1e-12).all() for before, after in pairwise(mass))
    torch.testing.assert_close(mass[-1], torch.ones_like(mass[-1]))
    model.keep_reader(0, 0.7, 0.4)
    product_of_both = 0.4 * (posterior.parts["reader"] + 0.7 * exact_part(posterior))
    torch.testing.assert_close(model.posterior(batch).log_q, product_of_both.log_softmax(-1))


def test_without_frames_it_is_a_language_model_that_learns() -> None:
    model = in_training(frames=0)
    assert as_frame_model(model) is None
    model.initialize_from_data(torch.arange(2, 6), torch.full((4,), -1))
    batch = batch_of(model, [4, 1, 3])
    assert infer_latents(model, batch) is None
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(20):
        with torch.enable_grad():
            loss = model(batch, noise(3))
            assert loss.terms.keys() == {"reconstruction", "frame_nll"}
            assert not loss.terms["frame_nll"].any()
            optimizer.zero_grad()
            loss.per_document.sum().backward()
        optimizer.step()
        losses.append(loss.per_document.sum().item())
    assert losses[-1] < 0.7 * losses[0]
    model.eval()
    torch.testing.assert_close(after_seed(model).logsumexp(0), torch.zeros((), dtype=torch.float64))
    words = model.word_log_probs(batch, noise(3)).sum((1, 2))
    torch.testing.assert_close(words, model.bounds(batch, 1, noise(3))[0])
    again = toy_exact(frames=0)
    again.load_state_dict(model.weights_to_publish())
    torch.testing.assert_close(again.word_log_probs(batch, noise(3)).sum((1, 2)), words)


pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=40)


@given(pairs, st.integers(1, 4))
def test_candidates_are_the_most_frequent_frames_of_each_head(seen: list[tuple[int, int]], most: int) -> None:
    heads, frames = torch.tensor(seen).T
    table, counts = candidates(heads, frames, 5, most)
    for head in range(5):
        expected = Counter(frame for h, frame in seen if h == head)
        found = [(f, c) for f, c in zip(table[head].tolist(), counts[head].tolist(), strict=True) if f >= 0]
        assert table[head, len(found) :].eq(-1).all()
        assert all(expected[frame] == count for frame, count in found)
        assert [c for _, c in found] == sorted(expected.values(), reverse=True)[:most]
        assert len({frame for frame, _ in found}) == len(found)


def test_a_lexicon_adds_candidates_after_those_that_were_seen() -> None:
    heads, frames = torch.tensor([0, 0, 0, 2]), torch.tensor([1, 1, 2, 0])
    lexicon = torch.tensor([[0, 3], [0, 1], [1, 2], [1, 2]])
    table, together = candidates(heads, frames, 3, 3, lexicon)
    assert table.tolist() == [[1, 2, 3], [2, -1, -1], [0, -1, -1]]
    assert together.tolist() == [[2, 1, 0.5], [0.5, 0, 0], [1, 0, 0]]
    assert candidates(heads, frames, 3, 2, lexicon)[0].tolist() == [[1, 2], [2, -1], [0, -1]]


def test_a_lexicon_is_enough_to_start_from() -> None:
    model, nothing = toy_exact(), torch.full((6,), -1)
    model.initialize_from_data(torch.zeros_like(nothing), nothing, torch.tensor([[4, 1], [5, 2]]))
    assert model.decoder.table[4].tolist() == [1, -1]
    assert torch.isfinite(model.bounds(toy_batch([3, 2]), 1, noise(2))).all()


def test_it_starts_from_what_was_observed() -> None:
    """With p_0 the frequency of heads, a frame gives its heads their share of its events."""
    model = toy_exact(candidates=FRAMES)
    generator = torch.Generator().manual_seed(0)
    heads = torch.randint(2, WORDS, (600,), generator=generator)
    frames = (heads % FRAMES).where(torch.rand(600, generator=generator) < 0.8, 0)
    observed = frames.where(torch.rand(600, generator=generator) < 0.9, -1)
    before = model.decoder.frame_vectors.clone()
    model.initialize_from_data(heads, observed)
    seen = observed >= 0
    together = torch.zeros(FRAMES, WORDS).double()
    together.index_put_((observed[seen], heads[seen]), torch.tensor(1.0).double(), accumulate=True)
    frequency = together.sum(0) / together.sum()
    weighed = dense(model.decoder.support) * frequency
    share = together / (together.sum(1, keepdim=True) + 1)
    torch.testing.assert_close(weighed[together > 0], share[together > 0], rtol=1e-5, atol=1e-6)
    means = (together @ model.word_reader.words.weight) / together.sum(1, keepdim=True)
    torch.testing.assert_close(model.decoder.frame_vectors[:-1], means)
    torch.testing.assert_close(model.decoder.frame_vectors[-1], before[-1])
    # Where nothing is observed nothing changes.
    state = {name: value.clone() for name, value in model.state_dict().items()}
    model.initialize_from_data(heads, torch.full_like(observed, -1))
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_documents_are_rotated_in_training_and_read_as_they_then_stand() -> None:
    """Some of them; an event keeps its own q, whatever the order in which the reader reads."""
    model, batch = prepared(toy_exact()), toy_batch([4, 3, 1, 4] * 20, observe=0.5)
    assert isinstance(model, ExactModel)
    order = model._order_read(batch, noise(len(batch)))
    assert order is not None
    lengths, still = batch.mask.sum(1), torch.arange(4)
    for row, length in zip(order, lengths, strict=True):
        assert torch.equal(row[:length].sort().values, still[:length])
        assert torch.equal(row[:length].roll(int(row[0])), still[:length])
    moved = (order != still).any(1)
    assert 0 < moved.sum() < len(batch) / 2
    reader, labels = model.reader, batch.observed
    read = model._read(reader, batch, labels, order)
    rows = torch.arange(len(batch))[:, None]
    turned = Batch(*(part[rows, order] for part in (batch.tokens, batch.frames, batch.observed, batch.mask)))
    expected = to_padded(model._read(reader, turned, turned.observed), batch.mask)
    torch.testing.assert_close(to_padded(read, batch.mask)[rows, order], expected)
    model.eval()
    assert model._order_read(batch, noise(len(batch))) is None
