"""Tests of training, except of resuming."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from accelerate import Accelerator
from safetensors.torch import load_file
from torch import Tensor

import ssdvae
from ssdvae.data.batches import Batch, Noise, epoch_batches, generator, mask_frames, process_slice
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document, Event
from ssdvae.data.options import SPLITS, PrepareOptions, Split
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.evaluation.fitting import without_fitted_labels
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.io.errors import UserError
from ssdvae.io.files import atomic_write
from ssdvae.io.run import Run
from ssdvae.models.base import Model
from ssdvae.models.exact import ExactModel, _reader_loss
from ssdvae.models.options import SSDVAEOptions
from ssdvae.models.registry import MODELS
from ssdvae.training.train import resume, train, train_or_resume
from tests.training import train_several
from tests.training.conftest import EPOCHS, PER_EPOCH, SETTINGS, launch


def test_two_processes_take_the_step_that_one_takes(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every model. With weights that (all but) stand still, the first moment of Adam is a mean of gradients.

    In batches of four, the parts of the processes differ in length.
    """
    still = SETTINGS.changed(epochs=1, batch=4, learning_rate=1e-12, decay=False)
    every = {name: still.changed(model=name) for name in MODELS}
    every["ssdvae"] = every["ssdvae"].changed(samples=2)
    every["haqae"] = every["haqae"].changed(revive=True)
    chosen: list[str] = []
    train_several.tell_choices(monkeypatch.setattr, chosen.append)
    for name, settings in every.items():
        train(corpus, tmp_path / "one" / name, settings)
    (tmp_path / "runs.json").write_text(json.dumps({n: s.to_dict() for n, s in every.items()}))
    process = launch(2, train_several.__file__, corpus.folder, tmp_path / "runs.json", tmp_path / "two")
    printed, said = process.communicate(timeout=600)
    assert process.returncode == 0, said
    # A process that ends with a group of Gloo's is now and then aborted, after the last figure is written.
    assert printed.split("\n").count("left the group") == 2, printed
    # The readers are chosen on few documents, which only one process has.
    assert chosen
    assert sorted(line for line in printed.split("\n") if line.startswith("keeps")) == sorted(2 * chosen)
    for name in MODELS:
        first, second = (
            load_file(tmp_path / by / name / "checkpoint" / "state.safetensors") for by in ("one", "two")
        )
        gradients = [key for key in first if key.endswith("exp_avg")]
        assert gradients
        for key in [*gradients, *(key for key in first if key == "model/use")]:
            torch.testing.assert_close(second[key], first[key], rtol=1e-4, atol=1e-6, msg=f"{name} {key}")
        for mine, theirs in zip(*(Run(tmp_path / by / name).metrics() for by in ("one", "two")), strict=True):
            assert mine.keys() == theirs.keys()
            for key in mine.keys() - {"seconds", "split"}:
                assert theirs[key] == pytest.approx(mine[key], rel=1e-4), f"{name} {key}"


def test_training_lowers_the_loss_and_records_every_term(corpus: Corpus, tmp_path: Path) -> None:
    settings = SETTINGS.changed(model="ssdvae", epochs=4, learning_rate=0.02, normalize="document")
    run = train(corpus, tmp_path / "run", settings)
    records = run.metrics()
    training = [record for record in records if record["split"] == "train"]
    validation = [record for record in records if record["split"] == "valid"]
    assert len(validation) == 4
    assert len(training) == 4 * PER_EPOCH / 2
    assert {"loss", "reconstruction", "entropy", "frame_nll"} <= training[0].keys()
    assert training[-1]["loss"] < training[0]["loss"]
    assert validation[-1]["ppl"] < validation[0]["ppl"]
    weights = settings.model_options
    assert isinstance(weights, SSDVAEOptions)
    for record in training:
        # −L_w − α_q·L_q + α_c·L_c, where each weight counts once in a document: so it holds for means too.
        weighted = weights.frame_weight * record["frame_nll"] - weights.entropy_weight * record["entropy"]
        assert record["loss"] == pytest.approx(weighted - record["reconstruction"], rel=1e-5)


def test_the_exact_model_learns_words_and_frames_and_both_readers(corpus: Corpus, tmp_path: Path) -> None:
    """Its loss is −log p(words, observed frames) and the losses of the readers."""
    run = train(corpus, tmp_path / "run", SETTINGS.changed(epochs=4, learning_rate=0.02))
    training = [record for record in run.metrics() if record["split"] == "train"]
    for record in training:
        readers = record["reader_0"] + record["reader_1"]
        generative = record["frame_nll"] - record["reconstruction"]
        assert record["loss"] == pytest.approx(generative + readers, rel=1e-5)
    for term in ("loss", "frame_nll", "reader_0", "reader_1"):
        assert training[-1][term] < training[0][term]


def test_gradients_are_unscaled_once_a_step(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In fp16 a second time is an error, and the exact model clips several groups of gradients."""
    calls: list[Accelerator] = []
    unscale = Accelerator.unscale_gradients

    def counted(self: Accelerator) -> None:
        calls.append(self)
        unscale(self)

    monkeypatch.setattr(Accelerator, "unscale_gradients", counted)
    train(corpus, tmp_path / "run", SETTINGS.changed(epochs=1))
    assert len(calls) == PER_EPOCH


READERS = ("frame_reader.", "rival.", "power", "sharpness")
"""Weights of the exact model that take no part in its likelihood, by the beginning of their names."""


def no_reader_loss(log_q: Tensor, *_: object) -> Tensor:
    return 0 * log_q.sum(-1)


def hundredfold_reader_loss(log_q: Tensor, log_r: Tensor, batch: Batch, kappa: int) -> Tensor:
    return 100 * _reader_loss(log_q, log_r, batch, kappa)


@pytest.mark.parametrize(
    ("place", "instead"),
    [
        ("ssdvae.models.exact._reader_loss", no_reader_loss),
        ("ssdvae.models.exact._reader_loss", hundredfold_reader_loss),
        ("ssdvae.models.exact.ExactModel.prepare_training", lambda model: None),
    ],
    ids=["no losses", "hundredfold losses", "one reader"],
)
def test_the_generative_part_learns_as_if_there_were_no_readers(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, instead: object
) -> None:
    """Bit for bit, though every gradient is clipped."""
    settings = SETTINGS.changed(clip=0.01)
    whole = train(corpus, tmp_path / "whole", settings)
    monkeypatch.setattr(place, instead)
    other = train(corpus, tmp_path / "other", settings)
    mine, theirs = (load_file(run.folder / "checkpoint" / "state.safetensors") for run in (whole, other))
    names = [n for n in mine if not n.split("/")[1].startswith(READERS)]
    readers = [n for n in theirs if n.startswith("model/frame_reader.")]
    assert len(names) > 10
    assert not [name for name in names if not torch.equal(mine[name], theirs[name])]
    if "prepare" not in place:
        assert [name for name in readers if not torch.equal(mine[name], theirs[name])]
    for name in ("reconstruction", "frame_nll", "ppl"):
        assert [r.get(name) for r in whole.metrics()] == [r.get(name) for r in other.metrics()]


def test_the_saved_model_is_the_best_one(corpus: Corpus, uninterrupted: Run) -> None:
    best = min(record["ppl"] for record in uninterrupted.metrics() if record["split"] == "valid")
    settings = EvaluateOptions(eval_batch=2 * SETTINGS.batch, eval_seed=SETTINGS.seed)
    model = ssdvae.load(uninterrupted.folder)
    assert evaluate(model, corpus.split("valid"), settings, bounded=False)["ppl"] == pytest.approx(best)


def test_the_saved_model_knows_which_words_stand_in_which_slot(corpus: Corpus, uninterrupted: Run) -> None:
    counts = Model.read(uninterrupted.folder).vocabulary.slot_counts
    assert counts is not None
    assert tuple(counts.sum(0)) == corpus.vocabulary.counts


@pytest.mark.parametrize(("which", "reader"), [(0, "frame_reader"), (1, "rival")])
def test_the_saved_model_has_the_reader_that_was_kept(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: int, reader: str
) -> None:
    """And names frames as the validation did."""

    def keep(model: ExactModel, *_: object, **__: object) -> None:
        model.keep_reader(which, 0.5, 0.8)

    monkeypatch.setattr("ssdvae.training.trainer.fit_reader", keep)
    run = train(corpus, tmp_path / "run", SETTINGS.changed(epochs=1))
    saved, state = (load_file(run.folder / n) for n in ("model.safetensors", "checkpoint/state.safetensors"))
    kept = {name: value for name, value in saved.items() if name.startswith("frame_reader.")}
    assert kept
    for name, value in kept.items():
        assert torch.equal(value, state[f"model/{reader}.{name.removeprefix('frame_reader.')}"]), name
    assert [round(float(saved[name]), 6) for name in ("power", "sharpness")] == [0.5, 0.8]
    model = ssdvae.load(run.folder)
    measured = without_fitted_labels(corpus.split("valid"), model, "valid")
    scores = evaluate(model, measured, EvaluateOptions(), bounded=False)
    assert scores["frame_ppl"] == pytest.approx(run.metrics()[-1]["frame_ppl"], rel=1e-5)


def test_a_loss_that_is_not_finite_stops_the_run(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not finite"):
        train(corpus, tmp_path / "run", SETTINGS.changed(learning_rate=1e38))


def test_early_stopping(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops after ``patience`` validations that are no better than the best."""
    monkeypatch.setattr("ssdvae.training.trainer.evaluate", _ppl_of([5.0, 4.0, 4.5, 4.0, 4.2, 1.0]))
    run = train(corpus, tmp_path / "run", SETTINGS.changed(epochs=20, patience=3))
    assert [r["ppl"] for r in run.metrics() if r["split"] == "valid"] == [5.0, 4.0, 4.5, 4.0, 4.2]


def _ppl_of(values: list[float]):  # type: ignore[no-untyped-def]  # stands in for evaluate, whatever it takes
    rest = iter(values)
    return lambda *_, **__: {"ppl": next(rest), "frame_accuracy": None}


def test_config_yaml_has_every_setting_and_makes_the_same_run(
    corpus: Corpus, uninterrupted: Run, tmp_path: Path
) -> None:
    folder, settings = uninterrupted.config()
    assert folder == corpus.folder
    assert settings == SETTINGS
    values = yaml.safe_load(uninterrupted.config_path.read_text())
    assert set(values) == {"format", "corpus", *SETTINGS.values()}


def test_vectors_give_their_width_and_their_rows(corpus: Corpus, tmp_path: Path) -> None:
    word = corpus.vocabulary.names[5]
    with atomic_write(tmp_path / "vectors.txt") as path:
        path.write_text(f"{word} 1.5 -2 3\nelsewhere 0 0 0\n")
    settings = SETTINGS.changed(embedding=None, vectors=tmp_path / "vectors.txt", epochs=1)
    with pytest.raises(UserError, match="3 dimensions"):
        train(corpus, tmp_path / "wrong", settings.changed(embedding=8))
    run = train(corpus, tmp_path / "run", settings.changed(learning_rate=1e-12))
    weight = ssdvae.load(run.folder).word_reader.words.weight
    torch.testing.assert_close(weight[5].detach(), torch.tensor([1.5, -2.0, 3.0]))


def test_tensorboard_has_the_same_figures(corpus: Corpus, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = train(corpus, tmp_path / "run", SETTINGS.changed(epochs=1, track="tensorboard"))
    events = EventAccumulator(str(run.folder / "tracking" / "ssdvae")).Reload()
    logged = {(tag, e.step): e.value for tag in events.Tags()["scalars"] for e in events.Scalars(tag)}
    for record in run.metrics():
        for name in ("loss", "ppl"):
            if name in record:
                assert logged[f"{record['split']}/{name}", record["step"]] == pytest.approx(record[name])


def test_mixed_precision_trains(corpus: Corpus, tmp_path: Path) -> None:
    run = train(corpus, tmp_path / "run", SETTINGS.changed(epochs=1, precision="bf16"))
    full = train(corpus, tmp_path / "full", SETTINGS.changed(epochs=1))
    assert run.metrics()[-1]["ppl"] == pytest.approx(full.metrics()[-1]["ppl"], rel=0.05)


def test_auto_is_decided_when_a_run_begins_and_said(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A run goes on as it was begun, also where another precision would be chosen now."""
    settings = SETTINGS.changed(epochs=1, precision="auto")
    monkeypatch.setattr("ssdvae.training.loop.choose_precision", lambda device, hidden: "bf16")
    with caplog.at_level("INFO"):
        run = train(corpus, tmp_path / "run", settings)
    assert "products in bf16" in caplog.text
    assert run.config()[1].precision == "bf16"
    monkeypatch.setattr("ssdvae.training.loop.choose_precision", lambda device, hidden: "fp32")
    assert train_or_resume(corpus, run.folder, settings).config()[1].precision == "bf16"
    with pytest.raises(UserError, match="precision is bf16 there and fp32 here"):
        train_or_resume(corpus, run.folder, settings.changed(precision="fp32"))


def test_weights_and_moments_stay_in_32_bits(corpus: Corpus, tmp_path: Path) -> None:
    run = train(corpus, tmp_path / "run", SETTINGS.changed(epochs=1, precision="bf16"))
    for name in ("model.safetensors", "checkpoint/state.safetensors"):
        types = {x.dtype for x in load_file(run.folder / name).values() if x.is_floating_point()}
        assert types == {torch.float32}


# Batches, masks and noise are functions of the seed


def test_an_epoch_is_a_permutation_in_equal_parts() -> None:
    batches = epoch_batches(103, 10, seed=1, epoch=4)
    assert sorted(np.concatenate(batches)) == list(range(103))
    assert {len(batch) for batch in batches} <= {9, 10}
    again, other = epoch_batches(103, 10, 1, 4), epoch_batches(103, 10, 1, 5)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))
    assert not np.array_equal(batches[0], other[0])


@pytest.mark.parametrize("processes", [1, 2, 3, 7])
def test_the_parts_of_a_batch_go_round_the_processes(processes: int) -> None:
    rows = np.arange(20)
    parts = [rows[process_slice(rows, p, processes)] for p in range(processes)]
    assert list(np.concatenate(parts)) == list(rows)
    assert min(map(len, parts)) >= 20 // processes


def test_the_noise_of_a_document_does_not_depend_on_the_processes() -> None:
    whole = Noise(generator(1, "noise", 7), 20)
    parts = [Noise(generator(1, "noise", 7), 20, slice(a, a + 5)) for a in range(0, 20, 5)]
    for _ in range(3):
        together = torch.cat([part.gumbel(4) for part in parts])
        assert torch.equal(whole.gumbel(4), together)


def test_a_higher_chance_of_observing_only_adds_observations(corpus: Corpus) -> None:
    documents = corpus.split("train")
    few, many = (mask_frames(documents, observe, seed=1) for observe in (0.3, 0.8))
    kept = few >= 0
    assert (many[kept] == few[kept]).all()
    assert (mask_frames(documents, 1.0, 1) == documents.frames).all()
    assert (mask_frames(documents, 0.0, 1) == -1).all()
    real = documents.frames >= 0
    count, expected = int((many[real] >= 0).sum()), 0.8 * real.sum()
    assert abs(count - expected) < 4 * (0.8 * 0.2 * real.sum()) ** 0.5


def test_steps_are_counted_as_the_settings_say(uninterrupted: Run) -> None:
    assert [r["step"] for r in uninterrupted.metrics() if r["split"] == "valid"] == [
        PER_EPOCH * (epoch + 1) for epoch in range(EPOCHS)
    ]


def test_a_classifier_that_cannot_be_judged_says_so(tmp_path: Path) -> None:
    event = Event("met", "she", None, "in", frame="Meeting")
    known = [Document(f"d{i}", (event, event)) for i in range(8)]
    unknown = [Document("u", (event.changed(frame=None),))]
    for name, documents in (("train", known), ("valid", unknown), ("test", known)):
        write_jsonl(tmp_path / f"{name}.jsonl", documents)
    files: dict[Split, Path] = {split: tmp_path / f"{split}.jsonl" for split in SPLITS}
    corpus = prepare(files, tmp_path / "corpus", PrepareOptions())
    settings = SETTINGS.changed(model="rnnlm-classifier", observe=1.0, epochs=1)
    with pytest.raises(UserError, match="no event of the validation split has a known frame"):
        train(corpus, tmp_path / "run", settings)


def test_a_run_whose_corpus_has_moved_is_gone_on_with(corpus: Corpus, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(corpus.folder, tmp_path / "corpus"))
    train(Corpus(moved), tmp_path / "run", SETTINGS.changed(epochs=1))
    Run(tmp_path / "run").checkpoint_path.unlink()
    (tmp_path / "run" / "metrics.jsonl").unlink()  # killed between the first two files that it wrote
    moved.rename(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="cannot read"):
        resume(tmp_path / "run")
    assert resume(tmp_path / "run", tmp_path / "elsewhere").state().finished
    assert Run(tmp_path / "run").metrics()
