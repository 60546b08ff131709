"""Event similarity: the figures, against other libraries and against what must not matter."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import spearmanr, special_ortho_group

import ssdvae
from ssdvae.data.benchmarks import SimilarityItem
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Words
from ssdvae.evaluation.choices import Array
from ssdvae.evaluation.similarity import similarities, spearman
from ssdvae.io.errors import UserError
from tests.shared import made_once


def event(n: int) -> Words:
    return (f"v{n}", "s", "o", "None")


def numbered(vectors: Array) -> Sequence[SimilarityItem]:
    """Items of which event n has row n."""
    return [
        SimilarityItem(((event(n), event(n + 1)), (event(n + 2), event(n + 3))))
        for n in range(0, len(vectors), 4)
    ]


@given(
    arrays(np.float64, (3, 9), elements=st.integers(-3, 3)),
    arrays(np.float64, (3, 9), elements=st.integers(0, 5)),
)
def test_spearman_is_that_of_another_library(a: Array, b: Array) -> None:
    for mine, x, y in zip(spearman(a, b), a, b, strict=True):
        if len(set(x)) > 1 and len(set(y)) > 1:
            assert mine == pytest.approx(spearmanr(x, y).statistic)
        else:
            assert np.isnan(mine)


def test_only_angles_matter() -> None:
    """Turned and scaled vectors have the same cosines; a vector of zeros is near to nothing."""
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(40, 6))
    vectors[3] = 0
    items = numbered(vectors)
    cosines = similarities(items, lambda _: vectors).cosines
    turned = (vectors * draw.uniform(1, 5, (40, 1))) @ special_ortho_group.rvs(6, random_state=1)
    assert similarities(items, lambda _: turned).cosines == pytest.approx(cosines)
    assert cosines[0, 1] == 0
    expected = vectors[0] @ vectors[1] / np.linalg.norm(vectors[0]) / np.linalg.norm(vectors[1])
    assert cosines[0, 0] == pytest.approx(expected)


def test_the_similar_pair_must_be_nearer() -> None:
    near, far = np.array([[1.0, 0.1], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
    vectors = np.concatenate([near, far, far, near, near, near])
    found = similarities(numbered(vectors), lambda _: vectors)
    assert found.credit.tolist() == [1, 0, 0.5]
    assert found.figures("x", 1)["x_accuracy"] == 0.5
    assert [record["credit"] for record in found.details()] == [1, 0, 0.5]


def test_ratings_are_ranked() -> None:
    angles = np.linspace(0, 1.5, 20)
    vectors = np.stack(
        [np.stack([np.ones(20), np.zeros(20)], 1), np.stack([np.cos(angles), np.sin(angles)], 1)], 1
    )
    items = [SimilarityItem(((event(n), event(n)),), float(-(n**3))) for n in range(20)]
    figures = similarities(items, lambda _: vectors.reshape(40, 2)).figures("x", 1)
    assert figures["x_rho"] == pytest.approx(1)
    assert figures["x_rho_low"] == pytest.approx(1)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> None:
        ssdvae.world(folder / "events.jsonl", documents=120, progress=False)
        corpus = ssdvae.prepare(folder / "events.jsonl", folder / "corpus", preset="tiny", valid_share=0.3)
        small: dict[str, Any] = {"preset": "tiny", "hidden": 8, "embedding": 8, "epochs": 1}
        ssdvae.train(corpus, folder / "run", model="rnnlm", **small)

    return made_once(tmp_path_factory, "similarity", make) / "run"


def test_tasks_on_files_are_measured_when_a_file_is_named(run: Path, tmp_path: Path) -> None:
    verbs = Corpus(run.parent / "corpus").vocabulary.names[2:]
    pairs, narrative, vectors = (tmp_path / name for name in ("pairs.txt", "mcnc.txt", "vectors.txt"))
    both = itertools.pairwise(verbs[:8])
    pairs.write_text("".join(f"a|{v}|b|c|{w}|d|a|{v}|b|a|{v}|{w}\n" for v, w in both))
    one = "".join(f"a|{v}|b\n" for v in verbs[:6])
    narrative.write_text((one + f"HOLDOUT_SEP\nx|{verbs[7]}|y\nNEG_SEP\n{one}DOC_SEP\n") * 3)
    vectors.write_text("".join(f"{v} {n} 1\n" for n, v in enumerate(verbs)))
    found = ssdvae.evaluate(
        run, tasks="similarity,mcnc,masked,order", similarity=pairs, mcnc=narrative, floor_vectors=vectors
    )
    assert found["similarity_items"] == 7
    assert found["mcnc_items"] == 3
    assert found["mcnc_chance"] == pytest.approx(1 / 7)
    lead = found["similarity_accuracy"] - found["similarity_vectors_accuracy"]
    assert found["similarity_lead"] == pytest.approx(lead)
    assert found["similarity_lead_low"] <= lead <= found["similarity_lead_high"]
    assert found["masked_items"] == found["order_items"] > 10
    assert found["masked_nll_low"] <= found["masked_nll"] <= found["masked_nll_high"]
    assert "order_pmi" not in found
    titles = [title for title, *_ in ssdvae.scores(run).tables()]
    assert [title.split(",")[0] for title in titles] == ["mcnc", "similarity", "masked", "order"]


def test_a_task_without_its_file_says_what_to_do(run: Path) -> None:
    with pytest.raises(UserError, match=r"mcnc is measured on a file: name it by --mcnc"):
        ssdvae.evaluate(run, tasks="mcnc")
    assert not any(name.startswith("similarity") for name in ssdvae.evaluate(run, tasks="similarity,order"))
