"""What a part is worth: swapped parts are those of other documents, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from ssdvae.analysis.swap import WAYS, swap_parts
from ssdvae.data.batches import Noise, collate, generator
from ssdvae.errors import UserError
from ssdvae.models.base import EventModel
from tests.toys import toy_documents, toy_model, toy_ssdvae

DOCUMENTS = toy_documents([3] * 6)


def log_probs(model: EventModel, rows: list[list[int]]) -> Iterator[float]:
    """log p(words) of each document, asked batch by batch."""
    with torch.no_grad():
        for number, batch in enumerate(rows):
            noise = Noise(generator(1, number), len(batch))
            words = model.eval().word_log_probs(collate(DOCUMENTS, np.array(batch)), noise)
            yield from words.sum((1, 2)).tolist()


def figures(model: EventModel, rows: list[list[int]]) -> dict[str, float]:
    return {str(place): value for place, value in enumerate(log_probs(model, rows))}


BATCHES = [[0, 1], [2, 3, 4], [5]]


def with_vectors() -> list[EventModel]:
    return [toy_ssdvae(document_vector=3), toy_model("rnnlm", document_vector=3)]


@pytest.mark.parametrize("model", with_vectors(), ids=["ssdvae", "rnnlm"])
def test_every_part_can_be_swapped_and_what_is_recorded_is_the_model_as_it_is(model: EventModel) -> None:
    parts = list(model.parts())
    found = list(swap_parts(model, parts, lambda: figures(model, BATCHES)))
    assert [(s.part, s.way) for s in found] == [(None, None), *((p, way) for p in parts for way in WAYS)]
    assert found[0].figures == figures(model, BATCHES)  # nothing stays swapped
    for swapped in found[1:]:
        assert swapped.figures != found[0].figures


def test_a_document_that_is_alone_is_its_own_mean_and_its_own_other() -> None:
    model = toy_ssdvae(document_vector=3)
    for swapped in swap_parts(model, list(model.parts()), lambda: figures(model, [[0]])):
        assert swapped.figures == pytest.approx(figures(model, [[0]]))


def test_another_document_is_another_and_each_is_given_once() -> None:
    """Seen from outside, what a document is given is another's, or the mean."""
    model = toy_model("rnnlm", document_vector=3)
    vector = model.parts()["document-vector"]
    seen: list[torch.Tensor] = []
    handle = vector.register_forward_hook(lambda module, inputs, output: seen.append(output[1]))
    list(swap_parts(model, ["document-vector"], lambda: figures(model, BATCHES)))
    handle.remove()
    own = torch.cat(seen[: len(BATCHES)])
    given: list[torch.Tensor] = []

    def ask() -> dict[str, float]:
        given.clear()
        handle = vector.register_forward_hook(lambda module, inputs, output: given.append(output[1]))
        try:
            return figures(model, BATCHES)
        finally:
            handle.remove()

    for swapped in swap_parts(model, ["document-vector"], ask):
        rows = torch.cat(given)
        places = [int((own - row).abs().sum(1).argmin()) for row in rows]
        if swapped.way is None:
            assert places == list(range(6))
        elif swapped.way == "other":
            assert sorted(places) == list(range(6))
            assert all(place != mine for mine, place in enumerate(places))
        else:
            assert torch.allclose(rows, own.mean(0).expand_as(rows), atol=1e-6)


def test_a_part_that_is_not_there_is_named() -> None:
    model = toy_model("rnnlm")
    with pytest.raises(UserError, match="rnnlm has no part 'frames'; it has: none that can be swapped"):
        list(swap_parts(model, ["frames"], lambda: {}))
