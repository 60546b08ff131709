"""What comes next: distributions that sum to one, and masses that are those of the same event scored."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch

from ssdvae.answers.next_events import NextEvent, foresee, head_log_probs, next_events
from ssdvae.answers.score import nats
from ssdvae.answers.search import search
from ssdvae.data.batches import Batch, Noise
from ssdvae.data.events import Document
from ssdvae.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.inputs import to_batch
from ssdvae.models.latent import categorical
from ssdvae.models.plan import PlanRequest
from tests.answers.asked import ASKED, some_documents
from tests.models.test_base import variant_id
from tests.toys import FRAMES, WORDS, named_documents, noise, toy_documents, toy_model, toy_ssdvae

EXACT: list[dict[str, Any]] = [{"name": "rnnlm", "tied": True}, {"name": "planner", "mixture": "event"}]
ALL = torch.tensor(list(itertools.product(range(WORDS), repeat=4)))


@pytest.fixture(params=ASKED, ids=variant_id)
def model(request: pytest.FixtureRequest) -> Model:
    return toy_model(**request.param)


@pytest.fixture(params=EXACT, ids=variant_id)
def exact(request: pytest.FixtureRequest) -> Model:
    return toy_model(**request.param)


def read(model: Model, events: int) -> Batch:
    (document,) = some_documents(model, [max(1, events)])
    return to_batch(model, [replace(document, events=document.events[:events])])


@pytest.mark.parametrize("events", [0, 2])
def test_frames_and_heads_are_distributions(model: Model, events: int) -> None:
    ahead = foresee(model, read(model, events), samples=5)
    assert ahead.log_weights.exp().sum(1).item() == pytest.approx(1)
    assert head_log_probs(model, ahead).exp().sum().item() == pytest.approx(1)
    assert (ahead.log_frames is not None) == model.infers_frames
    if ahead.log_frames is not None:
        assert ahead.log_frames.exp().sum().item() == pytest.approx(1)


@pytest.mark.parametrize("events", [0, 2])
def test_masses_of_an_exact_model_are_those_of_all_events(exact: Model, events: int) -> None:
    """Enumeration: every event after the same words; the beam finds the likeliest, heads are its sums."""
    before = read(exact, events)
    longer = Batch.of_words(torch.cat([before.tokens.expand(len(ALL), -1, -1), ALL[:, None]], 1))
    mass = torch.exp(-nats(exact, longer).events[:, -1])
    assert mass.sum().item() == pytest.approx(1)
    ahead = foresee(exact, before)
    heads = torch.zeros(WORDS, dtype=torch.float64).index_add(0, ALL[:, 0], mass)
    torch.testing.assert_close(head_log_probs(exact, ahead)[0].exp(), heads)
    free = torch.full((1, 4), -1)
    found = search(exact, ahead, free, beam=WORDS**3)
    possible = (ALL[:, 0] != exact.vocabulary.missing) & ALL.ne(exact.vocabulary.unknown).all(1)
    best = mass.masked_fill(~possible, 0).topk(20)
    torch.testing.assert_close(found.log_p[0, :20].exp(), best.values)
    assert torch.equal(found.tokens[0, :20], ALL[best.indices])
    # What is given: the first slots exactly, later ones by Bayes over all events of the beam.
    for fixed, bayes in ((torch.tensor([[3, 4, -1, -1]]), False), (torch.tensor([[-1, 4, -1, -1]]), True)):
        told = search(exact, ahead, fixed, beam=WORDS**3)
        fits = ((fixed < 0) | ALL.eq(fixed)).all(1)
        assert told.bayes == bayes
        if not bayes:
            assert told.log_fixed.exp().item() == pytest.approx(mass[fits].sum().item())
        shares = mass * fits * possible / told.log_fixed.exp()
        torch.testing.assert_close(told.log_share[0, :5].exp(), shares.topk(5).values)
        assert told.heads.exp().sum().item() == pytest.approx(1)


def test_the_next_frame_of_a_planner_is_what_it_foresees_and_may_be_given() -> None:
    model = toy_model("planner", mixture="event")
    (document,) = named_documents(toy_documents([3]), model)
    (free,) = next_events(model, [document], top=FRAMES)
    batch = to_batch(model, [document])
    log_p = model.next_frame_log_probs(batch.with_another_event())
    assert log_p is not None
    by_name = {frame.name: frame.probability for frame in free.frames}
    assert [by_name[name] for name in model.frames.names] == pytest.approx(log_p[0, -1].exp().tolist())
    # The law of total probability: heads are a mixture over the frames that could be given.
    heads = head_log_probs(model, foresee(model, batch))[0].exp()
    mixed = sum(
        log_p[0, -1, f].exp() * head_log_probs(model, foresee(model, batch, frame=f))[0].exp()
        for f in range(FRAMES)
    )
    torch.testing.assert_close(mixed, heads)
    (told,) = next_events(model, [document], given={"frame": "Frame1"})
    assert told.given_probability == pytest.approx(by_name["Frame1"])
    assert (told.frames[0].name, told.frames[0].probability) == ("Frame1", 1)


@pytest.mark.parametrize("prior", ["markov", "history", "uniform"])
def test_the_estimate_of_ssdvae_comes_near_the_sum_over_all_chains(prior: str) -> None:
    """p(next frame, head | words) over all F^(K + 1) chains; a uniform prior leaves it to the encoder."""
    model = toy_ssdvae(prior=prior, objective="bound", guide="aligned")
    before = read(model, 2)
    ahead = foresee(model, before, samples=500)
    heads = head_log_probs(model, ahead)[0].exp()
    chains = torch.tensor(list(itertools.product(range(FRAMES), repeat=2)))
    weights, nexts, words = [], [], []
    for chain in chains:
        sample = torch.nn.functional.one_hot(chain, FRAMES).double()[None]
        plan = model.plan(PlanRequest.whole(before, Steered(chain.tolist()), noise(1)))
        output = model.word_decoder(model.reader(before.tokens), plan)
        log_p = model.log_probs(before, plan).sum()
        log_p = log_p + (model.prior(sample, output.ends) * sample).sum()
        if model.prior.learned:
            frames = model.prior.next(model.prior.context(sample, output.ends)[:, -1])[0]
        else:
            request = PlanRequest.continuing(before, torch.full((1, 3), -1), categorical, noise(1))
            frames = model.posterior(replace(request, sampler=Steered(chain.tolist()))).logits[0, 2]
            frames = frames.log_softmax(-1)
        for f in range(FRAMES):
            longer = replace(
                plan,
                vectors=torch.cat([plan.vectors, model.frame_embedding[None, f : f + 1]], 1),
                mask=torch.ones(1, 3, dtype=torch.bool),
                frames=None,
                weights=None,
                event=2,
            )
            log_head, _ = model.next_word(model.begin(before, plan), longer, None, 0)
            weights.append(log_p)
            nexts.append(frames[f])
            words.append(log_head[0])
    joint = torch.stack(weights) + torch.stack(nexts)
    expected = (joint.log_softmax(0)[:, None] + torch.stack(words)).logsumexp(0).exp()
    assert (heads - expected).abs().max() < 0.05
    assert ahead.log_frames is not None
    by_frame = joint.view(-1, FRAMES).logsumexp(0).softmax(0)
    assert (ahead.log_frames[0].exp() - by_frame).abs().max() < 0.1


class Steered:
    """A sampler that takes the frames of a chain, and then any."""

    def __init__(self, chain: list[int]) -> None:
        self.left = [*chain]

    def __call__(self, logits: torch.Tensor, noise: Noise) -> torch.Tensor:
        frame = self.left.pop(0) if self.left else 0
        return torch.nn.functional.one_hot(torch.tensor([frame]), FRAMES).double()


def test_a_stream_gives_what_one_by_one_gives(model: Model) -> None:
    documents = [*some_documents(model, [2, 1, 2]), Document("none", ())]
    together = list(next_events(model, documents, beam=7, top=3, samples=3))
    assert [answer.id for answer in together] == [document.id for document in documents]
    for document, found in zip(documents, together, strict=True):
        (alone,) = next_events(model, [document], beam=7, top=3, samples=3)
        assert [str(e.event) for e in found.events] == [str(e.event) for e in alone.events]
        assert chances(found.events) == pytest.approx(chances(alone.events))
        assert found.exact == model.exact
        assert found.read == len(document.events)
        assert bool(found.frames) == model.infers_frames
        assert chances(found.events) == sorted(chances(found.events), reverse=True)
        assert len(list(found.rows())) == len(found.frames) + len(found.heads) + len(found.events)


def chances(events: tuple[NextEvent, ...]) -> list[float]:
    return [event.probability for event in events]


def test_what_is_given_holds_in_every_event() -> None:
    model = toy_model("planner")
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
    model = toy_model("planner")
    with pytest.raises(UserError, match=said):
        list(next_events(model, named_documents(toy_documents([2]), model), given=given))


def test_a_frame_cannot_be_given_to_a_model_without() -> None:
    model = toy_model("rnnlm")
    with pytest.raises(UserError, match="no frames that could be given"):
        list(next_events(model, named_documents(toy_documents([2]), model), given={"frame": "Frame1"}))
