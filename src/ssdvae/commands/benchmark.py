"""`ssdvae benchmark`: time a model."""

from __future__ import annotations

from typing import Any

from ssdvae.commands import Command
from ssdvae.commands.console import show
from ssdvae.options import with_options
from ssdvae.training.options import BenchmarkOptions


@with_options(BenchmarkOptions)
def benchmark(**options: Any) -> dict[str, Any]:
    """Time training and evaluation of a model, and compare with the machine's matrix products.

    >>> ssdvae.benchmark(preset="tiny", model="rnnlm")["train"]["documents_per_second"]
    """
    from ssdvae.training.benchmark import benchmark as measure

    return measure(BenchmarkOptions.chosen(options))


def show_benchmark(result: dict[str, Any]) -> None:
    """Print the times of one model, or of documents of several lengths."""
    if "events" in result:
        _print_lengths(result)
    else:
        _print_times(result)


def _print_times(result: dict[str, Any]) -> None:
    head = ["", "seconds", "documents/s", "GFLOP", "GFLOP/s", "efficiency", "peak memory"]
    rows = [
        [
            name,
            f"{timed['seconds']:.3f}",
            f"{timed['documents_per_second']:.0f}",
            f"{timed['gflop']:.1f}",
            f"{timed['gflop'] / timed['seconds']:.1f}",
            f"{timed['efficiency']:.0%}",
            f"{timed['peak_memory_mb']:,.0f} MB",
        ]
        for name in ("train", "evaluate")
        for timed in [result[name]]
    ]
    rate = f"matrix products alone {result['gemm_gflops']:.1f} GFLOP/s, {result['threads']} threads"
    show([(f"{result['model']}: {rate}", head, rows)])
    if answers := result["answers"]:
        show([("Documents per second by command", list(answers), [[f"{s:.0f}" for s in answers.values()]])])


def _print_lengths(result: dict[str, Any]) -> None:
    """Print training steps on documents of several lengths, relative to the first."""
    head = ["events", "seconds", "events/s", "GFLOP/s of matrix products"]
    head += ["relative speed", "peak memory", "relative"]
    rows = [
        [
            events,
            f"{timed['seconds']:.3f}",
            f"{timed['events_per_second']:,.0f}",
            f"{timed['gemm_gflops']:.1f}",
            f"{timed['relative_speed']:.0%}",
            f"{timed['peak_memory_mb']:,.0f} MB",
            f"{timed['relative_memory']:.2f}",
        ]
        for events, one in result["events"].items()
        for timed in [one["train"]]
    ]
    show([(f"{result['model']}: training steps, with as many events in each batch", head, rows)])


COMMAND = Command(
    benchmark,
    show_benchmark,
    examples=(
        "ssdvae benchmark --preset tiny --model rnnlm",
        "ssdvae benchmark --preset tiny --events 5,20 --json",
    ),
    record=dict,
)
