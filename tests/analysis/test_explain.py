"""Attention and transitions, one event and one pair of neighbours at a time; and all of it in one pass."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ssdvae.analysis.explain import explain
from ssdvae.analysis.options import ExplainOptions
from ssdvae.analysis.transitions import Transitions
from ssdvae.data.batches import collate
from ssdvae.data.vocabulary import Inventory
from ssdvae.evaluation.attention import AttentionSummary
from ssdvae.inference.posterior import infer_frames
from ssdvae.io.errors import UserError
from ssdvae.models.base import Attentive, as_frame_model
from ssdvae.models.registry import MODELS
from tests.toys import FRAMES, accumulate, toy_documents, toy_model, toy_ssdvae

LENGTHS = [3, 1, 4, 2, 2]


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_attention_is_summed_event_by_event(batch: int) -> None:
    model, documents = toy_ssdvae(), toy_documents(LENGTHS)
    looks: dict[int, list[tuple[list[float], float, float]]] = {f: [] for f in range(FRAMES)}
    for row, length in enumerate(LENGTHS):
        posterior = model.posterior(collate(documents, np.array([row])))
        assert posterior.attention is not None
        for m in range(length):
            shares = [0.0] * 8
            weights = posterior.attention.weights[0, m].tolist()
            for place, weight in enumerate(weights):
                event, slot = divmod(place, 4)
                shares[slot if event == m else 4 + slot] += weight
            spread = -sum(weight * math.log(weight) for weight in weights)
            looks[int(posterior.value[0, m])].append((shares, spread, math.log(4 * length)))
    summary = accumulate(AttentionSummary(model), model, documents, batch)
    groups = {model.frames.name(f): events for f, events in looks.items()}
    groups["all"] = [event for events in looks.values() for event in events]
    for name, events in groups.items():
        if not events:
            with pytest.raises(UserError, match="inferred as"):
                summary.of(name)
            continue
        look = summary.overall() if name == "all" else summary.of(name)
        shares = np.mean([s for s, _, _ in events], 0)
        assert look.events == len(events)
        assert [*look.own.values(), *look.elsewhere.values()] == pytest.approx(shares.tolist())
        assert look.entropy == pytest.approx(np.mean([e for _, e, _ in events]))
        assert look.most_entropy == pytest.approx(np.mean([m for _, _, m in events]))
        assert look.heads == pytest.approx(shares[0] + shares[4])
        assert look.own_event + sum(look.elsewhere.values()) == pytest.approx(1)
        assert tuple(look.own) == model.slots


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_transitions_are_expected_counts_of_neighbours(batch: int) -> None:
    model, documents = toy_ssdvae(), toy_documents(LENGTHS)
    expected = np.zeros((FRAMES, FRAMES))
    for row, length in enumerate(LENGTHS):
        q = model.posterior(collate(documents, np.array([row]))).log_q[0].exp().tolist()
        for m in range(length - 1):
            for f in range(FRAMES):
                for g in range(FRAMES):
                    expected[f, g] += q[m][f] * q[m + 1][g]
    found = accumulate(Transitions.of(model), model, documents, batch)
    np.testing.assert_allclose(found.counts, expected)
    assert found.counts.sum() == pytest.approx(sum(length - 1 for length in LENGTHS))


def test_links_come_strongest_first_and_rare_ones_not_at_all() -> None:
    counts = np.array([[8.0, 2.0, 0.0], [1.0, 30.0, 0.0], [0.0, 4.0, 0.0]])
    found = Transitions(Inventory(["A", "B", "C"], [1] * 3), counts)
    by_lift = found.strongest(10, "lift", min_count=1.0)
    assert [(link.first, link.second) for link in by_lift] == [
        ("A", "A"),  # 8/10 against 9/45
        ("C", "B"),  # 4/4 against 36/45
        ("B", "B"),  # 30/31
        ("A", "B"),  # 2/10
        ("B", "A"),  # 1/31
    ]
    first = by_lift[0]
    assert (first.count, first.probability, first.lift) == pytest.approx((8, 0.8, 0.8 / 0.2))
    likely = found.strongest(2, "probability", min_count=4.0)
    assert [(link.first, link.second) for link in likely] == [("C", "B"), ("B", "B")]
    assert [link.count for link in found.strongest(2, "count")] == [30, 8]
    assert found.strongest(10, min_count=31.0) == []
    assert np.isnan(Transitions(found.frames, np.zeros((3, 3))).probabilities).all()


@pytest.mark.parametrize("name", MODELS)
def test_every_model_is_explained_as_far_as_it_infers_frames(name: str) -> None:
    model, documents = toy_model(name), toy_documents(LENGTHS)
    settings = ExplainOptions(min_count=0.0, batch=2)
    framed = as_frame_model(model)
    if framed is None:
        with pytest.raises(UserError, match="no frames to look at"):
            explain(model, documents, settings)
        return
    posterior = framed.posterior(collate(documents, np.arange(2)))
    assert (posterior.attention is not None) == isinstance(model, Attentive)
    seen: list[int] = []
    found = explain(model, documents, settings, lambda amount=1, **_: seen.append(amount))
    assert sum(seen) == len(LENGTHS)
    record = found.to_record(settings)
    assert record["transitions"].keys() == {"lift", "probability"}
    assert ("clusters" in record) == (posterior.clusters is not None)
    assert ("attention" in record) == (posterior.attention is not None)
    np.testing.assert_allclose(
        found.transitions.counts, accumulate(Transitions.of(model), model, documents).counts
    )
    if posterior.attention is None:
        with pytest.raises(UserError, match="without attention"):
            accumulate(AttentionSummary(model), model, documents)
    head = model.vocabulary.name(int(documents.tokens[0, 0]))
    named = ExplainOptions(words=head, min_count=0.0)
    assert list(found.to_record(named)["words"]["frames_given_words"]) == [head]


def test_what_is_shown_are_the_names_that_were_given_or_the_most_frequent() -> None:
    model, documents = toy_ssdvae(), toy_documents(LENGTHS)
    found = explain(model, documents)
    assert found.clusters is not None
    one, two = found.to_record(ExplainOptions(rows=2))["words"]["frames_given_words"]
    likeliest = model.frames.name(int(found.clusters.frame_counts.argmax()))
    record = found.to_record(ExplainOptions(words=f"{two}, {one}", frames=likeliest, top=2))
    named, posterior = record["clusters"], record["words"]
    assert list(named["frames_given_tokens"]) == list(posterior["frames_given_words"]) == [two, one]
    assert list(named["tokens_given_frames"]) == list(posterior["words_given_frames"]) == [likeliest]
    assert all(len(top) == 2 for top in named["frames_given_tokens"].values())
    assert all(len(each["frames"]) == 2 for each in posterior["frames_given_words"].values())
    shown = list(found.to_record(ExplainOptions(rows=2))["clusters"]["frames_given_tokens"])
    verbs = found.clusters.slot_counts[:, 0]
    counts = [verbs[model.vocabulary.id(word)] for word in shown]
    words = [n for n in range(len(verbs)) if n not in (model.vocabulary.unknown, model.vocabulary.missing)]
    assert counts == sorted(verbs[words], reverse=True)[:2]


@pytest.mark.parametrize(
    ("name", "refused"),
    [
        ("ssdvae", None),
        ("ssdvae-exact", None),
        ("rnnlm-classifier", None),
        ("rnnlm-role-classifier", None),
        ("rnnlm", "rnnlm has no frames"),
        ("rnnlm-role", "rnnlm-role has no frames"),
        ("haqae", "haqae has latent variables that are not frames"),
    ],
)
def test_frames_are_asked_for_in_vain_only_where_there_are_none(name: str, refused: str | None) -> None:
    model, batch = toy_model(name), collate(toy_documents(LENGTHS), np.arange(2))
    if refused is not None:
        with pytest.raises(UserError, match=refused):
            infer_frames(model, batch)
        return
    posterior = infer_frames(model, batch)
    assert posterior.log_q.shape == (2, 3, len(model.frames))
    np.testing.assert_allclose(posterior.log_q.logsumexp(-1)[batch.mask], 0, atol=1e-12)
    assert not posterior.log_q.requires_grad
