"""Vectors of events and documents."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from ssdvae.data.events import Document, Event
from ssdvae.inference.embedding import embed, encode, vector_width
from ssdvae.io.errors import UserError
from ssdvae.models.base import Model
from tests.inference.variants import VARIANTS, some_documents
from tests.models.test_base import variant_id
from tests.toys import named_documents, toy_documents, toy_model

LENGTHS = [3, 1, 0, 5, 2]


@pytest.fixture(params=VARIANTS, ids=variant_id)
def model(request: pytest.FixtureRequest) -> Model:
    return toy_model(**request.param)


def test_a_vector_does_not_depend_on_the_batch(model: Model) -> None:
    documents = some_documents(model, LENGTHS)
    alone = [encode(model, document) for document in documents]
    for batch in (1, 2, 100):
        assert np.allclose(encode(model, documents, batch=batch), alone, atol=1e-6)
    lengths = np.linalg.norm(alone, axis=1)
    assert lengths == pytest.approx([float(n > 0) for n in LENGTHS], abs=1e-6)


def test_events_are_given_as_people_write_them() -> None:
    model = toy_model("rnnlm")
    forms: list[Any] = [Event("word1", "word2"), {"slot0": "word1", "slot1": "word2"}, "word1 word2"]
    first, *others = encode(model, forms)
    assert all(np.array_equal(first, other) for other in others)
    assert np.array_equal(encode(model, forms[2]), first)
    assert np.array_equal(encode(model, [[forms[0]]])[0], first)
    assert np.allclose(encode(model, {"events": forms[:1]}), first)
    assert encode(model, []).shape == (0, vector_width(model))
    with pytest.raises(UserError, match="input 2: found 3"):
        encode(model, ["word1", 3])


def test_a_document_is_the_mean_of_its_events_which_read_those_before() -> None:
    model = toy_model("rnnlm")
    (document,) = named_documents(toy_documents([4]), model)
    (found,) = embed(model, [document], normalize=False)
    whole, events = found.vector, found.events
    assert np.allclose(events.mean(0), whole, atol=1e-6)
    (other,) = embed(model, [Document("a", document.events[2:3])], normalize=False)
    alone = other.events
    width = 2 * model.word_reader.words.embedding_dim
    assert np.allclose(alone[0, :width], events[2, :width], atol=1e-6)
    assert not np.allclose(alone[0, width:], events[2, width:], atol=1e-3)


def test_the_product_knows_no_order_and_the_sum_knows_the_head() -> None:
    model = toy_model("rnnlm")
    vectors = encode(model, [" ".join(words) for words in permutations(["word1", "word2", "word3"])])
    width = model.word_reader.words.embedding_dim
    assert np.allclose(vectors[:, :width], vectors[0, :width], atol=1e-6)
    same_head, other_head = vectors[1, width : 2 * width], vectors[2, width : 2 * width]
    assert np.allclose(same_head, vectors[0, width : 2 * width], atol=1e-6)
    assert not np.allclose(other_head, vectors[0, width : 2 * width], atol=1e-3)
    assert not np.allclose(vectors[1], vectors[0], atol=1e-3)
