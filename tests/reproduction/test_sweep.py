"""``ssdvae reproduce`` from one end to the other: finished, killed, stopped, failing, and asked again."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import ssdvae
from ssdvae.cli import main
from ssdvae.data.options import PrepareOptions, cores
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.io.errors import UserError
from ssdvae.io.run import Run
from ssdvae.reproduction import sweep as sweeping
from ssdvae.reproduction.job import Job
from ssdvae.reproduction.paper import HAQAE, RNNLM, Trial
from ssdvae.reproduction.sweep import SweepState, duration, environments
from ssdvae.storyworld.world import World
from ssdvae.training.options import TrainOptions
from tests.clusters import three_machines
from tests.shared import made_once

SMALL = [
    *("--scale=tiny", "--hidden=8", "--embedding=8", "--epochs=2", "--batch=50"),
    *("--bound-samples=2", "--cloze-seeds=2", "--jobs=2"),
]
PREPARED = PrepareOptions.sized("tiny", valid_share=0.25, test_share=0.1, cloze_items=6, vocabulary=120)
ALL = ["all", "--observe=0,0.9", "--seeds=1", "--models=ssdvae,rnnlm-classifier", *SMALL]
TRIALS = {
    "ssdvae-0.0-seed1",
    "ssdvae-0.9-seed1",
    "single-rnnlm-classifier-seed1",
    "single-ssdvae-0.0-seed1",
    "single-ssdvae-0.9-seed1",
}


def changed(words: list[str], *flags: str) -> list[str]:
    """Return the words with other values for some flags."""
    names = [flag.partition("=")[0] for flag in flags]
    return [*(word for word in words if word.partition("=")[0] not in names), *flags]


def start(*words: object) -> subprocess.Popen[str]:
    """A sweep that is the first of a group of processes, as one in a terminal is."""
    return subprocess.Popen(
        [sys.executable, "-m", "ssdvae", "reproduce", *map(str, words)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(folder: Path) -> None:
        write_jsonl(folder / "events.jsonl", World.embedded().documents(160, seed=5))
        prepare(folder / "events.jsonl", folder / "world", PREPARED)

    return made_once(tmp_path_factory, "sweep-corpus", make) / "world"


@pytest.fixture(scope="module")
def whole(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All tables, made without being disturbed."""

    def make(folder: Path) -> None:
        process = start(*ALL, "--data", corpus, "--out", folder / "out")
        said, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        assert len(said.splitlines()) == 8, said
        assert errors.count("finished ") == len(TRIALS)
        assert "5 left" in errors.splitlines()[0]

    return made_once(tmp_path_factory, "whole-sweep", make) / "out"


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))


def tables(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "tables").iterdir()}


def trials_in_log(process: subprocess.Popen[str], word: str, times: int) -> list[str]:
    """Return the trials of which a sweep has said something, as soon as it has said so many times."""
    assert process.stderr is not None
    trials: list[str] = []
    for line in process.stderr:
        if line.startswith(f"{word} "):
            trials.append(line.split()[1])
            if len(trials) == times:
                return trials
    raise AssertionError(f"the sweep ended after {trials}")


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    deadline = time.monotonic() + 600
    while not condition():
        assert process is None or process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_sweep_leaves_ordinary_runs_and_tables_in_every_format(whole: Path, corpus: Path) -> None:
    assert {path.name for path in (whole / "runs").iterdir()} == TRIALS
    names = {"claims", "perplexity", "ablation", "cloze", "frames", "attention", "curves", "curves-by-step"}
    written = {f"{n}-valid.{suffix}" for n in names for suffix in ("md", "tex", "csv")}
    assert set(tables(whole)) == {*written, "cells.csv"}
    # Each run can be read and measured by the ordinary commands, and the tables show what they show.
    for observe in (0.0, 0.9):
        run = whole / "runs" / f"ssdvae-{observe}-seed1"
        assert Run(run).config()[1].observe == observe
        scores = ssdvae.evaluate(run, tasks="perplexity", bound_samples=2)
        rows = list(csv.DictReader((whole / "tables" / "perplexity-valid.csv").open(encoding="utf-8")))
        (row,) = [r for r in rows if r["ε"] == f"{observe:g}"]
        assert float(row["ppl bound"]) == pytest.approx(scores["ppl_bound"], rel=1e-6)
        assert float(row["ppl with separators, ours"]) == pytest.approx(
            scores["ppl_with_separators"], rel=1e-6
        )
    single = json.loads((whole / "single-events" / "manifest.json").read_text())
    documents = json.loads((corpus / "manifest.json").read_text())
    assert single["splits"]["valid"]["documents"] == documents["splits"]["valid"]["events"]
    page = (whole / "report.html").read_text(encoding="utf-8")
    assert f"{scores['ppl_bound']:.2f}" in page
    assert "not tested with enough seeds" in page


@pytest.mark.slow
def test_a_sweep_that_is_killed_halfway_gives_the_same_tables(
    corpus: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = start(*ALL, "--data", corpus, "--out", out)
    before = trials_in_log(process, "finished", 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    process = start(*ALL, "--data", corpus, "--out", out)
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert "2 done, 3 left" in errors
    assert not [name for name in before if f"started {name}" in errors]
    assert tables(out) == tables(whole)


@pytest.mark.journey
def test_a_sweep_on_a_cluster_that_loses_a_machine_gives_the_same_tables(
    corpus: Path, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    out = tmp_path / "out"
    with three_machines(monkeypatch.setenv) as machines:
        words = [*ALL, "--data", corpus, "--out", out]
        process = start(*words, "--engine=ray", f"--address={machines.address}", "--jobs=3")
        trials_in_log(process, "started", 3)
        wait_for(lambda: any((out / "runs").glob("*/checkpoint/state.safetensors")), process)
        machines.lose()
        _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert tables(out) == tables(whole)


@pytest.mark.slow
def test_a_sweep_is_stopped_and_gone_on_with(corpus: Path, tmp_path: Path) -> None:
    """Cells end with the sweep, however it ends, and save first; two sweeps never share a folder."""
    out = tmp_path / "out"
    endless = changed(SMALL, "--epochs=100000", "--patience=100000")
    words = ["curves", "--models=haqae", "--seeds=1", *endless]
    words += ["--data", str(corpus), "--out", str(out)]
    run = Run(out / "runs" / "haqae-seed1")
    process = start(*words)
    wait_for(lambda: run.state().step > 0, process)
    assert main(["reproduce", *words]) == 2  # another sweep is at work
    process.kill()  # the sweep alone
    process.communicate()

    def free() -> bool:
        try:
            with sweeping.exclusive_lock(out):
                return True
        except UserError:
            return False

    wait_for(free)
    stopped = run.state().step
    process = start(*words)
    wait_for(lambda: run.state().step > stopped, process)
    os.killpg(process.pid, signal.SIGINT)  # Ctrl-C at a terminal
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 130
    assert "go on with the same command" in errors
    assert "Traceback" not in errors
    log = (out / "logs" / "haqae-seed1.log").read_text()
    assert log.count("stopped after step") == 2
    assert f"resuming {run.folder} after step {stopped}" in log
    assert "Traceback" not in log
    with sweeping.exclusive_lock(out):
        assert not run.state().finished


def test_asking_again_makes_only_the_tables_anew(
    copied: Path, corpus: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_trial(*_: object) -> None:
        raise AssertionError("a trial was started")

    monkeypatch.setattr(sweeping, "_start", no_trial)
    runs = {p: p.read_bytes() for p in (copied / "runs").rglob("*") if p.is_file()}
    shutil.rmtree(copied / "tables")
    assert main(["reproduce", *ALL, "--data", str(corpus), "--out", str(copied)]) == 0
    assert tables(copied) == tables(whole)
    assert {p: p.read_bytes() for p in (copied / "runs").rglob("*") if p.is_file()} == runs
    # Other tables are made of the same trials; the verdicts rest on all that are there, of whatever model.
    for target in ("attention", "curves"):
        shutil.rmtree(copied / "tables")
        words = ["reproduce", target, *changed(ALL[1:], "--models=ssdvae")]
        assert main([*words, "--data", str(corpus), "--out", str(copied)]) == 0
        assert {name: tables(whole)[name] for name in tables(copied)} == tables(copied)
        assert {"claims-valid.md", f"{target}-valid.md"} <= set(tables(copied)) != set(tables(whole))


def test_trials_in_cells_are_not_run_again(
    whole: Path,
    corpus: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Without their run folders the tables are the same, learning curves and all."""

    def no_trial(*_: object) -> None:
        raise AssertionError("a trial was started")

    monkeypatch.setattr(sweeping, "_start", no_trial)
    kept = shutil.copy(whole / "tables" / "cells.csv", tmp_path / "cells.csv")
    words = ["reproduce", *ALL, "--data", str(corpus), "--cells", str(kept)]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert tables(tmp_path / "out") == tables(whole)
    # Cells that this command does not ask for are not lost to the next one.
    Path(kept).write_text(Path(kept).read_text() + "zoo,0123,corpus,ppl,9.5,\n")
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert tables(tmp_path / "out") == {**tables(whole), "cells.csv": Path(kept).read_bytes()}
    assert main([*changed(words, "--hidden=9"), "--out", str(tmp_path / "other")]) == 2
    assert "was made with other options" in capsys.readouterr().err
    for line in ("a,b,corpus,ppl,much,", "a,b,later,validation_ppl,9,", "a,b,5,validation_ppl,9,"):
        (tmp_path / "cells.csv").write_text(f"trial,fingerprint,data,figure,value,mark\n{line}\n")
        assert main([*words, "--out", str(tmp_path / "bad")]) == 2
        assert "cells.csv, line 2" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "difference"),
    [
        (["--hidden=9"], "hidden is 8 there and 9 here"),
        (["--epochs=3", "--decay"], "decay is False there and True here; epochs is 2 there and 3 here"),
        (["--frame-weight=0.2"], "frame_weight is 0.1 there and 0.2 here"),
    ],
)
def test_a_run_of_other_options_is_refused(
    copied: Path, corpus: Path, words: list[str], difference: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *changed(ALL, *words), "--data", str(corpus), "--out", str(copied)]) == 2
    assert difference in capsys.readouterr().err


def test_a_run_of_another_corpus_is_refused(
    copied: Path, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(
        prepare(corpus.parent / "events.jsonl", tmp_path / "other", PrepareOptions.sized("tiny")).folder
    )
    for target, said in (("frames", "made from another corpus"), ("curves", "trained on another corpus")):
        assert main(["reproduce", target, *ALL[1:], "--data", other, "--out", str(copied)]) == 2
        assert said in capsys.readouterr().err
        shutil.rmtree(copied / "single-events", ignore_errors=True)


def test_a_failed_trial_does_not_stop_the_others(
    copied: Path, corpus: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One model is damaged, and another one was not measured yet."""
    (copied / "runs" / "ssdvae-0.0-seed1" / "model.safetensors").write_bytes(b"junk")
    (copied / "runs" / "ssdvae-0.9-seed1" / "scores.json").unlink()
    words = ["reproduce", "attention", *ALL[1:], "--data", str(corpus), "--out", str(copied)]
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "ssdvae-0.0-seed1 failed (exit code" in said
    assert "model.safetensors" in said
    assert "finished ssdvae-0.9-seed1" in said
    assert "1 of 2 trials failed" in said
    rows = (copied / "tables" / "attention-valid.md").read_text().splitlines()
    assert [row for row in rows if "| 0.9 |" in row] == [
        row for row in (whole / "tables" / "attention-valid.md").read_text().splitlines() if "| 0.9 |" in row
    ]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["cloze,poems"], "no table 'poems'; there are: perplexity, frames"),
        (["all", "--data=nowhere"], "cannot read nowhere"),
        (["cloze", "--cloze=nowhere.txt"], "nowhere.txt"),
        (["all", "--vectors=nowhere.txt"], "nowhere.txt"),
        (["frames", "--models=haqae"], "no row of these tables"),
        (["all", "--observe=2"], "--observe"),
    ],
)
def test_a_mistake_is_a_message(
    words: list[str], expected: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [] if any("--data" in word for word in words) else ["--data", str(corpus)]
    assert main(["reproduce", *words, *data, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert expected in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_python_takes_the_options_of_the_flags(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flags, YAML and Python ask for the same runs; what is not given is that of the scale."""
    asked: list[TrainOptions] = []

    def only_ask(jobs: dict[Trial, Job], *_: object) -> dict[Trial, str]:
        asked.extend(job.training for job in jobs.values())
        return {}

    monkeypatch.setattr("ssdvae.reproduction.reproduce.sweep", only_ask)
    monkeypatch.setattr("ssdvae.reproduction.reproduce._Output.write_tables", lambda self: None)
    monkeypatch.setattr("ssdvae.reproduction.reproduce._Output.write_page", lambda self, result: None)
    given: dict[str, Any] = {"scale": "small", "observe": "0.5", "seeds": 1, "hidden": 9, "decay": True}
    ssdvae.reproduce("attention", corpus, tmp_path / "a", **given)
    (tmp_path / "c.yaml").write_text("scale: small\nobserve: '0.5'\nseeds: 1\nhidden: 7\ndecay: true\n")
    words = ["reproduce", "attention", "--data", str(corpus), "--out", str(tmp_path / "b"), "--hidden=9"]
    with pytest.raises(AttributeError):  # there is no result to print
        main([*words, "--config", str(tmp_path / "c.yaml")])
    papers = {"model": "ssdvae", "preset": "small", "observe": 0.5, "hidden": 9, "decay": True}
    # On every machine the same arithmetic, so that figures can be compared.
    assert asked[0] == asked[1] == TrainOptions.chosen({**papers, "precision": "fp32"})
    with pytest.raises(UserError, match="no option 'observed'"):
        ssdvae.reproduce("attention", corpus, tmp_path / "c", observed="1")


@pytest.fixture
def _no_threads_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("ssdvae.reproduction.sweep.cores", lambda: 8)


@pytest.mark.usefixtures("_no_threads_chosen")
def test_cores_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert environments(0, 100) == [{"OMP_NUM_THREADS": "1"}] * 8
    assert environments(2, 100) == [{"OMP_NUM_THREADS": "4"}] * 2
    assert environments(0, 3) == [{"OMP_NUM_THREADS": "2"}] * 3
    assert environments(20, 100) == [{"OMP_NUM_THREADS": "1"}] * 20
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert environments(2, 100) == [{"OMP_NUM_THREADS": "3"}] * 2
    assert cores() >= 1


@pytest.mark.usefixtures("_no_threads_chosen")
def test_gpus_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)

    def used(jobs: int, trials: int) -> list[str]:
        return [place["CUDA_VISIBLE_DEVICES"] for place in environments(jobs, trials)]

    assert used(0, 100) == ["0", "1"]
    assert used(3, 100) == ["0", "1", "0"]
    assert used(0, 1) == ["0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert used(0, 100) == ["5", "7"]


def test_the_time_left_is_that_of_the_trials_left() -> None:
    """Trials of a model cost what those before them did; two workers halve it."""
    trials = [Trial(row, seed, frozenset()) for seed in (1, 2, 3) for row in (RNNLM, HAQAE)]
    state = SweepState(trials, [], workers=2)
    assert state.remaining() is None
    for trial, seconds in zip(trials[:2], (10, 30), strict=True):
        state.start(trial)
        state.running[trial] -= seconds
        assert state.finish(trial) == pytest.approx(seconds, abs=1)
    assert state.remaining() == pytest.approx((2 * 10 + 2 * 30) / 2, abs=3)
    assert state.counts == "2 done, 4 left"
    state.start(trials[2])
    state.fail(trials[2])
    assert state.remaining() == pytest.approx((10 + 2 * 30) / 2, abs=3)
    assert [duration(s) for s in (5, 65, 3700)] == ["5 s", "1 min 5 s", "1 h 1 min"]
