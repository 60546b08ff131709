"""The benchmark: its arithmetic, not its times."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ssdvae.benchmark import benchmark
from ssdvae.cli.main import main
from ssdvae.config import BenchmarkSettings
from ssdvae.models import MODELS

SMALL: dict[str, Any] = {
    "vocabulary": 50,
    "frames": 7,
    "hidden": 8,
    "embedding": 6,
    "batch": 4,
    "eval_batch": 6,
    "steps": 2,
}


@pytest.mark.parametrize("model", MODELS)
def test_efficiency_is_work_by_time_and_by_the_rate_of_matrices(model: str) -> None:
    result = benchmark(BenchmarkSettings(model=model, **SMALL))
    for phase, documents in (("train", 4), ("evaluate", 6)):
        timed = result[phase]
        assert timed["efficiency"] == pytest.approx(
            timed["gflop"] / timed["seconds"] / timed["gemm_gflops"], rel=1e-9
        )
        assert timed["documents_per_second"] == pytest.approx(documents / timed["seconds"])
    assert result["train"]["gflop"] / result["evaluate"]["gflop"] == pytest.approx(3 * 4 / 6)
    assert result["train"]["peak_memory_mb"] >= result["evaluate"]["peak_memory_mb"] > 50


def test_one_json_object_or_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    assert main(["benchmark", "--model=rnnlm", "--json", *flags]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {"seconds", "gflop", "efficiency", "peak_memory_mb"} <= result["train"].keys()
    assert main(["benchmark", "--model=rnnlm", *flags]) == 0
    assert "efficiency" in capsys.readouterr().out
