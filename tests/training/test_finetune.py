"""Training that begins with the weights of another run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import ssdvae
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.runs import Run
from ssdvae.training.loop import initialize_from_run, new_model
from ssdvae.training.train import train
from tests.training.conftest import SETTINGS
from tests.training.test_train import _ppl_of

PLANNER = SETTINGS.changed(model="planner", epochs=1, mixture="event")


@pytest.fixture(scope="module")
def run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(corpus, tmp_path_factory.mktemp("runs") / "first", PLANNER)


def test_it_begins_where_the_other_run_ended(corpus: Corpus, run: Run, tmp_path: Path) -> None:
    """Nothing is counted anew: candidates are those of the run, whatever frames this one would observe."""
    still = PLANNER.changed(init=run.folder, learning_rate=1e-30, observe=0.0, seed=5)
    again = train(corpus, tmp_path / "again", still)
    first, second = (ssdvae.load(r.folder).state_dict() for r in (run, again))
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert again.config()[1].init == run.folder.resolve()


def test_a_lexicon_gives_further_candidates(corpus: Corpus, tmp_path: Path) -> None:
    """Of words and frames that the corpus has; a lexicon without any is refused."""
    path, frame = tmp_path / "lexicon.json", corpus.frames.names[-1]
    verb = corpus.vocabulary.name(int(corpus.split("train").tokens[:, 0].max()))
    path.write_text(json.dumps({verb: [frame, "No_frame_of_ours"], "never_heard": [frame]}))
    settings = PLANNER.changed(lexicon=path, observe=0.01, learning_rate=1e-30)
    model = ssdvae.load(train(corpus, tmp_path / "run", settings).folder)
    assert corpus.frames.id(frame) in model.get_buffer("decoder.table")[corpus.vocabulary.word_id(verb)]
    path.write_text(json.dumps({"never_heard": [frame]}))
    with pytest.raises(UserError, match="no head and frame"):
        train(corpus, tmp_path / "other", settings)


def test_what_does_not_fit_is_refused(corpus: Corpus, run: Run) -> None:
    for change in ({"hidden": 9}, {"model": "rnnlm"}, {"candidates": 3}):
        model = new_model(PLANNER.changed(**change), corpus.vocabulary, corpus.frames, None)
        with pytest.raises(UserError, match="do not fit"):
            initialize_from_run(model, run.folder)
    with pytest.raises(UserError, match="holds no model"):
        initialize_from_run(model, run.folder / "checkpoint")


def test_with_contrast_the_last_weights_are_kept(
    corpus: Corpus, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ssdvae.training.running.evaluate", _ppl_of([5.0, 6.0, 7.0]))
    settings = PLANNER.changed(init=run.folder, epochs=3, contrast=1.0, patience=1)
    tuned = train(corpus, tmp_path / "run", settings)
    assert [r["ppl"] for r in tuned.metrics() if r["split"] == "valid"] == [5.0, 6.0, 7.0]
    saved, last = ssdvae.load(tuned.folder), ssdvae.load(run.folder)
    tuned.restore(last, torch.optim.Adam(last.parameters()))
    for name, value in saved.state_dict().items():
        assert torch.equal(value, last.state_dict()[name]), name
    assert all("contrast" in r for r in tuned.metrics() if r["split"] == "train")
