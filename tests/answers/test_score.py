"""Surprise: nats of slots and events sum to the document's, and depend on nothing that comes later."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch

import ssdvae
from ssdvae.answers.score import kind_of, nats, score_documents, typical_of
from ssdvae.data.batches import Noise, collate, generator
from ssdvae.errors import DataError, UserError
from ssdvae.models.base import Model
from ssdvae.models.typical import TYPICAL, Typical, percentile
from tests.answers.asked import ASKED, some_documents
from tests.models.test_base import batch_of, variant_id
from tests.toys import WORDS, named_documents, toy_batch, toy_documents, toy_model, toy_ssdvae

LENGTHS = [3, 1, 0, 2]


@pytest.fixture(params=ASKED, ids=variant_id)
def model(request: pytest.FixtureRequest) -> Model:
    return toy_model(**request.param)


def test_events_sum_to_what_the_model_says_of_the_document(model: Model) -> None:
    """log p where the model is exact, else its bound; a model that reads ahead has neither."""
    batch = batch_of(model, [3, 3], observe=0)
    found = nats(model, batch, samples=3)
    assert found.kind == kind_of(model)
    if found.kind == "estimate":
        assert not model.has_bound
        return
    noise = Noise(generator(1, "score"), len(batch), alike=True)
    torch.testing.assert_close(-found.events.sum(1), model.bounds(batch, 3, noise)[-1])
    if found.kind == "exact":
        torch.testing.assert_close(found.slots.sum(-1), found.events)


def test_what_comes_later_changes_nothing(model: Model) -> None:
    batch = batch_of(model, [3, 3], observe=0)
    before = nats(model, batch, samples=2)
    tokens = batch.tokens.clone()
    tokens[:, 2:] = (tokens[:, 2:] + 1) % WORDS
    after = nats(model, dataclasses.replace(batch, tokens=tokens), samples=2)
    torch.testing.assert_close(after.events[:, :2], before.events[:, :2])
    torch.testing.assert_close(after.slots[:, :2], before.slots[:, :2])
    assert (after.events[:, 2] != before.events[:, 2]).all()


def test_a_model_that_foresees_gives_each_word_a_probability() -> None:
    """Without a bound, what is foreseen is still a distribution: over the last word of all documents."""
    model = toy_model("rnnlm", document_vector=3)
    batch = toy_batch([2], observe=0)
    every = batch.rows(torch.zeros(WORDS, dtype=torch.long))
    every.tokens[:, 1, -1] = torch.arange(WORDS)
    found = nats(model, every).slots[:, 1, -1]
    assert torch.exp(-found).sum().item() == pytest.approx(1)


def test_a_stream_gives_what_one_by_one_gives(model: Model) -> None:
    documents = some_documents(model, LENGTHS)
    together = list(score_documents(model, documents, batch=3, samples=2))
    assert [(d.id, len(d.events)) for d in together] == [
        (d.id, n) for d, n in zip(documents, LENGTHS, strict=True)
    ]
    for document, found in zip(documents, together, strict=True):
        (alone,) = score_documents(model, [document], samples=2)
        assert [e.nats for e in found.events] == pytest.approx([e.nats for e in alone.events])
        assert found.nats == pytest.approx(sum(event.nats for event in found.events))
        for event in found.events:
            assert event.latent_nats == pytest.approx(event.nats - sum(event.slots))
            assert bool(event.frames) == model.infers_frames


def test_the_percentile_is_the_share_of_less_surprising_ones() -> None:
    model, split = toy_model("rnnlm"), toy_documents([3, 2, 4, 1] * 5)
    typical = typical_of(model, split, "valid", batch=7)
    found = nats(model, collate(split, np.arange(len(split))))
    mask = collate(split, np.arange(len(split))).mask
    events = found.events[mask].numpy()
    for value in events:
        share = 100 * (events < value).mean()
        assert percentile(np.array([value]), typical.event)[0] == pytest.approx(
            share, abs=100 / len(events) + 1
        )
    documents = named_documents(split, model)
    assert all(d.percentile is None for d in score_documents(model, documents))
    scored = list(score_documents(model, documents, typical=typical))
    most = max((event for d in scored for event in d.events), key=lambda event: event.nats)
    assert most.percentile == 100
    assert {len(event.slot_percentiles or ()) for d in scored for event in d.events} == {4}
    assert sorted(scored, key=lambda d: d.nats / len(d.events)) == sorted(
        scored, key=lambda d: (d.percentile, d.nats / len(d.events))
    )


def test_what_is_usual_goes_with_the_model(tmp_path: Path) -> None:
    """And is forgotten with other weights."""
    model = toy_model("rnnlm")
    model.typical = typical_of(model, toy_documents([3, 2, 4]), "valid")
    model.save_pretrained(tmp_path / "model")
    kept = ssdvae.load(tmp_path / "model").typical
    assert kept is not None
    assert dataclasses.replace(kept, weights="") == model.typical
    other = toy_model("rnnlm")
    other.save(tmp_path / "model", {})
    assert ssdvae.load(tmp_path / "model").typical is None
    (tmp_path / "model" / TYPICAL).write_text('{"split": "valid"}')
    with pytest.raises(DataError, match="found no documents"):
        ssdvae.load(tmp_path / "model")
    Typical("valid", 1, "exact", [2.0, 1.0], [1.0, 2.0], [[1.0, 2.0]]).write(tmp_path / "model")
    with pytest.raises(DataError, match="not in order"):
        ssdvae.load(tmp_path / "model")


def test_a_model_that_gives_no_numbers_or_no_words_is_refused() -> None:
    model = toy_ssdvae()
    for parameter in model.parameters():
        parameter.data.fill_(1e300)
    with pytest.raises(UserError, match="not finite: its training has diverged"):
        list(score_documents(model, named_documents(toy_documents([3]), model)))
    silent = toy_model("rnnlm-classifier")
    documents = named_documents(toy_documents([3]), silent)
    with pytest.raises(UserError, match="gives words no probability"):
        list(score_documents(silent, documents))
