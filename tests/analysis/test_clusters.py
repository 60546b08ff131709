"""The soft clusters, against the paper's formulas taken one word and one event at a time."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import normalized_mutual_info_score

from ssdvae.analysis.words import Clusters
from ssdvae.data.batches import collate
from ssdvae.data.corpus import Documents
from ssdvae.io.errors import UserError
from ssdvae.models.ssdvae import SSDVAE
from tests.toys import FRAMES, WORDS, accumulate, toy_documents, toy_model, toy_ssdvae

LENGTHS = [3, 1, 4, 2, 2]


def by_hand(model: SSDVAE, documents: Documents) -> tuple[dict[int, list[list[float]]], ...]:
    """β_enc of every occurrence of each word, and β_dec of every event by its frame, by the definitions."""
    enc: dict[int, list[list[float]]] = {}
    dec: dict[int, list[list[float]]] = {}
    w_out, w_out_hat = model.encoder.w_out.weight.tolist(), model.decoder.output.linear.weight.tolist()
    for row in range(len(documents)):
        batch = collate(documents, np.array([row]))
        hidden = model.encoder.gru.at_words(model.word_reader(batch.tokens), batch.mask)[0].tanh().tolist()
        for word, state in zip(batch.tokens.flatten().tolist(), hidden, strict=True):
            scores = [sum(w * h for w, h in zip(line, state, strict=True)) for line in w_out]
            enc.setdefault(word, []).append(scores)
        q = model.posterior(batch).log_q[0].exp().tolist()
        for posterior in q:
            columns = zip(*model.frame_embedding.tolist(), strict=True)
            memory = [np.tanh(sum(p * e for p, e in zip(posterior, c, strict=True))) for c in columns]
            scores = [sum(w * m for w, m in zip(line, memory, strict=True)) for line in w_out_hat]
            dec.setdefault(posterior.index(max(posterior)), []).append(scores)
    return enc, dec


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_clusters_are_the_means_of_beta(batch: int) -> None:
    model, documents = toy_ssdvae(), toy_documents(LENGTHS)
    found = accumulate(Clusters(model), model, documents, batch)
    for table, counts, expected in zip(
        (found.frames_given_tokens, found.tokens_given_frames),
        (found.word_counts, found.frame_counts),
        by_hand(model, documents),
        strict=True,
    ):
        for number, line in enumerate(table):
            assert counts[number] == len(expected.get(number, []))
            if number in expected:
                np.testing.assert_allclose(line, np.mean(expected[number], 0), rtol=1e-5, atol=1e-6)
            else:
                assert np.isnan(line).all()


def test_the_bias_of_the_output_layers_is_not_in_the_clusters() -> None:
    model, documents = toy_ssdvae(), toy_documents(LENGTHS)
    before = accumulate(Clusters(model), model, documents)
    with torch.no_grad():
        model.decoder.output.linear.bias.add_(torch.randn(WORDS))
        model.encoder.w_out.bias.add_(1)  # the same for all frames: which one is inferred does not change
    after = accumulate(Clusters(model), model, documents)
    np.testing.assert_allclose(after.frames_given_tokens, before.frames_given_tokens, rtol=1e-6)
    np.testing.assert_allclose(after.tokens_given_frames, before.tokens_given_frames, rtol=1e-6)


def test_top_frames_and_words_are_the_highest_means() -> None:
    model = toy_ssdvae()
    found = accumulate(Clusters(model), model, toy_documents(LENGTHS))
    word = int(found.word_counts.argmax())
    names = [name for name, _ in found.top_frames(model.vocabulary.name(word), FRAMES)]
    order = np.argsort(-found.frames_given_tokens[word])
    assert names == [model.frames.name(int(f)) for f in order]
    frame = int(found.frame_counts.argmax())
    (best, score), *rest = found.top_words(model.frames.name(frame), 4)
    assert len(rest) == 3
    assert score == found.tokens_given_frames[frame].max()
    assert best == model.vocabulary.name(int(found.tokens_given_frames[frame].argmax()))


def test_what_does_not_occur_or_is_not_known_is_refused() -> None:
    model = toy_ssdvae()
    documents = toy_documents([1])
    found = accumulate(Clusters(model), model, documents)
    absent = next(n for n in model.vocabulary.names if not found.word_counts[model.vocabulary.id(n)])
    with pytest.raises(UserError, match="does not occur"):
        found.top_frames(absent)
    never = next(f for f in range(FRAMES) if not found.frame_counts[f])
    with pytest.raises(UserError, match="inferred as"):
        found.top_words(model.frames.name(never))
    with pytest.raises(UserError, match="did you mean Frame"):
        found.top_words("frame")
    with pytest.raises(UserError, match=r"no word 'xyzzy'$"):
        found.top_frames("xyzzy")


def with_confusion(confusion: list[list[int]]) -> Clusters:
    found = Clusters(toy_ssdvae())
    found.confusion = np.array(confusion)
    return found


def test_purity_and_nmi() -> None:
    perfect = with_confusion([[0, 4, 0], [0, 0, 2], [3, 0, 0]])
    assert perfect.purity() == 1  # the names of the clusters do not matter
    assert perfect.nmi() == pytest.approx(1)
    independent = with_confusion([[2, 2], [4, 4]])
    assert independent.purity() == pytest.approx(8 / 12)
    assert independent.nmi() == pytest.approx(0)
    confusion = np.random.default_rng(0).integers(0, 5, (4, 4))
    known, inferred = (np.repeat(side.ravel(), confusion.ravel()) for side in np.indices((4, 4)))
    mixed = with_confusion(confusion.tolist())
    assert mixed.nmi() == pytest.approx(normalized_mutual_info_score(known, inferred))
    majority = sum(np.bincount(known[inferred == i]).max() for i in range(4))
    assert mixed.purity() == pytest.approx(majority / len(known))
    assert with_confusion([[0, 0], [0, 0]]).purity() is with_confusion([[0]]).nmi() is None


def test_purity_counts_events_with_a_known_frame_and_looks_at_no_other() -> None:
    model, documents = toy_ssdvae(), toy_documents(LENGTHS)
    found = accumulate(Clusters(model), model, documents)
    expected = np.zeros((FRAMES, FRAMES))
    for row, part in enumerate(documents.parts()):
        inferred = model.posterior(collate(documents, np.array([row]))).value[0].tolist()
        for known, guess in zip(documents.frames[part], inferred, strict=True):
            if known >= 0:
                expected[known, guess] += 1
    np.testing.assert_array_equal(found.confusion, expected)
    blind = dataclasses.replace(documents, frames=np.full_like(documents.frames, -1))
    assert accumulate(Clusters(model), model, blind).purity() is None


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("rnnlm", {}, "no frames"),
        ("haqae", {}, "not frames"),
        ("rnnlm-classifier", {}, "no clusters"),
        ("ssdvae-exact", {}, "no clusters"),
        ("ssdvae", {"attention": "concatenation"}, "no clusters"),
    ],
)
def test_models_without_clusters_say_so(name: str, settings: dict[str, Any], message: str) -> None:
    model = toy_model(name, **settings)
    with pytest.raises(UserError, match=message):
        accumulate(Clusters(model), model, toy_documents(LENGTHS))
