"""A run that was stopped, in whatever way, ends as if it never had been."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from safetensors import safe_open
from safetensors.torch import load_file

from ssdvae.data.corpus import Corpus
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.io.errors import UserError
from ssdvae.io.run import Run, State
from ssdvae.models.registry import MODELS
from ssdvae.storyworld.tickets import generate_tickets, write_log
from ssdvae.training.loop import Step
from ssdvae.training.train import resume, train
from ssdvae.training.trainer import Trainer
from tests.disks import small_disk
from tests.training.conftest import DOCUMENTS, EPOCHS, PER_EPOCH, SETTINGS, assert_same_run, flags, start

LAST = EPOCHS * PER_EPOCH


class CrashError(Exception):
    """The power fails."""


def crash_after(monkeypatch: pytest.MonkeyPatch, step: int, act: Callable[[], None] = lambda: None) -> None:
    """Let something happen just after a step was taken, before it is recorded or saved."""
    count = Trainer._count

    def counted(self: Trainer, state: State, taken: Step) -> None:
        count(self, state, taken)
        if taken.step == step:
            monkeypatch.undo()
            act()

    monkeypatch.setattr(Trainer, "_count", counted)


def fail() -> None:
    raise CrashError


def saved_step(run: Run) -> int:
    if not run.checkpoint_path.exists():
        return 0
    try:
        with safe_open(run.checkpoint_path, framework="pt") as file:
            return int(json.loads(file.metadata()["state"])["step"])
    except RuntimeError:
        return 0  # safetensors opens a file twice, and between the two a newer one took its place


@pytest.mark.parametrize(
    "every_step", [True, False], ids=["checkpoint at each step", "checkpoint at validations"]
)
@pytest.mark.parametrize("step", [1, 4, PER_EPOCH, PER_EPOCH + 1, LAST - 1])
def test_a_crash_changes_nothing(
    corpus: Corpus,
    uninterrupted: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: int,
    every_step: bool,
) -> None:
    settings = SETTINGS.changed(save_minutes=0) if every_step else SETTINGS
    crash_after(monkeypatch, step, fail)
    with pytest.raises(CrashError):
        train(corpus, tmp_path / "run", settings)
    assert saved_step(Run(tmp_path / "run")) == (
        step - 1 if every_step else (step - 1) // PER_EPOCH * PER_EPOCH
    )
    assert_same_run(resume(tmp_path / "run"), uninterrupted)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_resumes(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, precision: str
) -> None:
    settings = SETTINGS.changed(model=name, precision=precision)
    whole = train(corpus, tmp_path / "whole", settings)
    crash_after(monkeypatch, PER_EPOCH + 3, fail)
    with pytest.raises(CrashError):
        train(corpus, tmp_path / "run", settings)
    assert_same_run(resume(tmp_path / "run"), whole)


@pytest.mark.parametrize("name", ["ssdvae-exact", "rnnlm"])
def test_a_model_with_ends_and_times_resumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write_log(tmp_path / "tickets.xes", generate_tickets(DOCUMENTS, seed=3, known=0.3))
    options = PrepareOptions(valid_share=0.1, test_share=0.05)
    log = prepare(tmp_path / "tickets.xes", tmp_path / "corpus", options)
    assert log.ends
    assert log.times
    settings = SETTINGS.changed(model=name, epochs=1, save_minutes=0)
    whole = train(log, tmp_path / "whole", settings)
    crash_after(monkeypatch, 3, fail)
    with pytest.raises(CrashError):
        train(log, tmp_path / "run", settings)
    assert_same_run(resume(tmp_path / "run"), whole)


@pytest.mark.parametrize(
    "given",
    [
        {"sampled_words": 20},
        {"context_vector": 3},
        {"unnamed_frames": 4, "unnamed_start": 0.7, "observe": 0.5},
    ],
    ids=["sampled words", "a context vector", "unnamed frames, which become latent after the crash"],
)
def test_the_exact_model_resumes_whatever_it_has(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, object]
) -> None:
    settings = SETTINGS.changed(**given)
    whole = train(corpus, tmp_path / "whole", settings)
    crash_after(monkeypatch, PER_EPOCH + 3, fail)
    with pytest.raises(CrashError):
        train(corpus, tmp_path / "run", settings)
    assert_same_run(resume(tmp_path / "run"), whole)


def test_both_readers_are_in_the_checkpoint_and_one_in_the_model(uninterrupted: Run) -> None:
    model, state = (
        load_file(uninterrupted.folder / name)
        for name in ("model.safetensors", "checkpoint/state.safetensors")
    )
    of_reader = {name.removeprefix("frame_reader.") for name in model if name.startswith("frame_reader.")}
    assert of_reader
    assert not [name for name in model if name.startswith("rival.")]
    for reader in ("frame_reader", "rival"):
        assert {f"model/{reader}.{name}" for name in of_reader} <= state.keys()
        assert {f"optimizer/{reader}.{name}/exp_avg" for name in of_reader} <= state.keys()


def wait_for_step(run: Run, step: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 600
    while saved_step(run) < step:
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGINT]
)
def test_a_signal_changes_nothing(corpus: Corpus, tmp_path: Path, number: signal.Signals) -> None:
    """SIGKILL in the middle of anything; SIGTERM and Ctrl-C save and say how to go on."""
    settings = SETTINGS.changed(save_minutes=0, epochs=6)
    run = Run(tmp_path / "run")
    process = start("train", corpus.folder, "--out", run.folder, *flags(settings))
    wait_for_step(run, 3, process)
    process.send_signal(number)
    _, said = process.communicate(timeout=600)
    if number == signal.SIGKILL:
        assert process.returncode == -number
    else:
        assert process.returncode == 128 + number
        assert f"ssdvae train --resume {run.folder}" in said
    assert 3 <= saved_step(run) < 6 * PER_EPOCH
    assert_same_run(resume(run.folder), train(corpus, tmp_path / "whole", settings))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", "4m"):
        yield tmp_path / "disk"


def test_a_full_disk_leaves_the_last_checkpoint(
    corpus: Corpus, uninterrupted: Run, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill() -> None:
        with open(disk / "junk", "wb", buffering=0) as junk, contextlib.suppress(OSError):
            while junk.write(bytes(1000)):
                pass

    crash_after(monkeypatch, PER_EPOCH + 2, fill)
    with pytest.raises(UserError, match="the disk is full"):
        train(corpus, disk / "run", SETTINGS)
    assert saved_step(Run(disk / "run")) == PER_EPOCH
    os.remove(disk / "junk")
    assert_same_run(resume(disk / "run"), uninterrupted)


def test_a_disk_that_becomes_read_only_leaves_the_last_checkpoint(
    corpus: Corpus, uninterrupted: Run, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remount(how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", disk], check=True)

    crash_after(monkeypatch, PER_EPOCH + 2, lambda: remount("ro"))
    with pytest.raises(UserError, match="read-only"):
        train(corpus, disk / "run", SETTINGS)
    remount("rw")
    assert saved_step(Run(disk / "run")) == PER_EPOCH
    assert_same_run(resume(disk / "run"), uninterrupted)


def test_a_finished_run_stays_as_it_is(uninterrupted: Run) -> None:
    before = {path: path.read_bytes() for path in uninterrupted.folder.rglob("*") if path.is_file()}
    resume(uninterrupted.folder)
    assert {path: path.read_bytes() for path in uninterrupted.folder.rglob("*") if path.is_file()} == before


def test_a_run_is_never_overwritten(corpus: Corpus, uninterrupted: Run) -> None:
    with pytest.raises(UserError, match="--resume"):
        train(corpus, uninterrupted.folder, SETTINGS)


def test_a_damaged_checkpoint_is_named(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash_after(monkeypatch, PER_EPOCH + 1, fail)
    with pytest.raises(CrashError):
        train(corpus, tmp_path / "run", SETTINGS)
    path = Run(tmp_path / "run").checkpoint_path
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(UserError, match=r"state\.safetensors"):
        resume(tmp_path / "run")


def test_another_corpus_is_refused(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash_after(monkeypatch, PER_EPOCH + 1, fail)
    with pytest.raises(CrashError):
        train(corpus, tmp_path / "run", SETTINGS)
    monkeypatch.setattr(Corpus, "fingerprint", "another")
    with pytest.raises(UserError, match="is not the one"):
        resume(tmp_path / "run")
