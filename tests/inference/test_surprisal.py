"""Surprise: nats of slots and events sum to the document's, and depend on nothing that comes later."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ssdvae
from ssdvae.data.batches import Batch, collate
from ssdvae.data.events import Document, Event
from ssdvae.evaluation.cloze import ClozeTask, score_cloze
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.inference.inputs import to_numbers
from ssdvae.inference.surprisal import kind_of, score_documents, split_quantiles, surprisals
from ssdvae.io.errors import DataError, UserError
from ssdvae.models.base import LanguageModel, as_frame_model
from ssdvae.models.latents import LatentQuery
from ssdvae.models.quantiles import TYPICAL, percentile
from tests.inference.variants import VARIANTS, some_documents
from tests.models.test_base import batch_of, variant_id
from tests.toys import (
    WORDS,
    named_documents,
    noise,
    toy_batch,
    toy_documents,
    toy_language_model,
    toy_model,
    toy_ssdvae,
)

LENGTHS = [3, 1, 0, 2]


@pytest.fixture(params=VARIANTS, ids=variant_id)
def model(request: pytest.FixtureRequest) -> LanguageModel:
    return toy_language_model(**request.param)


def test_events_of_an_exact_model_sum_to_its_document(model: LanguageModel) -> None:
    """And slots to their event, whatever the model."""
    batch = batch_of(model, [3, 3], observe=0)
    found = surprisals(model, batch)
    assert found.kind == kind_of(model) == ("estimate" if model.conditions_on_targets else "exact")
    torch.testing.assert_close(found.slots.sum(-1), found.events)
    if found.kind == "exact":
        torch.testing.assert_close(-found.events.sum(1), model.bounds(batch, 3, noise(2))[-1])


def test_an_event_is_scored_as_the_cloze_scores_it_after_those_before(model: LanguageModel) -> None:
    """Its latent variables are rolled out from the events before it, none of which is looked at again."""
    batch = batch_of(model, [3, 3, 3], observe=0)
    found = surprisals(model, batch)
    for event in range(3):
        seed, option = batch.first(event), batch.tokens[:, None, event : event + 1]
        latents = model.latents(LatentQuery.roll_out(seed, 1))
        expected = model.continuations(seed, latents, option)[:, 0]
        torch.testing.assert_close(-found.events[:, event], expected)


@pytest.mark.parametrize("name", ["ssdvae", "ssdvae-exact"])
def test_the_second_event_has_the_score_of_the_cloze(name: str) -> None:
    model, seeds, options = toy_language_model(name), toy_batch([1] * 3), toy_batch([1] * 12)
    chosen = options.tokens.view(3, 4, 1, -1)
    first, rest = (x.numpy().astype("int32") for x in (seeds.tokens[:, 0], chosen))
    task = ClozeTask(first, rest)
    scores = score_cloze(model, task, EvaluateOptions(cloze_seeds=2)).scores["nll"]
    for option in range(4):
        documents = Batch.of_words(torch.cat([seeds.tokens, chosen[:, option]], 1))
        found = -surprisals(model, documents).events[:, 1]
        assert found.tolist() == pytest.approx(scores[:, option].tolist())


def test_what_comes_later_changes_nothing(model: LanguageModel) -> None:
    batch = batch_of(model, [3, 3], observe=0)
    before = surprisals(model, batch)
    tokens = batch.tokens.clone()
    tokens[:, 2:] = (tokens[:, 2:] + 1) % WORDS
    after = surprisals(model, dataclasses.replace(batch, tokens=tokens))
    torch.testing.assert_close(after.events[:, :2], before.events[:, :2])
    torch.testing.assert_close(after.slots[:, :2], before.slots[:, :2])
    assert (after.events[:, 2] != before.events[:, 2]).all()


@pytest.mark.parametrize(
    "settings",
    [{"name": "rnnlm", "document_vector": 3}, {"name": "ssdvae"}, {"name": "haqae"}],
    ids=variant_id,
)
def test_an_estimate_is_a_distribution_of_each_word(settings: dict[str, Any]) -> None:
    """Over the last word of all documents."""
    model = toy_language_model(**settings)
    batch = toy_batch([2], observe=0)
    every = batch.rows(torch.zeros(WORDS, dtype=torch.long))
    every.tokens[:, 1, -1] = torch.arange(WORDS)
    found = surprisals(model, every).slots[:, 1, -1]
    assert torch.exp(-found).sum().item() == pytest.approx(1)


def test_a_stream_gives_what_one_by_one_gives(model: LanguageModel) -> None:
    documents = some_documents(model, LENGTHS)
    together = list(score_documents(model, documents, batch=3))
    assert [(d.id, len(d.events)) for d in together] == [
        (d.id, n) for d, n in zip(documents, LENGTHS, strict=True)
    ]
    for document, found in zip(documents, together, strict=True):
        (alone,) = score_documents(model, [document])
        assert [e.nats for e in found.events] == pytest.approx([e.nats for e in alone.events])
        assert found.nats == pytest.approx(sum(event.nats for event in found.events))
        for event in found.events:
            assert sum(event.slots) == pytest.approx(event.nats)
            assert bool(event.frames) == (as_frame_model(model) is not None)


def test_the_percentile_is_the_share_of_less_surprising_ones() -> None:
    model, split = toy_language_model("rnnlm"), toy_documents([3, 2, 4, 1] * 5)
    quantiles = split_quantiles(model, split, "valid", batch=7)
    found = surprisals(model, collate(split, np.arange(len(split))))
    mask = collate(split, np.arange(len(split))).mask
    # First events are compared with first events, and later ones with later ones.
    for place, some in enumerate((slice(0, 1), slice(1, None))):
        events = found.events[:, some][mask[:, some]].numpy()
        for value in events:
            share = 100 * (events < value).mean()
            assert percentile(np.array([value]), quantiles.at(place)[0])[0] == pytest.approx(
                share, abs=100 / len(events) + 1
            )
    documents = named_documents(split, model)
    assert all(d.percentile is None for d in score_documents(model, documents))
    scored = list(score_documents(model, documents, quantiles=quantiles))
    for part in ([d.events[0] for d in scored], [event for d in scored for event in d.events[1:]]):
        ordered = sorted(part, key=lambda event: event.nats)
        assert [e.percentile for e in ordered] == sorted(e.percentile or 0 for e in part)
        assert ordered[-1].percentile == pytest.approx(100, abs=100 / len(part))
    assert {len(event.slot_percentiles or ()) for d in scored for event in d.events} == {4}
    assert sorted(scored, key=lambda d: d.nats / len(d.events)) == sorted(
        scored, key=lambda d: (d.percentile, d.nats / len(d.events))
    )


@pytest.mark.parametrize("name", ["rnnlm", "ssdvae-exact"])
def test_percentiles_depend_neither_on_the_batch_nor_on_the_order(name: str) -> None:
    """Many events are the same one after the same history: their nats differ by the noise of floats."""
    model = toy_language_model(name)
    split = toy_documents([3, 2, 4, 1] * 5)
    documents = named_documents(split, model)
    repeated = [Document(f"{n}", documents[n % 3].events) for n in range(60)] + documents
    rng = np.random.default_rng(0)
    found: dict[tuple[Event, ...], list[tuple[float, ...]]] = {}
    for batch in (1, 2, 7, 64):
        some = [repeated[n] for n in rng.permutation(len(repeated))]
        quantiles = split_quantiles(model, to_numbers(model, some), "valid", batch=batch)
        for scored in score_documents(model, some, batch, quantiles=quantiles):
            key = tuple(event.event for event in scored.events)
            values = [event.percentile for event in scored.events] + [scored.percentile]
            found.setdefault(key, []).append(tuple(value or 0.0 for value in values))
    assert max(map(len, found.values())) > 50
    for percentiles in found.values():
        assert np.ptp(np.array(percentiles), axis=0).max() < 0.2


def test_equal_values_have_the_middle_of_their_ranks() -> None:
    """Also if they are equal only up to spread; a percentile never falls with the value."""
    rng = np.random.default_rng(0)
    values = np.concatenate([np.full(60, 2.0), rng.random(20), 3 + rng.random(20)])
    for spread in (0.0, 1e-5):
        noisy = values + spread * rng.standard_normal(len(values))
        quantiles = np.quantile(noisy, np.linspace(0, 1, 201)).tolist()
        near = 2.0 + spread * rng.standard_normal(50)
        assert percentile(near, quantiles) == pytest.approx(50, abs=1)
        ordered = percentile(np.linspace(-1, 5, 2000), quantiles)
        assert (np.diff(ordered) >= 0).all()
        assert (ordered[0], ordered[-1]) == (0, 100)


def test_what_is_usual_goes_with_the_model(tmp_path: Path) -> None:
    """And is forgotten with other weights."""
    model = toy_language_model("rnnlm")
    model.quantiles = split_quantiles(model, toy_documents([3, 2, 4]), "valid")
    model.save_pretrained(tmp_path / "model")
    kept = ssdvae.load(tmp_path / "model").quantiles
    assert kept is not None
    assert kept.model_copy(update={"weights": ""}) == model.quantiles
    other = toy_model("rnnlm")
    other.save(tmp_path / "model", {})
    assert ssdvae.load(tmp_path / "model").quantiles is None
    (tmp_path / "model" / TYPICAL).write_text('{"split": "valid"}')
    with pytest.raises(DataError, match="found no documents"):
        ssdvae.load(tmp_path / "model")
    for event, message in (
        ([2.0, 1.0], "not in order"),
        ([1.0, 10**400], "at event.2., expected a finite number"),
    ):
        wrong = {"split": "valid", "documents": 1, "kind": "exact", "event": event}
        wrong |= {"document": [1.0, 2.0], "slots": [[1.0, 2.0]]}
        (tmp_path / "model" / TYPICAL).write_text(json.dumps(wrong))
        with pytest.raises(DataError, match=message):
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
