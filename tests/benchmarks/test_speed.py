"""The benchmark: its arithmetic, not its times."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count, cycle
from typing import Any

import pytest
import torch

from benchmarks.speed import (
    SECONDS,
    SHAPES,
    BenchmarkOptions,
    _mean_seconds,
    benchmark,
    main,
    peak_gflops,
)
from ssdvae.io.errors import UserError
from ssdvae.models.registry import MODELS

SMALL: dict[str, Any] = {
    "vocabulary": 50,
    "frames": 7,
    "hidden": 8,
    "embedding": 6,
    "batch": 4,
    "eval_batch": 6,
    "steps": 2,
}


PEAK = "benchmarks.speed.peak_gflops"

READERS = {"ssdvae-exact": 8}
"""Two readers learn, which give words no probability."""


@pytest.mark.parametrize("model", MODELS)
def test_efficiency_is_work_by_time_and_by_the_rate_of_matrices(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine whose steps take 1, 9 and 2 seconds, between which it makes 30, 4 and 5 GFLOP a second.

    The medians count, 2 and 5.
    """
    seconds, rates, steps = cycle([1.0, 9.0, 2.0]), cycle([30.0, 4.0, 5.0]), []

    def timed(work: Callable[[], object]) -> float:
        work()
        steps.append(work)
        return next(seconds)

    monkeypatch.setattr("benchmarks.speed._seconds", timed)
    monkeypatch.setattr(PEAK, lambda device: {"fp32": (rate := next(rates)), "bf16": 2 * rate})
    # The search for the nearest code has no gradient, and is much of the work where codes are many.
    more = {"codes": 4, "code_width": 5} if model == "haqae" else {}
    result = benchmark(BenchmarkOptions(model=model, **{**SMALL, "steps": 3}, **more))
    assert len(steps) == 2 * 3
    for phase, documents in (("train", 4), ("evaluate", 6)):
        figures = result[phase]
        assert figures["fp32_efficiency"] == pytest.approx(figures["gflop"] / 10)
        assert figures["bf16_efficiency"] == pytest.approx(figures["gflop"] / 20)
        assert figures["documents_per_second"] == documents / 2
    # A step is forward and backward, which is twice as much again.
    by_document = result["train"]["gflop"] / 4 / (result["evaluate"]["gflop"] / 6)
    assert 2 < by_document < READERS.get(model, 4)
    assert result["train"]["peak_memory_mb"] >= result["evaluate"]["peak_memory_mb"] > 50


def test_the_work_of_an_evaluation_is_that_of_its_matrices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the GRU, and of the output layer, counted by hand: a multiplication and an addition each."""
    monkeypatch.setattr(PEAK, lambda device: {"fp32": 1.0})
    sizes = {"events": "3", "slots": 4, "layers": 1, "tied": False, "steps": 1}
    result = benchmark(BenchmarkOptions(model="rnnlm", **{**SMALL, **sizes}))
    documents, events, words = 6, 3, 4
    read, hidden, width, vocabulary = events * (words + 1), 8, 6, 50
    gru = read * 3 * hidden * (width + hidden)  # three gates
    output = events * words * hidden * vocabulary
    assert result["evaluate"]["gflop"] * 1e9 == 2 * documents * (gru + output)


def test_the_work_grows_with_what_is_read_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """With twice as many documents it is twice as much, in training and in evaluation."""
    monkeypatch.setattr(PEAK, lambda device: {"fp32": 1.0})
    once = benchmark(BenchmarkOptions(model="ssdvae", **SMALL))
    twice = benchmark(BenchmarkOptions(model="ssdvae", **{**SMALL, "batch": 8, "eval_batch": 12}))
    for phase in ("train", "evaluate"):
        assert twice[phase]["gflop"] == pytest.approx(2 * once[phase]["gflop"])


@pytest.mark.parametrize("native", ["AMX", None])
def test_the_peak_is_that_of_the_fastest_product(native: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two matrices take 2 · rows · inner · columns operations; here all products take the same time."""
    monkeypatch.setattr("benchmarks.speed.bf16_arithmetic", lambda device: native)
    monkeypatch.setattr("benchmarks.speed._mean_seconds", lambda multiply, seconds: 0.5)
    most = max(rows * inner * columns for rows, inner, columns in SHAPES)
    peaks = peak_gflops(torch.device("cpu"))
    assert list(peaks) == (["fp32", "bf16"] if native else ["fp32"])
    assert all(peak == pytest.approx(2 * most / 0.5 / 1e9) for peak in peaks.values())


def test_a_product_is_timed_by_the_time_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look at the clock takes a fifth of the time: four products before the fifth look ends it."""
    clock = count(step=SECONDS / 5)
    monkeypatch.setattr("benchmarks.speed.time.perf_counter", lambda: next(clock))
    assert _mean_seconds(lambda: torch.zeros(1, 1), SECONDS) == pytest.approx(SECONDS / 4)


def test_one_json_object_or_a_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in SMALL.items()]
    main(["--model=rnnlm", "--json", *flags])
    result = json.loads(capsys.readouterr().out)
    assert {"seconds", "gflop", "fp32_efficiency", "peak_memory_mb"} <= result["train"].keys()
    monkeypatch.setenv("COLUMNS", "80")
    main(["--model=rnnlm", *flags])
    shown = capsys.readouterr().out
    assert "of fp32" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_a_mistake_is_a_message() -> None:
    for words in (["--vocabulary", "1000000000"], ["--steps", "0"], ["--stepps", "1"]):
        with pytest.raises(SystemExit, match="error: "):
            main(words)


def test_several_lengths_have_as_many_events_in_a_batch_and_the_first_to_be_held_against() -> None:
    settings = BenchmarkOptions(model="rnnlm", **{**SMALL, "batch": 12, "steps": 1}, events="2, 6,2")
    assert settings.lengths == [2, 6]
    assert (settings.of_length(6).batch, settings.of_length(6).eval_batch) == (4, 2)
    result = benchmark(settings)["events"]
    assert list(result) == ["2", "6"]
    first, second = (result[name]["train"] for name in ("2", "6"))
    assert (first["relative_speed"], first["relative_memory"]) == (1, 1)
    assert second["events_per_second"] == pytest.approx(6 * second["documents_per_second"])
    by_machine = [t["events_per_second"] / t["fp32_gflops"] for t in (first, second)]
    assert second["relative_speed"] == pytest.approx(by_machine[1] / by_machine[0])


@pytest.mark.parametrize("events", ["0", "5,,50", "5,many", "20000"])
def test_a_number_of_events_that_is_none_is_refused(events: str) -> None:
    with pytest.raises(UserError, match="--events"):
        BenchmarkOptions(events=events)


def test_the_benchmark_times_what_is_given_and_no_defaults_of_training() -> None:
    """It has no corpus that ``auto`` could fit."""
    assert BenchmarkOptions.chosen({"model": "rnnlm", "precision": "fp32"}) == BenchmarkOptions(model="rnnlm")
