"""How the folders here were made: with the code of commit b88a29e, before settings had a format number.

    git worktree add ../old b88a29e
    PYTHONPATH=../old/src OMP_NUM_THREADS=1 python tests/runs/format1/make.py

Each run was stopped in the middle of an epoch; ``expected.json`` is what it came to when it was not, and
what the stopped run's best model says of two documents of the validation split.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import torch
from ssdvae.data.storyworld import World  # type: ignore[import-not-found]  # where it was then

import ssdvae
from ssdvae.config import PrepareSettings, TrainSettings
from ssdvae.data.batches import Noise, collate
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.training import train as training

HERE = Path(__file__).parent
MODELS: dict[str, dict[str, Any]] = {
    "ssdvae": {"prior": "markov", "prior_rank": 2, "latents": 9},
    "haqae": {"latents": 2, "codes": 3, "code_width": 3, "prior": "history"},
}


def main() -> None:
    os.chdir(HERE)
    write_jsonl(Path("events.jsonl"), World.embedded().documents(40, 1))
    size = PrepareSettings(
        vocabulary=12, frames=4, events=3, cloze_items=0, valid_share=0.2, test_share=0.1, keep_frameless=True
    )
    corpus = prepare(Path("events.jsonl"), Path("corpus"), size)
    expected = {}
    for name, own in MODELS.items():
        settings = TrainSettings(
            model=name,
            hidden=4,
            embedding=4,
            layers=1,
            batch=4,
            epochs=2,
            record_steps=3,
            save_minutes=0,
            **own,
        )
        training.train(corpus, Path("whole"), settings)
        metrics = [json.loads(line) for line in (Path("whole") / "metrics.jsonl").read_text().splitlines()]
        shutil.rmtree(Path("whole"))
        original, steps = training._Training._count, iter(range(99))  # type: ignore[attr-defined]  # as it was called then

        def stop(self: Any, state: Any, step: Any, count: Any = original, steps: Any = steps) -> None:
            count(self, state, step)
            if next(steps) == 9:
                os.kill(os.getpid(), signal.SIGTERM)

        training._Training._count = stop  # type: ignore[attr-defined]
        with contextlib.suppress(training.Interrupted):  # type: ignore[attr-defined]  # there, in that code
            training.train(corpus, Path(name), settings)
        training._Training._count = original  # type: ignore[attr-defined]
        model = ssdvae.load(Path(name))
        batch = collate(corpus.split("valid"), np.arange(2))
        beliefs = model.infer(batch)
        assert beliefs is not None
        expected[name] = {
            "metrics": metrics,
            "infer": beliefs.log_q.exp().tolist(),
            "bounds": model.bounds(batch, 2, Noise(torch.Generator().manual_seed(0), 2)).tolist(),
        }
        config = Path(name) / "config.yaml"
        config.write_text(config.read_text().replace(str(HERE.resolve()) + "/", "/somewhere/"))
    Path("expected.json").write_text(json.dumps(expected, indent=1) + "\n")
    Path("events.jsonl").unlink()


if __name__ == "__main__":
    main()
