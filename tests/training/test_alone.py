"""One process trains a run; what is killed at any moment is not in the way; nothing infinite is kept."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

import ssdvae
from ssdvae.data.corpus import Corpus
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.run import Run, State
from ssdvae.io.scores import read_scores
from ssdvae.io.weights import NotFinite
from ssdvae.models.base import Model
from ssdvae.training.train import resume, train
from tests.training.conftest import SETTINGS, command, flags

DOCS = Path(__file__).parents[2] / "docs" / "train.md"


def copied(run: Run, to: Path) -> Run:
    return Run(Path(shutil.copytree(run.folder, to)))


def test_a_second_training_of_the_same_folder_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    """While one waits in its first step, two others come: a new one, and one that resumes."""
    out = tmp_path / "run"
    slow = SETTINGS.changed(epochs=10_000, patience=10_000, save_minutes=0)
    first = subprocess.Popen(
        command("train", corpus.folder, "--out", out, *flags(slow)), stderr=subprocess.PIPE, text=True
    )
    try:
        assert first.stderr is not None
        while not (out / "checkpoint" / "state.safetensors").exists():
            assert first.poll() is None, first.stderr.read()
            time.sleep(0.05)
        with pytest.raises(UserError, match=r"another process is training .*run"):
            train(corpus, out, SETTINGS)
        with pytest.raises(UserError, match=r"another process is training .*run"):
            resume(out)
    finally:
        first.kill()
        first.wait()
    # The lock of a killed process is not in the way.
    assert (out / ".lock").exists()
    with Run(out).lock():
        pass
    assert not (out / ".lock").exists()
    with pytest.raises(UserError, match="already there and not empty"):
        train(corpus, out, SETTINGS)


def test_a_run_killed_before_its_first_file_can_be_started_again(corpus: Corpus, tmp_path: Path) -> None:
    out = tmp_path / "run"
    for left in ("", ".lock", "checkpoint/", ".config.yaml.0.tmp/new.yaml"):
        path = out / left
        (path if left.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if left and not left.endswith("/"):
            path.write_text("")
        with Run(out).lock(new=True):
            pass
    with pytest.raises(UserError, match=r"no config\.yaml"):
        resume(out)
    train(corpus, out, SETTINGS)
    assert not [p for p in out.iterdir() if p.name.startswith(".")]


def test_of_a_run_that_never_began_nothing_is_left(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="parameters takes"):
        train(corpus, tmp_path / "run", SETTINGS.changed(hidden=10**9))
    assert not list(tmp_path.iterdir())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes").write_text("keep")
    with pytest.raises(UserError, match="not empty"):
        train(corpus, tmp_path / "mine", SETTINGS)
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["notes"]


WRITER = """
import sys
from pathlib import Path
from ssdvae.io.scores import Measurement, write_scores
for number in range(40):
    m = {"task": "perplexity", "data": f"{sys.argv[2]}{number}", "sha256": "0" * 64, "items": 1}
    m |= {"settings": {}, "version": "0", "model_sha256": "0" * 64, "scores": {"ppl": 1.0}}
    write_scores(Path(sys.argv[1]), [Measurement(**m)])
"""


def test_scores_of_many_writers_are_all_kept(tmp_path: Path) -> None:
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, name]) for name in "ab"]
    assert [writer.wait() for writer in writers] == [0, 0]
    assert {m.data for m in read_scores(tmp_path)} == {f"{n}{i}" for n in "ab" for i in range(40)}
    assert [p.name for p in tmp_path.iterdir()] == ["scores.json"]


def _launchers() -> list[str]:
    """The lines of docs/train.md that start several processes."""
    lines = [line.strip() for line in DOCS.read_text().splitlines()]
    return [line for line in lines if line.startswith(("torchrun ", "accelerate launch "))]


@pytest.mark.slow
@pytest.mark.parametrize("line", _launchers())
def test_the_launchers_that_the_docs_name_start_two_processes(
    line: str, corpus: Corpus, tmp_path: Path
) -> None:
    words = [str(corpus.folder) if word == "corpus" else word for word in shlex.split(line)]
    words[words.index("--out") + 1] = str(tmp_path / "run")
    words[0] = str(Path(sys.executable).parent / words[0])
    more = flags(SETTINGS.changed(epochs=1))
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([*words, *more], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert "training in 2 processes on cpu" in done.stderr
    assert Run(tmp_path / "run").state().finished


def test_the_docs_name_both_launchers() -> None:
    assert {line.split()[0] for line in _launchers()} == {"torchrun", "accelerate"}


# What is not finite


def test_a_diverging_run_says_so_and_can_be_looked_at(
    corpus: Corpus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = train(corpus, tmp_path / "run", SETTINGS.changed(learning_rate=1.0, decay=False))
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert sum("worse than a guess among all 300 words" in warning for warning in warnings) == 1
    scores = ssdvae.evaluate(run.folder)
    assert scores["ppl"] is None or scores["ppl"] > 300
    ssdvae.write_report([run.folder], tmp_path / "page.html")
    texts = [*run.metrics_path.read_text().splitlines(), (run.folder / "scores.json").read_text()]
    for text in texts:
        json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_weights_that_are_not_finite_are_not_saved(
    uninterrupted: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model.read(uninterrupted.folder)
    next(model.parameters()).data.view(-1)[3] = torch.nan
    with pytest.raises(NotFinite, match="the model is not saved"):
        model.save_pretrained(tmp_path / "model")
    assert not (tmp_path / "model" / "model.safetensors").exists()
    run = copied(uninterrupted, tmp_path / "run")
    before = run.checkpoint_path.read_bytes()
    with pytest.raises(NotFinite, match="not written"):
        run.save(State(), model, torch.optim.Adam(model.parameters()))
    assert run.checkpoint_path.read_bytes() == before


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_not_loaded(uninterrupted: Run, tmp_path: Path, value: float) -> None:
    run = copied(uninterrupted, tmp_path / "run")
    for name in ("model.safetensors", "checkpoint/state.safetensors"):
        tensors = load_file(run.folder / name)
        next(t for t in tensors.values() if t.numel() > 3 and t.is_floating_point()).view(-1)[3] = value
        # Without its seal, as a file of an older version.
        metadata = {"state": "{}"} if "checkpoint" in name else None
        save_file(tensors, run.folder / name, metadata=metadata)
    with pytest.raises(DataError, match=r"model\.safetensors: found numbers that are not finite in"):
        ssdvae.evaluate(run.folder)
    with pytest.raises(DataError, match=r"state\.safetensors: found numbers that are not finite in"):
        resume(run.folder)


def test_one_bit_of_the_weights_is_noticed(uninterrupted: Run, tmp_path: Path) -> None:
    run = copied(uninterrupted, tmp_path / "run")
    for name in ("model.safetensors", "checkpoint/state.safetensors"):
        content = bytearray((run.folder / name).read_bytes())
        content[-20] ^= 1
        (run.folder / name).write_bytes(content)
    with pytest.raises(DataError, match=r"model\.safetensors: found other numbers than were written"):
        Model.read(run.folder)


def test_a_bit_of_a_checkpoint_is_noticed(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run that is not finished."""
    run = _stopped(corpus, tmp_path, monkeypatch)
    content = bytearray(run.checkpoint_path.read_bytes())
    content[-20] ^= 1
    run.checkpoint_path.write_bytes(content)
    with pytest.raises(DataError, match=r"state\.safetensors: found other numbers than were written"):
        resume(run.folder)


def _stopped(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run that a signal stopped after its first step."""
    save = Run.save

    def save_and_stop(self: Run, state: State, *more: Any) -> None:
        save(self, state, *more)
        if state.step == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", save_and_stop)
        with pytest.raises(UserError, match="stopped after step"):
            train(corpus, tmp_path / "run", SETTINGS.changed(save_minutes=0))
    return Run(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("step", -5, "found -5 at step, expected 0 or more"),
        ("step", "5", "found '5' at step, expected a whole number"),
        ("step", 2.5, "found 2.5 at step, expected a whole number"),
        ("step", 10**30, "found 1000000000000000000000000000000 at step, expected a whole number"),
        ("records", None, "found None at records"),
        ("sums", [1], r"found \[1\] at sums, expected a mapping"),
        ("sums", {"loss": "x"}, "found 'x' at sums.loss, expected a number"),
        ("best_step", 99, "found 99 at best_step, expected at most"),
        ("unknown", 1, "found 'unknown'"),
    ],
)
def test_the_state_of_a_checkpoint_gone_wrong(
    uninterrupted: Run, tmp_path: Path, name: str, value: Any, message: str
) -> None:
    run = copied(uninterrupted, tmp_path / "run")
    state = {**vars(run.state()), "finished": False, name: value}
    tensors = load_file(run.checkpoint_path)
    save_file(tensors, run.checkpoint_path, metadata={"state": json.dumps(state)})
    with pytest.raises(DataError, match=rf"state\.safetensors: {message}"):
        resume(run.folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"config\.yaml: found None"),
        (b"seed: \xff\n", r"config\.yaml, line 1: found the byte 0xff"),
        (b"a: [\n", r"config\.yaml, line 2: found"),
        (b"[" * 5000, r"config\.yaml: found brackets within brackets"),
        (b"1: 2\n", r"config\.yaml: found 1 as a name"),
        (b"corpus: [a]\n", r"config\.yaml: found \['a'\] at corpus, expected text"),
        (b"format: 1\ncorpus: a\nhidden: x\n", r"config\.yaml: --hidden: found 'x'"),
        (b"corpus: a\nhidden: 8\n", r"config\.yaml: found options in format None, expected 1"),
        (b"format: 6\ncorpus: a\n", r"config\.yaml: found options in format 6, expected 1"),
        (b"format: 1\ncorpus: a\nseed: 99999999999999999999999\n", r"config\.yaml: --seed"),
        (b"format: 1\ncorpus: a\nwhen: 0000-00-00\n", r"config\.yaml: found|config\.yaml: "),
        (b'format: 1\ncorpus: "a\\0b"\n', "no file can have this name|other settings"),
    ],
)
def test_a_config_gone_wrong(uninterrupted: Run, tmp_path: Path, content: bytes, message: str) -> None:
    run = copied(uninterrupted, tmp_path / "run")
    run.checkpoint_path.unlink()  # which would say that the settings are not its own
    run.config_path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        resume(run.folder)


def test_settings_that_were_edited_are_noticed_and_a_corpus_may_move(
    uninterrupted: Run, tmp_path: Path
) -> None:
    run = copied(uninterrupted, tmp_path / "run")
    values = yaml.safe_load(run.config_path.read_text())
    run.config_path.write_text(yaml.safe_dump({**values, "corpus": "elsewhere"}))
    assert run.config()[0] == Path("elsewhere")
    run.config_path.write_text(yaml.safe_dump({**values, "batch": 17}))
    with pytest.raises(DataError, match="other options than those that the run began with"):
        run.config()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "Expecting"),
        (b"[]", "expected a mapping"),
        (b"\xff", "utf-8"),
        (b"[" * 100_000, "brackets within brackets"),
        (b'{"step": 1, "epoch": 1, "seconds": 1, "split": 3}', "found 3 at split"),
        (b'{"step": 1, "epoch": 1, "seconds": 1, "split": "valid", "words": {}}', "found {} at words"),
        (b'{"step": -1, "epoch": 1, "seconds": 1, "split": "valid"}', "found -1 at step"),
        (b'{"step": 1, "epoch": 1, "seconds": 1, "split": "valid", "ppl": 0}', "found 0 at ppl"),
        (b'{"step": 1, "epoch": 1, "seconds": 1, "split": "valid", "ppl": "x"}', "found 'x' at ppl"),
    ],
)
def test_a_record_gone_wrong_is_named_by_its_line(
    uninterrupted: Run, tmp_path: Path, line: bytes, message: str
) -> None:
    run = copied(uninterrupted, tmp_path / "run")
    lines = run.metrics_path.read_bytes().splitlines()
    lines[1] = line
    run.metrics_path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(DataError, match=rf"metrics\.jsonl, line 2: (?s:.*){message}"):
        ssdvae.write_report([run.folder], tmp_path / "page.html")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "expected scores"),
        ([1], "measurement 1: found 1, expected a mapping"),
        ([{}], "measurement 1: found no task"),
        (["NaN"], "measurement 1"),
    ],
)
def test_scores_of_another_shape(tmp_path: Path, value: Any, message: str) -> None:
    (tmp_path / "scores.json").write_text(json.dumps(value))
    with pytest.raises(DataError, match=rf"scores\.json(?s:.*){message}"):
        read_scores(tmp_path)
