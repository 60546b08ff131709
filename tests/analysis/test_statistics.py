"""Statistics of a split: what `explain` counts, without what is rare; they survive being written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ssdvae.analysis.explain import explain
from ssdvae.analysis.statistics import Statistics
from ssdvae.data.corpus import Corpus
from ssdvae.io.errors import DataError
from ssdvae.models.base import Model
from ssdvae.models.hub import STATISTICS
from tests.report.conftest import runs as runs


@pytest.fixture(scope="module")
def model(runs: list[Path]) -> Model:
    return Model.read(runs[0])


@pytest.fixture(scope="module")
def corpus(runs: list[Path]) -> Corpus:
    return Corpus(runs[0].parent / "corpus")


def test_counts_are_those_of_explain(model: Model, corpus: Corpus) -> None:
    split = corpus.split("valid")
    found, expected = Statistics.measure(model, split, "valid", least=1), explain(model, split)
    words, pairs = expected.words, expected.transitions
    assert found.counts.frames == words.frame_counts.round().astype(int).tolist()
    for frame in filter(found.count, model.frames.names):
        number = model.frames.find(frame, "frame")
        shares = dict(words.words_of(frame, 3))
        for name, share in found.words_of(frame, 3):
            assert share == pytest.approx(shares[name], abs=0.06)
        for name, share in found.after(frame, 3):
            assert share == pytest.approx(
                pairs.probabilities[number, model.frames.find(name, "frame")], abs=0.06
            )
        for name, share in found.before(frame, 3):
            into = pairs.counts[:, number]
            assert share == pytest.approx(into[model.frames.find(name, "frame")] / into.sum(), abs=0.06)
    assert found.counts.heads["tried"] == words.times_of_word("tried")
    assert found.frames_of("tried", 1)[0][0] == words.frames_of("tried", 1)[0][0] == "Trial"
    assert "Trial" in dict(found.places("ann"))["subj"]


def test_what_is_rare_is_left_out(model: Model, corpus: Corpus) -> None:
    split = corpus.split("valid").take(np.arange(14))
    counts = Statistics.measure(model, split, "valid", least=5).counts
    kept = [n for rows in (counts.after, *counts.slots) for row in rows for n in row[1::2]]
    kept += [*counts.heads.values(), *filter(None, counts.frames)]
    assert kept
    assert min(kept) >= 5
    assert len(kept) < len(Statistics.measure(model, split, "valid", least=1).counts.heads) * 20


def test_a_word_is_found_by_any_of_its_forms(model: Model, corpus: Corpus) -> None:
    lemmas = {"tried": "try", "met": "try", "left": "left", "unseen": "try"}
    found = Statistics.measure(model, corpus.split("valid"), "valid", lemmas, least=1)
    assert set(found.forms("Try")) == set(found.forms("met")) == {"tried", "met"}
    assert found.forms("left") == ["left"]
    assert found.forms("nobody") == []
    assert found.counts.lemmas == {"tried": "try", "met": "try"}


def test_written_beside_the_weights_that_gave_them(
    runs: list[Path], model: Model, corpus: Corpus, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(runs[0], folder)
    assert Statistics.read(folder, model) is None
    found = Statistics.measure(model, corpus.split("valid"), "valid")
    found.counts.write(folder)
    again = Statistics.read(folder, model)
    assert again is not None
    assert again.packed
    assert again.counts.model_copy(update={"weights": ""}) == found.counts
    record = json.loads((folder / STATISTICS).read_text())
    for damage in ({"frames": [1]}, {"after": [[999, 7]] * len(model.frames)}, {"heads": {"nobody": 7}}):
        (folder / STATISTICS).write_text(json.dumps({**record, **damage}))
        with pytest.raises(DataError, match="counts of other words"):
            Statistics.read(folder, model)
    (folder / STATISTICS).write_text(json.dumps({**record, "weights": "of others"}))
    assert Statistics.read(folder, model) is None
