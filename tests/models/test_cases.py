"""Cases of a log: the end is an event like others, and all else does not know of it."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from ssdvae.data.batches import Batch
from ssdvae.data.events import END, Document
from ssdvae.inference.forecast import next_events
from ssdvae.inference.generation import generate
from ssdvae.inference.infill import fill_documents, with_holes
from ssdvae.inference.options import GenerateOptions
from ssdvae.inference.prefixes import Rollout, head_log_probs
from ssdvae.inference.surprisal import score_documents
from ssdvae.models.base import Model
from ssdvae.models.cases import CaseModel, log_ends
from ssdvae.models.registry import MODELS
from tests.inference.variants import some_documents
from tests.toys import WORDS, noise, outputs, toy_batch, toy_model

LEARNING = ["ssdvae-exact", "rnnlm", "rnnlm-role"]


def toy_cases(name: str, **settings: Any) -> CaseModel:
    """A model that has learned where cases end."""
    model = toy_model(name, **settings)
    assert isinstance(model, CaseModel)
    model.learn_cases(ends=True, times=True)
    assert model.end is not None
    torch.nn.init.normal_(model.end.weight, std=0.4)
    return model.double().eval()


def ended(lengths: list[int], slots: int = 4) -> Batch:
    batch = toy_batch(lengths, slots=slots)
    last = torch.arange(batch.mask.shape[1]) == torch.tensor(lengths)[:, None] - 1
    return replace(batch, ends=last)


@pytest.fixture(params=LEARNING)
def model(request: pytest.FixtureRequest) -> CaseModel:
    torch.manual_seed(1)
    return toy_cases(request.param)


def test_which_models_learn_ends() -> None:
    assert [name for name, kind in MODELS.items() if issubclass(kind, CaseModel)] == LEARNING


def test_the_end_and_all_events_sum_to_one(model: CaseModel) -> None:
    read = toy_batch([3, 3], observe=0)
    ends = log_ends(model, read)
    assert ends is not None
    heads = head_log_probs(model, Rollout.after(model, read)) + ends[:, -1, :1]
    torch.testing.assert_close(heads.exp().sum(1) + ends[:, -1, 1].exp(), torch.ones(2).double())


def test_the_loss_is_that_of_the_case_and_of_its_end(model: CaseModel) -> None:
    batch = ended([4, 1, 3])
    ends = log_ends(model, batch)
    assert ends is not None
    expected = torch.stack(
        [ends[0, :3, 0].sum() + ends[0, 3, 1], ends[1, 0, 1], ends[2, :2, 0].sum() + ends[2, 2, 1]]
    )
    plain = model(replace(batch, ends=None), noise(3)).per_document
    torch.testing.assert_close(model(batch, noise(3)).per_document, plain - expected)


def test_what_is_cut_off_does_not_end(model: CaseModel) -> None:
    batch = ended([4, 2, 3]).first(2)
    ends = log_ends(model, batch)
    assert ends is not None
    assert batch.ends is not None
    assert batch.ends.any(1).tolist() == [False, True, False]
    plain = model(replace(batch, ends=None), noise(3)).per_document
    expected = ends[:, 0, 0] + ends[:, 1, 1] * torch.tensor([0.0, 1, 0])
    torch.testing.assert_close(model(batch, noise(3)).per_document, plain - expected)


def test_words_frames_and_bounds_do_not_know_of_ends(model: CaseModel) -> None:
    batch = ended([4, 1, 3])
    mine = {k: v for k, v in outputs(model, batch).items() if k not in ("loss", "end")}
    plain = outputs(model, replace(batch, ends=None))
    assert all(torch.equal(value, plain[name]) for name, value in mine.items())


def test_ends_are_saved_and_read(model: CaseModel, tmp_path: Path) -> None:
    model.save(tmp_path, {})
    found, batch = Model.read(tmp_path).double(), toy_batch([3], observe=0)
    mine, theirs = log_ends(model, batch), log_ends(found, batch)
    assert mine is not None
    assert theirs is not None
    torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)  # saved in single precision


# Answers


def test_next_tells_whether_the_case_ends(model: CaseModel) -> None:
    documents = some_documents(model, [3, 1])
    for document, found in zip(documents, next_events(model, documents, top=WORDS, beam=20), strict=True):
        assert found.end_probability is not None
        assert sum(head.probability for head in found.heads) + found.end_probability == pytest.approx(1)
        assert found.to_record()["end_probability"] == pytest.approx(found.end_probability, abs=1e-6)
        assert [row["kind"] for row in found.rows()].count("end") == 1
        event = found.events[0]
        given = {model.slots[0]: event.event.head}
        (known,) = next_events(model, [document], given)
        assert known.end_probability is None
        head = next(h for h in found.heads if h.name == event.event.head)
        assert known.given_probability == pytest.approx(head.probability)
    (start,) = next_events(model, [Document("", ())])
    assert start.end_probability is None  # a case has an event


def test_the_end_is_scored_as_an_event(model: CaseModel) -> None:
    documents = some_documents(model, [3, 1])
    closed = list(score_documents(model, documents))
    running = list(score_documents(model, documents, open=True))
    for document, whole, part in zip(documents, closed, running, strict=True):
        assert whole.events[-1].event.head == END
        assert [e.nats for e in whole.events[:-1]] == [e.nats for e in part.events]
        for place, scored in enumerate(whole.events[1:], start=1):
            (before,) = next_events(model, [replace(document, events=document.events[:place])], beam=5)
            assert before.end_probability is not None
            if scored.event.head == END:
                assert scored.nats == pytest.approx(-torch.tensor(before.end_probability).log().item())


def test_scripts_stop_where_the_case_ends(model: CaseModel) -> None:
    assert model.end is not None
    (document,) = some_documents(model, [2])
    torch.nn.init.constant_(model.end.weight, 0)
    for method in ("sample", "greedy", "beam"):
        how = GenerateOptions(method=method, events=3, scripts=3)
        torch.nn.init.constant_(model.end.bias, 30)
        scripts = generate(model, how, seed_events=document.events)
        # A beam has room for what is unlikely.
        assert all(len(s.events) == 2 and s.ended for s in scripts[: 1 if method == "beam" else None])
        torch.nn.init.constant_(model.end.bias, -30)
        scripts = generate(model, how, seed_events=document.events)
        assert all(len(s.events) == 5 and not s.ended for s in scripts[: 1 if method == "beam" else None])


def test_the_probability_of_a_script_is_that_of_its_score(model: CaseModel) -> None:
    (document,) = some_documents(model, [1])
    how = GenerateOptions(events=2, scripts=20, top_p=1)
    scripts = generate(model, how, seed_events=document.events)
    assert len({script.ended for script in scripts}) == 2
    for script in scripts:
        whole = Document("", tuple(event.event for event in script.events))
        (scored,) = score_documents(model, [whole], open=not script.ended)
        assert script.log_prob == pytest.approx(-sum(event.nats for event in scored.events[1:]))


@pytest.mark.parametrize("running", [False, True])
def test_filling_is_weighted_by_the_end(model: CaseModel, running: bool) -> None:
    (document,) = some_documents(model, [3])
    events = [document.events[0], None, document.events[2]]
    holed = Document("", tuple(with_holes(events)))
    (filled,) = fill_documents(model, [holed], top=4, beam=50, open=running)
    logs = []
    for filling in filled.holes[0].fillings:
        whole = Document("", (document.events[0], filling.event, document.events[2]))
        (scored,) = score_documents(model, [whole], open=running)
        logs.append(-scored.nats)
    shares = [filling.probability for filling in filled.holes[0].fillings]
    for (a, p), (b, q) in itertools.pairwise(zip(logs, shares, strict=True)):
        assert a - b == pytest.approx(torch.tensor(p / q).log().item(), abs=1e-5)
