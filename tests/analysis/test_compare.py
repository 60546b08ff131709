"""Differences between groups: no more discoveries than promised, and planted ones found."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_array

from ssdvae.analysis.compare import FeatureCounts, Features, _PermutationTest, compare
from ssdvae.analysis.explain import explain
from ssdvae.analysis.options import ExplainOptions
from ssdvae.data.batches import collate
from ssdvae.inference.posterior import frame_posteriors, infer_frames
from ssdvae.io.errors import UserError
from tests.toys import toy_documents, toy_model


def drawn(draw: np.random.Generator, documents: int, features: int, rates: np.ndarray) -> Features:
    """Counts of documents of different sizes, with a rate for each document and feature."""
    sizes = draw.integers(3, 12, documents).astype(np.float64)
    counts = draw.poisson(sizes[:, None] * rates)
    names = tuple(f"f{k}" for k in range(features))
    return Features("frame", names, csr_array(counts.astype(np.float64)), sizes)


def test_shuffled_groups_give_no_more_discoveries_than_promised() -> None:
    """Features that depend on each other, of documents that are bursty, in groups that mean nothing."""
    draw, tries, wrong = np.random.default_rng(3), 60, 0
    for number in range(tries):
        burst = draw.gamma(0.5, 2, (60, 1))
        found = compare(
            [drawn(draw, 60, 25, 0.05 * burst * np.ones(25))],
            [str(g) for g in draw.integers(0, 3, 60)],
            permutations=99,
            seed=number,
        )
        wrong += bool(found.found(0.1))
    # At most 10 %, but for chance: a binomial of 60 has more than 13 once in a thousand.
    assert wrong <= 13


@pytest.mark.parametrize("groups", [2, 3])
def test_a_planted_difference_is_found_and_nothing_else(groups: int) -> None:
    draw = np.random.default_rng(1)
    member = draw.integers(0, groups, 300)
    rates = np.full((300, 40), 0.05)
    rates[member == 1, 7] = 0.25
    found = compare([drawn(draw, 300, 40, rates)], [f"g{g}" for g in member], permutations=199)
    assert [(d.group, d.name) for d in found.found()] == [("g1", "f7")]
    (difference,) = found.found()
    assert 3 < difference.ratio < 8
    assert difference.p == 1 / 200
    assert found.groups == {f"g{g}": int((member == g).sum()) for g in range(groups)}
    assert found.tests == 40 * (groups if groups > 2 else 1)


def test_z_is_that_of_all_choices_of_documents() -> None:
    """Mean 0 and variance 1 over every way to choose as many documents, by enumeration."""
    features = drawn(np.random.default_rng(0), 7, 4, np.full((7, 4), 0.3))
    choices = np.array(
        [[n in some for n in range(7)] for some in itertools.combinations(range(7), 3)], dtype=float
    ).T
    z = _PermutationTest(features).z(choices)
    assert z.mean(1) == pytest.approx(0, abs=1e-9)
    assert (z**2).mean(1) == pytest.approx(1)


def test_what_all_documents_have_at_the_same_rate_differs_nowhere() -> None:
    counts = csr_array(np.array([[2.0, 1.0], [4.0, 0.0], [6.0, 5.0], [8.0, 2.0]]))
    features = Features("word", ("steady", "other"), counts, np.array([4.0, 8.0, 12.0, 16.0]))
    found = compare([features], ["a", "a", "b", "b"], permutations=19)
    assert "steady" not in [d.name for d in found.differences]


def test_documents_without_a_group_take_no_part() -> None:
    draw = np.random.default_rng(2)
    features = drawn(draw, 50, 5, np.full((50, 5), 0.2))
    groups: list[str | None] = ["a" if g else "b" for g in draw.integers(0, 2, 40)]
    few = Features("frame", features.names, features.counts[:40], features.sizes[:40])
    assert compare([features], [*groups, *[None] * 10], 29) == compare([few], groups, 29)
    with pytest.raises(UserError, match="--compare: found 1 group among these documents"):
        compare([features], ["a"] * 50)


def test_features_are_counted_document_by_document() -> None:
    model, documents = toy_model(), toy_documents([3, 1, 4, 2])
    counted = FeatureCounts(model, min_count=0.0)
    for posterior, batch in frame_posteriors(model, documents, 3):
        counted.add(posterior, batch)
    frames, transitions, words = counted.result()
    for row, part in enumerate(documents.parts()):
        values = infer_frames(model, collate(documents, np.array([row]))).value[0].tolist()
        names = [model.frames.name(value) for value in values]
        pairs = [f"{a} → {b}" for a, b in itertools.pairwise(names)]
        tokens = [model.vocabulary.name(int(w)) for w in documents.tokens[part].ravel()]
        for features, found in ((frames, names), (transitions, pairs), (words, tokens)):
            row_counts = features.counts[[row]].toarray()[0]
            assert row_counts.tolist() == [found.count(name) for name in features.names]
            assert features.sizes[row] == len(found)
    assert not {"None", "<unk>"} & set(words.names)


def test_explain_answers_with_the_differences_alone() -> None:
    model, documents = toy_model(), toy_documents([3, 1, 4, 2] * 5)
    settings = ExplainOptions(min_count=1.0, permutations=19)
    groups = ["x" if row % 2 else "y" for row in range(20)]
    record = explain(model, documents, settings, groups=groups).to_record(settings)
    assert record.keys() == {"compare"}
    assert record["compare"]["groups"] == {"x": 10, "y": 10}
    assert all(0 < d["p"] <= 1 for d in record["compare"]["differences"])
