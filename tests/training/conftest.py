"""A small corpus, and runs of a dozen steps on it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ssdvae.data.corpus import Corpus
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.io.run import Run
from ssdvae.storyworld.world import World
from ssdvae.training.options import TrainOptions
from ssdvae.training.train import train
from tests.shared import made_once

DOCUMENTS, PER_EPOCH, EPOCHS = 120, 6, 2
SETTINGS = TrainOptions(
    record_steps=2,
    embedding=8,
    hidden=8,
    layers=1,
    batch=18,
    epochs=EPOCHS,
    decay=True,
    validate_steps=PER_EPOCH,
    save_minutes=1e9,
)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """So that these runs and those in other processes add up numbers in the same order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    def make(folder: Path) -> None:
        write_jsonl(folder / "events.jsonl", World.embedded().documents(DOCUMENTS, seed=3))
        settings = PrepareOptions(vocabulary=300, events=6, valid_share=0.1, test_share=0.05)
        prepare(folder / "events.jsonl", folder / "corpus", settings)

    return Corpus(made_once(tmp_path_factory, "training-corpus", make) / "corpus")


@pytest.fixture(scope="session")
def uninterrupted(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Run:
    torch.set_num_threads(1)
    folder = made_once(
        tmp_path_factory, "uninterrupted", lambda folder: train(corpus, folder / "run", SETTINGS)
    )
    return Run(folder / "run")


def flags(settings: TrainOptions) -> list[str]:
    """The settings as a user would give them."""
    given = []
    for name, value in settings.to_dict().items():
        flag = name.replace("_", "-")
        if isinstance(value, bool):
            given.append(f"--{flag}" if value else f"--no-{flag}")
        elif value is not None:
            given.append(f"--{flag}={value}")
    return given


def command(*words: object) -> list[str]:
    return [sys.executable, "-m", "ssdvae", *map(str, words)]


def start(*words: object) -> subprocess.Popen[str]:
    return _start(command(*words))


def launch(processes: int, *words: object) -> subprocess.Popen[str]:
    """Start a script, or `-m` and a module, in several processes that know of each other."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    return _start([*launcher, *map(str, words)])


def _start(words: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        words,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def assert_same_run(run: Run, other: Run) -> None:
    """Bit for bit: the model, the optimiser, and every figure on the way but the time."""
    for name in ("model.safetensors", "checkpoint/state.safetensors"):
        first, second = (load_file(r.folder / name) for r in (run, other))
        assert first.keys() == second.keys()
        different = [key for key in first if not torch.equal(first[key], second[key])]
        assert not different, f"{name}: {different}"
    first_records, second_records = ([{**r, "seconds": 0} for r in run_.metrics()] for run_ in (run, other))
    assert first_records == second_records
