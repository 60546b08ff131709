"""Vector quantisation, and the structure of HAQAE."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from ssdvae.models.haqae import HAQAE, quantize
from tests.toys import noise, toy_batch, toy_model


def toy_haqae(**settings: Any) -> HAQAE:
    model = toy_model("haqae", **settings)
    assert isinstance(model, HAQAE)
    return model


def test_the_nearest_code_is_chosen() -> None:
    query, codebook = torch.randn(50, 3), torch.randn(7, 3)
    found = quantize(query, codebook)
    for q, code, nearest in zip(query, found.code, found.nearest, strict=True):
        distances = [math.dist(q.tolist(), e.tolist()) for e in codebook]
        assert distances[code] == min(distances)
        assert torch.equal(nearest, codebook[code])
    torch.testing.assert_close(found.vector, found.nearest)


def test_gradients_are_the_straight_through_formulas() -> None:
    """The words' gradient goes to the query as if it were the code; the code moves by 2(e − q) alone, and
    the commit loss moves the query by 2(q − e).
    """
    query = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    codebook = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(6, 3, dtype=torch.float64)
    found = quantize(query, codebook)
    chosen = codebook[found.code].detach()

    def gradients(loss: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        q, e = torch.autograd.grad(loss, (query, codebook), retain_graph=True, allow_unused=True)
        return (
            torch.zeros_like(query) if q is None else q,
            torch.zeros_like(codebook) if e is None else e,
        )

    to_query, to_codes = gradients((found.vector * upstream).sum())
    torch.testing.assert_close(to_query, upstream)
    assert (to_codes == 0).all()

    to_query, to_codes = gradients(found.codebook_loss().sum())
    expected = torch.zeros_like(codebook).index_add(0, found.code, 2 * (chosen - query.detach()))
    torch.testing.assert_close(to_codes, expected)
    assert (to_query == 0).all()

    to_query, to_codes = gradients(found.commit_loss().sum())
    torch.testing.assert_close(to_query, 2 * (query.detach() - chosen))
    assert (to_codes == 0).all()


def test_the_loss_is_made_of_its_terms() -> None:
    for normalize in ("word", "document"):
        model, batch = toy_haqae(normalize=normalize), toy_batch([3, 1])
        loss = model(batch, noise(2))
        terms = loss.terms
        extra = terms["codebook"] + 0.25 * terms["commit"] + 0.15 * terms["parent_commit"]
        scale = batch.words if normalize == "word" else 1
        torch.testing.assert_close(loss.per_document, scale * extra - terms["reconstruction"])
        torch.testing.assert_close(
            terms["codebook"], terms["commit"]
        )  # the same distance, seen from both ends
        torch.testing.assert_close(terms["commit"], terms["parent_commit"])  # and the same query, asked again


def test_asking_again_does_not_move_the_words() -> None:
    """The third loss reaches the queries and their parents, and never the encoder through H."""
    model = toy_haqae(latents=1)
    loss = model(toy_batch([2, 2]), noise(2)).terms["parent_commit"].sum()
    encoder = [name for name, _ in model.named_parameters() if name.startswith("encoder.")]
    gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
    by_name = dict(zip([n for n, _ in model.named_parameters()], gradients, strict=True))
    assert all(by_name[name] is None for name in encoder)
    assert by_name["queries.0.bilinear.weight"] is not None


@pytest.mark.parametrize(("structure", "parents"), [("chain", [-1, 0, 1, 2, 3]), ("tree", [-1, 0, 0, 1, 1])])
def test_the_code_of_a_parent_is_what_its_children_ask_with(structure: str, parents: list[int]) -> None:
    model = toy_haqae(structure=structure, latents=5)
    batch = toy_batch([3, 2])
    assert [model.parent(i) for i in range(5)] == parents
    before = torch.stack([latent.query for latent in model._read(batch)])
    for moved in range(5):
        with torch.no_grad():
            model.codebooks[moved] += 1.0
        after = torch.stack([latent.query for latent in model._read(batch)])
        changed = {i for i in range(5) if not torch.allclose(before[i], after[i])}
        below = {i for i in range(5) if moved in _ancestors(i, parents)}
        assert changed <= below
        assert {i for i in range(5) if parents[i] == moved} <= changed
        before = after


def _ancestors(i: int, parents: list[int]) -> set[int]:
    return set() if parents[i] < 0 else {parents[i]} | _ancestors(parents[i], parents)


def test_dead_codes_are_put_beside_living_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where wanted; the use of a code that is split is shared, so that none is lost or made up."""
    monkeypatch.setattr("ssdvae.models.haqae.MEMORY", 0.9)  # a tenth of the steps to forget a code
    for revive in (False, True):
        model, batch = toy_haqae(revive=revive, latents=1, codes=4), toy_batch([2] * 8)
        model.train()
        generator = torch.Generator().manual_seed(0)
        with torch.no_grad():
            model.codebooks[0, 1:] = 1e3  # so far away that no query finds them
        for _ in range(40):
            model.after_step(model(batch, noise(8)), lambda counts: counts, generator)
        distances = (model.codebooks[0] - model.codebooks[0, 0]).norm(dim=-1)
        assert bool((distances < 10).all()) is revive
        assert model.use.sum().item() == pytest.approx(4)
