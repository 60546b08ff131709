"""Forecasts: distributions that sum to one, and masses that are those of the same event scored."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ssdvae.data.batches import Batch
from ssdvae.data.events import SLOTS, Document
from ssdvae.data.vocabulary import Vocabulary
from ssdvae.inference.forecast import (
    SMOOTHING,
    SPECIFICITY,
    NextEvent,
    frequency_term,
    next_events,
    search,
)
from ssdvae.inference.inputs import to_batch
from ssdvae.inference.prefixes import Rollout, head_log_probs
from ssdvae.inference.surprisal import surprisals
from ssdvae.io.errors import UserError
from ssdvae.models.base import LanguageModel, Model, as_frame_model
from ssdvae.models.latents import LatentQuery
from tests.inference.variants import VARIANTS, some_documents
from tests.models.test_base import variant_id
from tests.toys import (
    FRAMES,
    WORDS,
    named_documents,
    toy_documents,
    toy_exact,
    toy_language_model,
    toy_model,
    toy_ssdvae,
)

EXACT: list[dict[str, Any]] = [{"name": "rnnlm"}, {"name": "ssdvae-exact"}]
ALL = torch.tensor(list(itertools.product(range(WORDS), repeat=4)))


@pytest.fixture(params=VARIANTS, ids=variant_id)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    return toy_language_model(**request.param)


@pytest.fixture(params=EXACT, ids=variant_id)
def exact(request: pytest.FixtureRequest) -> LanguageModel:
    return toy_language_model(**request.param)


def read(model: Model, events: int) -> Batch:
    (document,) = some_documents(model, [max(1, events)])
    return to_batch(model, [replace(document, events=document.events[:events])])


@pytest.mark.parametrize("events", [0, 2])
def test_frames_and_heads_are_distributions(model: LanguageModel, events: int) -> None:
    before = read(model, events)
    rollout = Rollout.after(model, before)
    assert head_log_probs(model, rollout).exp().sum().item() == pytest.approx(1)
    assert (rollout.log_frames is not None) == (as_frame_model(model) is not None)
    if rollout.log_frames is not None:
        assert rollout.log_frames.exp().sum().item() == pytest.approx(1)


@pytest.mark.parametrize("events", [0, 2])
def test_masses_of_an_exact_model_are_those_of_all_events(exact: LanguageModel, events: int) -> None:
    """Enumeration: every event after the same words; the beam finds the likeliest, heads are its sums."""
    before = read(exact, events)
    longer = Batch.of_words(torch.cat([before.tokens.expand(len(ALL), -1, -1), ALL[:, None]], 1))
    mass = torch.exp(-surprisals(exact, longer).events[:, -1])
    assert mass.sum().item() == pytest.approx(1)
    rollout = Rollout.after(exact, before)
    heads = torch.zeros(WORDS, dtype=torch.float64).index_add(0, ALL[:, 0], mass)
    torch.testing.assert_close(head_log_probs(exact, rollout)[0].exp(), heads)
    free = torch.full((1, 4), -1)
    found = search(exact, rollout, free, beam=WORDS**3)
    possible = (ALL[:, 0] != exact.vocabulary.missing) & ALL.ne(exact.vocabulary.unknown).all(1)
    best = mass.masked_fill(~possible, 0).topk(20)
    torch.testing.assert_close(found.log_p[0, :20].exp(), best.values)
    assert torch.equal(found.tokens[0, :20], ALL[best.indices])
    # What is given: the first slots exactly, later ones by Bayes over all events of the beam.
    for fixed, bayes in ((torch.tensor([[3, 4, -1, -1]]), False), (torch.tensor([[-1, 4, -1, -1]]), True)):
        told = search(exact, rollout, fixed, beam=WORDS**3)
        fits = ((fixed < 0) | ALL.eq(fixed)).all(1)
        assert told.bayes == bayes
        if not bayes:
            assert told.log_fixed.exp().item() == pytest.approx(mass[fits].sum().item())
        shares = mass * fits * possible / told.log_fixed.exp()
        torch.testing.assert_close(told.log_share[0, :5].exp(), shares.topk(5).values)
        assert told.heads.exp().sum().item() == pytest.approx(1)


def test_specific_events_are_ranked_by_probability_and_frequency(exact: LanguageModel) -> None:
    """Enumeration: log p(event | history) − s Σ log frequency; the probabilities are those of s = 0."""
    words, s = exact.vocabulary, 0.4
    counts = np.random.default_rng(3).integers(1, 50, (4, WORDS))
    exact.vocabulary = Vocabulary(words.names, words.counts, counts, repeats=int(counts[0].sum()))
    before = read(exact, 1)
    longer = Batch.of_words(torch.cat([before.tokens.expand(len(ALL), -1, -1), ALL[:, None]], 1))
    log_p = -surprisals(exact, longer).events[:, -1]
    smooth = torch.from_numpy(counts + SMOOTHING).double()
    frequency = (smooth / smooth.sum(1, keepdim=True)).log()
    worth = log_p - s * sum(frequency[slot][ALL[:, slot]] for slot in range(4))
    possible = (ALL[:, 0] != words.missing) & ALL.ne(words.unknown).all(1)
    expected: dict[int, int] = {}  # the best event of each head
    for place in worth.masked_fill(~possible, -torch.inf).argsort(descending=True).tolist():
        expected.setdefault(int(ALL[place, 0]), place)
    heads = len(set(ALL[possible, 0].tolist()))
    found = search(exact, Rollout.after(exact, before), torch.full((1, 4), -1), WORDS**4, s)
    best = torch.tensor(list(expected.values())[:heads])
    assert torch.equal(found.tokens[0, :heads], ALL[best])
    torch.testing.assert_close(found.log_p[0, :heads], log_p[best])
    rest = found.log_p[0, heads:]
    assert torch.isfinite(rest).sum() == possible.sum() - heads


def test_the_default_ranks_texts_by_specificity_and_logs_by_probability() -> None:
    log, exact = toy_language_model("rnnlm"), toy_language_model("rnnlm")
    words, exact.slots = exact.vocabulary, SLOTS
    counts = np.random.default_rng(3).integers(1, 50, (4, WORDS))
    device = exact.device
    assert frequency_term(exact, None, device) is None  # nothing was counted
    with pytest.raises(UserError, match="specificity"):
        frequency_term(exact, 0.5, device)
    exact.vocabulary = log.vocabulary = Vocabulary(words.names, words.counts, counts)
    assert frequency_term(log, None, device) is None
    of_text = frequency_term(exact, None, device)
    assert of_text is not None
    torch.testing.assert_close(of_text, frequency_term(exact, SPECIFICITY, device))
    assert frequency_term(exact, 0.0, device) is None


def test_arguments_that_the_corpus_hardly_repeats_are_not_repeated_and_the_rest_is_as_likely(
    exact: LanguageModel,
) -> None:
    before = read(exact, 1)
    free, told = torch.full((1, 4), -1), torch.tensor([[-1, 4, 4, -1]])
    every = search(exact, Rollout.after(exact, before), free, beam=WORDS**4)
    words = exact.vocabulary
    exact.vocabulary = Vocabulary(words.names, words.counts, np.ones((4, WORDS), np.int64), repeats=0)
    found = search(exact, Rollout.after(exact, before), free, beam=WORDS**4)
    some = torch.isfinite(every.log_p[0])
    _, *arguments = every.tokens[0, some].unbind(1)
    distinct = torch.ones(len(arguments[0]), dtype=torch.bool)
    for one, other in itertools.combinations(arguments, 2):
        distinct &= (one != other) | (one == words.missing)
    assert not distinct.all()
    kept = torch.isfinite(found.log_p[0])
    torch.testing.assert_close(found.log_p[0, kept], every.log_p[0, some][distinct])
    assert torch.equal(found.tokens[0, kept], every.tokens[0, some][distinct])
    # Words that are given may repeat each other.
    given = search(exact, Rollout.after(exact, before), told, beam=WORDS**2)
    assert torch.isfinite(given.log_p[0, 0])


def test_the_next_frame_of_the_exact_model_is_what_it_foresees_and_may_be_given() -> None:
    model = toy_exact()
    (document,) = named_documents(toy_documents([3]), model)
    (free,) = next_events(model, [document], top=FRAMES)
    batch = to_batch(model, [document])
    rollout = Rollout.after(model, batch)
    assert rollout.log_frames is not None
    log_p = rollout.log_frames[0]
    by_name = {frame.name: frame.probability for frame in free.frames}
    assert [by_name[name] for name in model.frames.names] == pytest.approx(log_p.exp().tolist())
    # The law of total probability: heads are a mixture over the frames that could be given.
    heads = head_log_probs(model, rollout)[0].exp()
    given = [head_log_probs(model, Rollout.after(model, batch, frame))[0].exp() for frame in range(FRAMES)]
    torch.testing.assert_close(log_p.exp() @ torch.stack(given), heads)
    (told,) = next_events(model, [document], given={"frame": "Frame1"})
    assert told.given_probability == pytest.approx(by_name["Frame1"])
    assert (told.frames[0].name, told.frames[0].probability) == ("Frame1", 1)


@torch.no_grad()
def test_the_next_frame_and_head_of_ssdvae_follow_from_distributions_that_are_rolled_out() -> None:
    """Each step of the encoder goes on from the mean embedding of the frames of the step before."""
    model, events = toy_ssdvae(), 2
    before, encoder = read(model, events), model.encoder
    hidden = encoder.gru.at_words(model.word_reader(before.tokens), before.mask)[0]
    embedding, memory = encoder.first(hidden.mean(0)), []
    for _ in range(events + 1):
        query = encoder.w_in(embedding)
        context = (hidden @ query / len(query) ** 0.5).softmax(0) @ hidden
        q = encoder.w_out(query.tanh() + context.tanh()).softmax(0)
        embedding = q @ model.frame_embedding
        memory.append(embedding)
    rollout = Rollout.after(model, before)
    given = Rollout.after(model, before, frame=1)  # p(frame) is from before one is given
    for found in (rollout, given):
        assert found.log_frames is not None
        torch.testing.assert_close(found.log_frames[0], q.log())
    torch.testing.assert_close(rollout.latents.vectors[0], torch.stack(memory))
    latents = model.latents(LatentQuery.roll_out(before, 1))
    vectors = replace(latents, vectors=torch.stack(memory)[None])
    log_p, _ = model.next_word(model.start(before, vectors), vectors, None, 0)
    torch.testing.assert_close(head_log_probs(model, rollout), log_p)
    nothing = before.first(0)
    uniform = Rollout.after(model, nothing).log_frames
    assert uniform is not None
    assert uniform[0].exp().tolist() == pytest.approx([1 / FRAMES] * FRAMES)


def test_a_stream_gives_what_one_by_one_gives(model: LanguageModel) -> None:
    documents = [*some_documents(model, [2, 1, 2]), Document("none", ())]
    together = list(next_events(model, documents, beam=7, top=3))
    assert [answer.id for answer in together] == [document.id for document in documents]
    for document, found in zip(documents, together, strict=True):
        (alone,) = next_events(model, [document], beam=7, top=3)
        assert [str(e.event) for e in found.events] == [str(e.event) for e in alone.events]
        assert chances(found.events) == pytest.approx(chances(alone.events))
        assert found.exact == (not model.conditions_on_targets)
        assert ("estimate" in found.note) == model.conditions_on_targets
        assert found.read == len(document.events)
        assert bool(found.frames) == (as_frame_model(model) is not None)
        assert chances(found.events) == sorted(chances(found.events), reverse=True)
        assert len(list(found.rows())) == len(found.frames) + len(found.heads) + len(found.events)


def chances(events: tuple[NextEvent, ...]) -> list[float]:
    return [event.probability for event in events]


def test_what_is_given_holds_in_every_event() -> None:
    model = toy_model("ssdvae-exact")
    documents = named_documents(toy_documents([2]), model)
    (told,) = next_events(model, documents, given={"slot1": "word3", "slot3": "-"}, top=4)
    assert {e.event.padded(4)[1::2] for e in told.events} == {("word3", "None")}
    assert not told.exact
    assert "beam" in told.note
    assert sum(frame.probability for frame in told.frames) <= 1 + 1e-9
    (head,) = next_events(model, documents, given={"slot0": "WORD3"}, top=4)
    assert head.exact
    assert head.heads[0].name == "word3"
    assert head.heads[0].probability == pytest.approx(1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"objct": "word1"}, "no slot 'objct'; there are: frame, slot0"),
        ({"slot2": "wrd1"}, "did you mean word1"),
        ({"frame": "Fram1"}, "did you mean Frame1"),
    ],
)
def test_what_cannot_be_given_is_refused(given: dict[str, str], said: str) -> None:
    model = toy_model("ssdvae-exact")
    with pytest.raises(UserError, match=said):
        list(next_events(model, named_documents(toy_documents([2]), model), given=given))


def test_a_frame_cannot_be_given_to_a_model_without() -> None:
    model = toy_model("rnnlm")
    with pytest.raises(UserError, match="no frames that could be given"):
        list(next_events(model, named_documents(toy_documents([2]), model), given={"frame": "Frame1"}))
