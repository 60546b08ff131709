"""Training that begins with the weights of another run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import ssdvae
from ssdvae.data.corpus import Corpus
from ssdvae.io.errors import UserError
from ssdvae.io.run import Run
from ssdvae.models.exact import ExactModel
from ssdvae.training.loop import initialize_from_run, new_model
from ssdvae.training.train import resume, train
from tests.training.conftest import PER_EPOCH, SETTINGS, assert_same_run
from tests.training.test_resume import CrashError, crash_after, fail

ONE_EPOCH = SETTINGS.changed(epochs=1)


@pytest.fixture(scope="module")
def run(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return train(corpus, tmp_path_factory.mktemp("runs") / "first", ONE_EPOCH)


def test_it_begins_where_the_other_run_ended(corpus: Corpus, run: Run, tmp_path: Path) -> None:
    """Nothing is counted anew: candidates are those of the run, whatever frames this one would observe."""
    still = ONE_EPOCH.changed(init=run.folder, learning_rate=1e-30, observe=0.0, seed=5)
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
    settings = ONE_EPOCH.changed(lexicon=path, observe=0.01, learning_rate=1e-30)
    model = ssdvae.load(train(corpus, tmp_path / "run", settings).folder)
    assert corpus.frames.id(frame) in model.get_buffer("decoder.table")[corpus.vocabulary.id(verb)]
    path.write_text(json.dumps({"never_heard": [frame]}))
    with pytest.raises(UserError, match="no head and frame"):
        train(corpus, tmp_path / "other", settings)


def test_what_does_not_fit_is_refused(corpus: Corpus, run: Run) -> None:
    for change in ({"hidden": 9}, {"model": "rnnlm"}, {"model": "ssdvae"}, {"candidates": 3}):
        model = new_model(ONE_EPOCH.changed(**change), corpus.vocabulary, corpus.frames, None)
        with pytest.raises(UserError, match="do not fit"):
            initialize_from_run(model, run.folder)
    with pytest.raises(UserError, match="holds no model"):
        initialize_from_run(model, run.folder / "checkpoint")


def test_both_readers_begin_with_the_one_that_was_kept(corpus: Corpus, run: Run) -> None:
    model = new_model(ONE_EPOCH.changed(seed=5), corpus.vocabulary, corpus.frames, None)
    initialize_from_run(model, run.folder)
    assert isinstance(model, ExactModel)
    assert model.frame_reader is not None
    assert model.rival is not None
    kept = ssdvae.load(run.folder).state_dict()
    for reader in (model.frame_reader, model.rival):
        for name, value in reader.state_dict().items():
            assert torch.equal(value, kept[f"frame_reader.{name}"]), name


def test_a_fine_tuned_run_goes_on_after_a_crash(
    corpus: Corpus, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SETTINGS.changed(init=run.folder, seed=3)
    whole = train(corpus, tmp_path / "whole", settings)
    crash_after(monkeypatch, PER_EPOCH + 3, fail)
    with pytest.raises(CrashError):
        train(corpus, tmp_path / "run", settings)
    assert_same_run(resume(tmp_path / "run"), whole)
    assert whole.metrics()[-1]["ppl"] < run.metrics()[-1]["ppl"]
