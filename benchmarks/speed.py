"""The speed of a model, relative to that of the machine.

    python -m benchmarks.speed --model ssdvae --preset paper
    python -m benchmarks.speed --preset tiny --events 5,20 --json

The efficiency is the number of floating-point operations of a step, divided by its time and by the rate of
the machine's fastest matrix product, in fp32 and in bf16. These rates are measured just before each step,
since a shared machine has no constant one; all are medians.
"""

from __future__ import annotations

import multiprocessing
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from ssdvae.cli import execute
from ssdvae.commands import Command
from ssdvae.commands.console import messages, show, table_of
from ssdvae.data.batches import Noise, collate, generator, in_order, mask_frames
from ssdvae.data.corpus import Documents
from ssdvae.data.events import MISSING, SLOTS, Document, Event
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.evaluation.options import EVAL_BATCH
from ssdvae.inference.forecast import next_events
from ssdvae.inference.posterior import infer_documents
from ssdvae.inference.surprisal import score_documents
from ssdvae.io.errors import UserError
from ssdvae.models.base import LanguageModel, Model, as_frame_model
from ssdvae.models.precision import autocast, bf16_arithmetic
from ssdvae.options import with_options
from ssdvae.training.loop import (
    new_accelerator,
    new_model,
    new_optimizer,
    refuse_if_too_large,
    train_steps,
    with_precision,
)
from ssdvae.training.options import TrainOptions

SHAPES, SECONDS = ((2048, 2048, 2048), (512, 512, 2048)), 0.5
"""The sizes of the matrix products, and how long all of them are timed before each step."""

FRAMES_OF_A_HEAD = 3
"""Candidate frames of a frequent head; on Wikipedia a head has 2.5 in the mean."""

QUESTION_DOCUMENTS = 50
"""Documents of each question that is timed, at most."""


class BenchmarkOptions(TrainOptions):
    """Options of the benchmark: steps of a training run on synthetic documents."""

    group: ClassVar[str] = "what is timed"

    events: str = Field(  # type: ignore[assignment]  # several lengths
        "5",
        description="events per document (M); several, such as 5,50,200, are timed one after another, each "
        "in a process of its own, with as many events in a batch as the first",
    )
    slots: int = Field(len(SLOTS), description="slots of an event", ge=1, le=100)
    vocabulary: int = Field(40_000, description="vocabulary size (V)", ge=3)
    frames: int = Field(500, description="number of frames (F)", ge=1)
    steps: int = Field(
        5, description="number of training steps, and of evaluation batches, that are timed", ge=1
    )
    eval_batch: int = Field(EVAL_BATCH, description="batch size of the evaluation", ge=1)

    @classmethod
    def model_defaults(cls, model: str) -> Mapping[str, Any]:
        return {"precision": "auto"}

    def __init__(self, **values: Any) -> None:
        if isinstance(values.get("events"), int):
            values["events"] = str(values["events"])
        super().__init__(**values)

    def check_relations(self) -> None:
        numbers = [int(part) if part.strip().isdecimal() else 0 for part in self.events.split(",")]
        fits = all(1 <= number <= 10_000 for number in numbers)
        self._require("events", fits, "whole numbers from 1 to 10000, with commas between")

    @property
    def lengths(self) -> list[int]:
        """The numbers of events, each once."""
        return list(dict.fromkeys(int(part) for part in self.events.split(",")))

    def of_length(self, events: int) -> Self:
        """Return the options for documents of this length, with equally many events in a batch."""
        first = self.lengths[0]
        sizes = {name: max(1, getattr(self, name) * first // events) for name in ("batch", "eval_batch")}
        return self.changed(events=str(events), **sizes)


def benchmark(options: BenchmarkOptions) -> dict[str, Any]:
    """Return the result of ``time_steps``, or one for each of several lengths of documents.

    Several lengths are timed in separate processes, for their peak memory.
    """
    if len(options.lengths) == 1:
        return time_steps(options)
    results = {}
    for events in options.lengths:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, context) as one:
            results[str(events)] = one.submit(time_steps, options.of_length(events)).result()
    first = results[str(options.lengths[0])]["train"]
    for result in results.values():
        result["train"]["relative_speed"] = _by_machine(result["train"]) / _by_machine(first)
        result["train"]["relative_memory"] = result["train"]["peak_memory_mb"] / first["peak_memory_mb"]
    return {"model": options.model, "events": results}


def _by_machine(timed: dict[str, float]) -> float:
    """Return events per second relative to the speed of the machine."""
    return timed["events_per_second"] / timed["fp32_gflops"]


def time_steps(options: BenchmarkOptions) -> dict[str, Any]:
    """Time an evaluation batch and a training step, after one of each that is not counted.

    Evaluation comes first, since its peak memory is lower.
    """
    options = with_precision(options)
    accelerator, (events,) = new_accelerator(options), options.lengths
    refuse_if_too_large(options, options.vocabulary, options.frames, options.batch, events, options.slots)
    words = [MISSING, UNKNOWN, *(f"word{i}" for i in range(options.vocabulary - 2))]
    counts = [options.vocabulary // rank for rank in range(1, options.vocabulary + 1)]
    names = [f"frame{i}" for i in range(options.frames)]
    slots = tuple(f"slot{i}" for i in range(options.slots))
    vocabulary, frames = Vocabulary(words, counts), Inventory(names, [1] * len(names))
    model = new_model(options, vocabulary, frames, None, slots).to(accelerator.device)
    learned = _documents(options, options.batch * (options.steps + 1))
    heads, known = (
        torch.from_numpy(x[learned.in_order()].astype(np.int64))
        for x in (learned.tokens[..., 0], learned.frames)
    )
    model.initialize_from_data(heads, known)

    def timed(documents: int, steps: Iterator[Any]) -> dict[str, float]:
        with FlopCounterMode(display=False) as counter:
            next(steps)
        flops = counter.get_total_flops()
        times, before = [], []
        for _ in range(options.steps):
            before.append(peak_gflops(accelerator.device))
            times.append(_seconds(lambda: next(steps)))
        seconds = statistics.median(times)
        peaks = {name: statistics.median(rates[name] for rates in before) for name in before[0]}
        return {
            "seconds": seconds,
            "documents_per_second": documents / seconds,
            "events_per_second": events * documents / seconds,
            "gflop": flops / 1e9,
            **{f"{name}_gflops": rate for name, rate in peaks.items()},
            **{f"{name}_efficiency": flops / 1e9 / seconds / rate for name, rate in peaks.items()},
            "peak_memory_mb": _peak_memory_mb(accelerator.device),
        }

    scored = _documents(options, options.eval_batch)
    # Under no_grad, torch's counter fails on a view of a parameter that requires a gradient.
    evaluation = timed(options.eval_batch, _evaluation(model.requires_grad_(False), scored, options))
    model.requires_grad_(True)
    prepared, optimizer = accelerator.prepare(model, new_optimizer(model, options))
    observed = mask_frames(learned, options.observe, options.seed)
    training = timed(
        options.batch,
        train_steps(prepared, optimizer, accelerator, learned, options, 0, observed),
    )
    return {
        "model": options.model,
        "precision": options.precision,
        "threads": torch.get_num_threads(),
        "device": str(accelerator.device),
        "train": training,
        "evaluate": evaluation,
        # Last, for the peak memory of training.
        "answers": answer_rates(model.eval(), scored),
    }


def answer_rates(model: Model, documents: Documents) -> dict[str, float]:
    """Return the documents per second of the questions that a model can answer; ``next`` has a beam of 10."""
    names = model.vocabulary.names
    some = [
        Document(str(row), tuple(Event.of_words([names[word] for word in words]) for words in events))
        for row, events in enumerate(documents.padded(documents.tokens, 0).tolist()[:QUESTION_DOCUMENTS])
    ]
    questions: dict[str, Callable[[], Iterator[Any]]] = {}
    if as_frame_model(model) is not None:
        questions["infer"] = lambda: infer_documents(model, some)
    if isinstance(model, LanguageModel):
        questions["score"] = lambda: score_documents(model, some)
        questions["next"] = lambda: next_events(model, some, beam=10)
    rates = {}
    for name, answer in questions.items():
        start = time.perf_counter()
        count = sum(1 for _ in answer())
        rates[name] = count / (time.perf_counter() - start)
    return rates


def peak_gflops(device: torch.device) -> dict[str, float]:
    """Return the current speed of the fastest matrix product, by precision; bf16 only where it is native."""
    peaks = {"fp32": _fastest(device, torch.float32)}
    if bf16_arithmetic(device) is not None:
        peaks["bf16"] = _fastest(device, torch.bfloat16)
    return peaks


def _fastest(device: torch.device, dtype: torch.dtype) -> float:
    """Return the best rate over shapes and, on a CPU, over MKL and oneDNN, between which torch chooses."""
    rates = []
    for rows, inner, columns in SHAPES:
        a, b = torch.randn(rows, inner, device=device).to(dtype), torch.randn(columns, inner, device=device)
        products: list[Callable[[], Tensor]] = [partial(torch.mm, a, b.to(dtype).T)]
        if device.type == "cpu" and torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]  # torch's
            products.append(partial(functional.linear, a.to_mkldnn(), b.to(dtype)))
        flops = 2 * rows * inner * columns
        rates += [flops / _mean_seconds(product, SECONDS / len(SHAPES) / 2) / 1e9 for product in products]
    return max(rates)


def _mean_seconds(multiply: Callable[[], Tensor], seconds: float) -> float:
    def wait() -> None:
        product = multiply()
        if product.is_cuda:
            product[0, 0].item()

    wait()
    start, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < seconds:
        wait()
        count += 1
    return passed / count


def _documents(options: BenchmarkOptions, count: int) -> Documents:
    """Return documents of M events, with word frequencies by Zipf's law."""
    rng = np.random.default_rng(options.seed)
    (events,) = options.lengths
    total = count * events
    # Log-uniform: the frequency falls as 1/rank.
    words = options.vocabulary ** rng.random((total, options.slots)) - 1
    # Each head has a few frames.
    frames = 7 * words[:, 0].astype(np.int64) + rng.integers(FRAMES_OF_A_HEAD, size=total)
    return Documents.of_events(
        ids=pa.chunked_array([[str(i) for i in range(count)]]),
        tokens=words.astype(np.int32),
        frames=(frames % options.frames).astype(np.int32),
        lengths=np.full(count, events, dtype=np.int32),
    )


@torch.no_grad()
def _evaluation(model: Model, documents: Documents, options: BenchmarkOptions) -> Iterator[None]:
    """Score the words of one batch again and again, or infer its frames in a model without words."""
    model.eval()
    (rows,) = in_order(len(documents), len(documents))
    while True:
        batch = collate(documents, rows).to(model.device)
        # As `evaluate --precision` does it; a generator must not yield within.
        with autocast(options.precision, model.device):
            if isinstance(model, LanguageModel):
                noise = Noise(generator(options.seed, "evaluate"), len(batch))
                model.word_log_probs(batch, noise).sum().item()  # waits for a GPU
            elif (framed := as_frame_model(model)) is not None:
                framed.posterior(batch).log_q.sum().item()
        yield


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _peak_memory_mb(device: torch.device) -> float:
    """Return the peak memory of the device, or of this process if it is the CPU, in millions of bytes."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 1e6
    import resource  # not on Windows

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


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


@with_options(BenchmarkOptions)
def run(**options: Any) -> dict[str, Any]:
    """Time training and evaluation of a model, and compare with the machine's matrix products."""
    return benchmark(BenchmarkOptions.chosen(options))


def main(words: Sequence[str]) -> None:
    """Run the benchmark with the flags of `train`, and some of its own."""
    try:
        with messages():
            execute("python -m benchmarks.speed", Command(run, show_benchmark, record=dict), words)
    except UserError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
