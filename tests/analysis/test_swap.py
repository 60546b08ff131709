"""Ablation by swapping: swapped parts are those of other documents, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from ssdvae.analysis.swap import WAYS, swap_parts
from ssdvae.data.batches import Batch, Noise, collate, generator
from ssdvae.io.errors import UserError
from ssdvae.models.base import LanguageModel
from ssdvae.models.latents import LatentQuery, probabilities
from ssdvae.models.ssdvae import Chain
from tests.toys import SLOTS, noise, toy_documents, toy_language_model, toy_ssdvae

DOCUMENTS = toy_documents([3] * 6)


def log_probs(model: LanguageModel, rows: list[list[int]]) -> Iterator[float]:
    """log p(words) of each document, asked batch by batch."""
    with torch.no_grad():
        for number, batch in enumerate(rows):
            noise = Noise(generator(1, number), len(batch))
            words = model.eval().word_log_probs(collate(DOCUMENTS, np.array(batch)), noise)
            yield from words.sum((1, 2)).tolist()


def figures(model: LanguageModel, rows: list[list[int]]) -> dict[str, float]:
    return {str(place): value for place, value in enumerate(log_probs(model, rows))}


BATCHES = [[0, 1], [2, 3, 4], [5]]


def with_vectors() -> list[LanguageModel]:
    return [toy_ssdvae(variant="code"), toy_language_model("rnnlm", document_vector=3)]


@pytest.mark.parametrize("model", with_vectors(), ids=["ssdvae", "rnnlm"])
def test_every_part_can_be_swapped_and_what_is_recorded_is_the_model_as_it_is(model: LanguageModel) -> None:
    parts = list(model.parts())
    found = list(swap_parts(model, parts, lambda: figures(model, BATCHES)))
    assert [(s.part, s.way) for s in found] == [(None, None), *((p, way) for p in parts for way in WAYS)]
    assert found[0].figures == figures(model, BATCHES)  # nothing stays swapped
    for swapped in found[1:]:
        assert swapped.figures != found[0].figures


def test_a_document_that_is_alone_is_its_own_mean_and_its_own_other() -> None:
    model = toy_ssdvae(variant="code")
    for swapped in swap_parts(model, list(model.parts()), lambda: figures(model, [[0]])):
        assert swapped.figures == pytest.approx(figures(model, [[0]]))


def test_another_document_is_another_and_each_is_given_once() -> None:
    """Seen from outside, what a document is given is another's, or the mean."""
    model = toy_language_model("rnnlm", document_vector=3)
    vector = model.parts()["document-vector"]
    seen: list[torch.Tensor] = []
    handle = vector.register_forward_hook(lambda module, inputs, output: seen.append(output))
    list(swap_parts(model, ["document-vector"], lambda: figures(model, BATCHES)))
    handle.remove()
    own = torch.cat(seen[: len(BATCHES)])
    given: list[torch.Tensor] = []

    def ask() -> dict[str, float]:
        given.clear()
        handle = vector.register_forward_hook(lambda module, inputs, output: given.append(output))
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


@contextmanager
def noted(module: torch.nn.Module) -> Iterator[list[Any]]:
    """All that a module gives, as others see it."""
    seen: list[Any] = []
    handle = module.register_forward_hook(lambda module, inputs, output: seen.append(output))
    try:
        yield seen
    finally:
        handle.remove()


def test_a_document_gets_the_same_whenever_it_is_asked_about_and_seeds_get_that_of_seeds() -> None:
    model = toy_ssdvae(variant="code")
    vector = model.parts()["document-vector"]
    seeds, options = torch.randint(0, 8, (4, 1, SLOTS)), torch.randint(0, 8, (4, 2, 2, SLOTS))
    asked: list[tuple[str, int]] = []
    given: list[torch.Tensor] = []

    def ask() -> dict[str, float]:
        asked.clear()
        given.clear()
        with noted(vector) as seen, torch.no_grad():
            for rows in ([0, 1, 2], [3, 4, 5], [1, 2]):  # some are asked about again
                list(log_probs(model, [rows]))
                given.extend(seen.pop())
                asked.extend(("whole", row) for row in rows)
                model.posterior(collate(DOCUMENTS, np.array(rows)))  # no query: nothing is swapped
                seen.clear()
            for part in ([0, 1, 2, 3], [2], [2]):  # as PMI does, over and over
                seed = Batch.of_words(seeds[part])
                nothing = torch.full((len(part), 3), -1)
                query = LatentQuery.continuing(seed, nothing, probabilities, noise(len(part)))
                model.continuations(seed, model.latents(query), options[part])
                given.extend(seen.pop())
                asked.extend(("seed", row) for row in part)
        return {}

    kinds: dict[str | None, dict[tuple[str, int], torch.Tensor]] = {}
    for swapped in swap_parts(model, ["document-vector"], ask):
        kinds[swapped.way] = {}
        for who, row in zip(asked, given, strict=True):
            assert torch.allclose(kinds[swapped.way].setdefault(who, row), row, atol=1e-12)
    own = kinds[None]
    for kind in ("whole", "seed"):
        mine = [row for who, row in own.items() if who[0] == kind]
        for who in (who for who in own if who[0] == kind):
            assert torch.allclose(kinds["mean"][who], torch.stack(mine).mean(0), atol=1e-12)
            others = [row for other, row in own.items() if other[0] == kind and other != who]
            assert min(float((row - kinds["other"][who]).abs().max()) for row in others) < 1e-12


@pytest.mark.parametrize("attention", ["addition", "concatenation"])
def test_frames_are_those_of_documents_as_long(attention: str) -> None:
    model, documents = toy_ssdvae(attention=attention), toy_documents([1, 3, 1, 2, 3, 2])
    rows = np.arange(6)

    def ask() -> dict[str, float]:
        with noted(model.encoder) as seen, torch.no_grad():
            model.word_log_probs(collate(documents, rows), noise(6))
        chains.append(seen[0])
        return {}

    chains: list[Chain] = []
    list(swap_parts(model, ["frames"], ask))
    own, _, other = chains
    partner = {0: 2, 2: 0, 1: 4, 4: 1, 3: 5, 5: 3}
    for mine, theirs in partner.items():
        events = own.mask[mine]
        for part in ("memory", "sample"):
            assert torch.equal(getattr(other, part)[mine][events], getattr(own, part)[theirs][events])


def test_a_part_that_is_not_there_is_named() -> None:
    with pytest.raises(UserError, match="name at least one part; ssdvae has: frames, state"):
        list(swap_parts(toy_ssdvae(), [], lambda: {}))
    model = toy_language_model("rnnlm")
    with pytest.raises(UserError, match="rnnlm has no part 'frames'; it has: none that can be swapped"):
        list(swap_parts(model, ["frames"], lambda: {}))
