"""`ssdvae benchmark`: time a model."""

from __future__ import annotations

from typing import Any

from ssdvae.commands import Command
from ssdvae.commands.console import show, table_of
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
    """Print the times of one model, or of documents of several lengths relative to the first."""
    peak = ("peak memory", "{peak_memory_mb:,.0f} MB")
    if "events" in result:
        table = table_of(
            f"{result['model']}: training steps, with as many events in each batch",
            [{"events": events, **one["train"]} for events, one in result["events"].items()],
            ("events", "{events}"),
            ("seconds", "{seconds:.3f}"),
            ("events/s", "{events_per_second:,.0f}"),
            ("GFLOP/s of fp32 products", "{fp32_gflops:.1f}"),
            ("relative speed", "{relative_speed:.0%}"),
            peak,
            ("relative", "{relative_memory:.2f}"),
        )
        show([table])
        return
    precisions = [name for name in ("fp32", "bf16") if f"{name}_gflops" in result["train"]]
    peaks = ", ".join(f"{result['train'][f'{name}_gflops']:.0f} in {name}" for name in precisions)
    table = table_of(
        f"{result['model']} in {result['precision']}, {result['threads']} threads; "
        f"fastest matrix products, GFLOP/s: {peaks}",
        [{"name": name, **result[name]} for name in ("train", "evaluate")],
        ("", "{name}"),
        ("seconds", "{seconds:.3f}"),
        ("documents/s", "{documents_per_second:.0f}"),
        ("GFLOP", "{gflop:.1f}"),
        ("GFLOP/s", lambda timed: f"{timed['gflop'] / timed['seconds']:.1f}"),
        *((f"of {name} products", f"{{{name}_efficiency:.0%}}") for name in precisions),
        peak,
    )
    show([table])
    if answers := result["answers"]:
        show([("Documents per second by command", list(answers), [[f"{s:.0f}" for s in answers.values()]])])


COMMAND = Command(
    benchmark,
    show_benchmark,
    examples=(
        "ssdvae benchmark --preset tiny --model rnnlm",
        "ssdvae benchmark --preset tiny --events 5,20 --json",
    ),
    record=dict,
)
