"""Training on several machines: torchrun as it is, and runs that go on by themselves."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

import ssdvae
from ssdvae.cli import main
from ssdvae.data.corpus import Corpus
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.run import Run, State
from ssdvae.training.train import train_or_resume
from tests.extraction.stopping import Stopped
from tests.training.conftest import SETTINGS, assert_same_run, flags, launch

LONG = SETTINGS.changed(epochs=12, patience=100, save_minutes=0)


def test_a_run_is_begun_or_gone_on_with(corpus: Corpus, uninterrupted: Run, tmp_path: Path) -> None:
    """The same command until it is finished, and after that nothing is done."""
    out, validations = tmp_path / "run", iter([None])

    def look(*_: object) -> None:
        if next(validations, Stopped) is Stopped:
            raise Stopped

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssdvae.training.trainer.check_finite", look)  # in the second validation
        with pytest.raises(Stopped):
            train_or_resume(corpus, out, SETTINGS)
    assert Run(out).state().step > 0
    train_or_resume(corpus, out, SETTINGS)
    assert_same_run(Run(out), uninterrupted)
    before = {p: p.stat().st_mtime_ns for p in out.rglob("*")}
    train_or_resume(corpus, out, SETTINGS)
    assert {p: p.stat().st_mtime_ns for p in out.rglob("*")} == before


def test_other_settings_are_not_gone_on_with(corpus: Corpus, uninterrupted: Run) -> None:
    with pytest.raises(UserError, match=r"begun with other settings: seed is 1 there and 7 here\n"):
        train_or_resume(corpus, uninterrupted.folder, SETTINGS.changed(seed=7))


def test_the_flag_and_the_argument(
    corpus: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = SETTINGS.changed(epochs=1)
    out, words = tmp_path / "run", flags(settings)
    for _ in range(2):
        assert main(["train", str(corpus.folder), "--out", str(out), "--exist-ok", *words]) == 0
    assert "is finished" in capsys.readouterr().err
    assert ssdvae.train(corpus, out, exist_ok=True, progress=False, **settings.to_dict()).folder == out
    assert main(["train", "--resume", str(out), "--exist-ok"]) == 2


# The store that workers share with their agent is told to a new agent only if that one becomes the first:
# otherwise it waits for a minute and gives up (pytorch issue 135712). docs/scale.md says so, too.
OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


def _agent(port: int, corpus: Corpus, out: Path) -> subprocess.Popen[bytes]:
    """One machine of two, as a cluster starts it."""
    rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "test"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nnodes", "2", "--nproc-per-node", "1"]
    command = ["-m", "ssdvae", "train", str(corpus.folder), "--out", str(out), "--exist-ok", *flags(LONG)]
    return subprocess.Popen(
        [*torchrun, *rendezvous, "--max-restarts", "3", *command],
        env={**os.environ, "OMP_NUM_THREADS": "1", **OWN_STORE},
        stderr=subprocess.DEVNULL,
    )


def _lose(agent: subprocess.Popen[bytes]) -> None:
    """The machine is gone: the agent and its workers at the same time."""
    for process in [psutil.Process(agent.pid), *psutil.Process(agent.pid).children(recursive=True)]:
        process.kill()
    agent.wait()


@pytest.mark.slow
def test_a_lost_machine_comes_back_and_the_run_ends_as_it_would_have(corpus: Corpus, tmp_path: Path) -> None:
    whole = launch(2, "-m", "ssdvae", "train", corpus.folder, "--out", tmp_path / "whole", *flags(LONG))
    assert whole.wait(timeout=600) == 0
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    out = tmp_path / "run"
    agents = [_agent(port, corpus, out) for _ in range(2)]
    try:
        # The store of the meeting is in the one that came first: the other one is lost.
        while _state(out).step < 2:
            assert all(agent.poll() is None for agent in agents)
            time.sleep(0.01)
        first = _host(agents, port)
        _lose(agents[1 - first])
        assert not _state(out).finished
        agents[1 - first] = _agent(port, corpus, out)
        for agent in agents:
            assert agent.wait(timeout=600) == 0
    finally:
        for agent in agents:
            if agent.poll() is None:
                _lose(agent)
    assert_same_run(Run(out), Run(tmp_path / "whole"))


def _state(out: Path) -> State:
    """Return the state of a run that others write: a checkpoint may be replaced while it is read."""
    while True:
        try:
            return Run(out).state()
        except DataError:
            time.sleep(0.01)


def _host(agents: list[subprocess.Popen[bytes]], port: int) -> int:
    """The agent that listens at the port."""
    for number, agent in enumerate(agents):
        for connection in psutil.Process(agent.pid).net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port:
                return number
    raise AssertionError("nobody listens")


@pytest.mark.parametrize("name", ["wandb", "nothing"])
def test_a_tracker_that_cannot_be_had_is_named(name: str, corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=rf"--track:? .*{name}"):
        train_or_resume(corpus, tmp_path / "run", SETTINGS.changed(track=name))
    assert not list(tmp_path.iterdir())
