"""How fast a model is, beside what the machine can do.

The efficiency is the work of a step (the matrix products that torch counts in it) divided by its time, and by
the rate at which the same process multiplied two matrices and did nothing else. A machine that is shared, or
grows warm, has no constant rate, so that is measured just before each step; both are medians.
"""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch.utils.flop_counter import FlopCounterMode

from ssdvae.answers.infer import infer_documents
from ssdvae.answers.next_events import next_events
from ssdvae.answers.score import score_documents
from ssdvae.config import BenchmarkSettings
from ssdvae.data.batches import Noise, collate, generator, in_order, mask_frames
from ssdvae.data.corpus import Documents
from ssdvae.data.events import MISSING, Document, Event
from ssdvae.data.vocabulary import UNKNOWN, Inventory, Vocabulary
from ssdvae.memory import peak_memory_mb
from ssdvae.models.base import LanguageModel, Model, as_frame_model
from ssdvae.training.loop import new_accelerator, new_model, new_optimizer, train_steps
from ssdvae.training.size import refuse_if_too_large

SIDE, SECONDS = 2048, 0.5
"""The matrices of the comparison, and how long they are multiplied before each step."""

FRAMES_OF_A_HEAD = 3
"""Candidate frames of a frequent head; on Wikipedia a head has 2.5 in the mean."""


ASKED = 50
"""Documents that questions are asked about, at most."""


def benchmark(settings: BenchmarkSettings) -> dict[str, Any]:
    """What ``time_steps`` gives; for several lengths of documents, that of each under its number of events.

    Each of several is timed in a process of its own, whose memory has not seen the others.
    """
    if len(settings.lengths) == 1:
        return time_steps(settings)
    results = {}
    for events in settings.lengths:
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, context) as one:
            results[str(events)] = one.submit(time_steps, settings.of_length(events)).result()
    first = results[str(settings.lengths[0])]["train"]
    for result in results.values():
        result["train"]["relative_speed"] = _by_machine(result["train"]) / _by_machine(first)
        result["train"]["relative_memory"] = result["train"]["peak_memory_mb"] / first["peak_memory_mb"]
    return {"model": settings.model, "events": results}


def _by_machine(timed: dict[str, float]) -> float:
    """Events a second beside how fast the machine was then."""
    return timed["events_per_second"] / timed["gemm_gflops"]


def time_steps(settings: BenchmarkSettings) -> dict[str, Any]:
    """Times of an evaluation batch and of a training step, after one of each that is not counted.

    Evaluation comes first, so that the memory of training, which is more, is not counted as its own.
    """
    accelerator, (events,) = new_accelerator(settings), settings.lengths
    refuse_if_too_large(
        settings, settings.vocabulary, settings.frames, settings.batch, events, settings.slots
    )
    words = [MISSING, UNKNOWN, *(f"word{i}" for i in range(settings.vocabulary - 2))]
    counts = [settings.vocabulary // rank for rank in range(1, settings.vocabulary + 1)]
    names = [f"frame{i}" for i in range(settings.frames)]
    slots = tuple(f"slot{i}" for i in range(settings.slots))
    vocabulary, frames = Vocabulary(words, counts), Inventory(names, [1] * len(names))
    model = new_model(settings, vocabulary, frames, None, slots).to(accelerator.device)
    learned = _documents(settings, settings.batch * (settings.steps + 1))
    heads, known = (
        torch.from_numpy(x[learned.in_order()].astype(np.int64))
        for x in (learned.tokens[..., 0], learned.frames)
    )
    model.initialize_from_data(heads, known)
    rates: list[float] = []  # of the whole run

    def timed(documents: int, steps: Iterator[Any]) -> dict[str, float]:
        with FlopCounterMode(display=False) as counter:
            next(steps)
        flops = counter.get_total_flops()
        times, before = [], []
        for _ in range(settings.steps):
            before.append(gemm_gflops(accelerator.device))
            times.append(_seconds(lambda: next(steps)))
        rates.extend(before)
        seconds, rate = statistics.median(times), statistics.median(before)
        return {
            "seconds": seconds,
            "documents_per_second": documents / seconds,
            "events_per_second": events * documents / seconds,
            "gflop": flops / 1e9,
            "gemm_gflops": rate,
            "efficiency": flops / 1e9 / seconds / rate,
            "peak_memory_mb": _peak_memory_mb(accelerator.device),
        }

    scored = _documents(settings, settings.eval_batch)
    # Under no_grad, torch's counter fails on a view of a parameter that requires a gradient.
    evaluation = timed(settings.eval_batch, _evaluation(model.requires_grad_(False), scored, settings))
    model.requires_grad_(True)
    prepared, optimizer = accelerator.prepare(model, new_optimizer(model, settings))
    observed = mask_frames(learned, settings.observe, settings.seed)
    training = timed(
        settings.batch,
        train_steps(prepared, optimizer, accelerator, learned, settings, 0, observed),
    )
    return {
        "model": settings.model,
        "gemm_gflops": statistics.median(rates),
        "threads": torch.get_num_threads(),
        "device": str(accelerator.device),
        "train": training,
        "evaluate": evaluation,
        # Last, so that what they take is not counted as the memory of training.
        "answers": answer_rates(model.eval(), scored),
    }


def answer_rates(model: Model, documents: Documents) -> dict[str, float]:
    """Documents a second of what is asked of a trained model, as far as it has an answer.

    The likeliest next events are looked for with a beam of 10.
    """
    names = model.vocabulary.names
    asked = [
        Document(str(row), tuple(Event.of_words([names[word] for word in words]) for words in events))
        for row, events in enumerate(documents.padded(documents.tokens, 0).tolist()[:ASKED])
    ]
    ways: dict[str, Callable[[], Iterator[Any]]] = {}
    if as_frame_model(model) is not None:
        ways["infer"] = lambda: infer_documents(model, asked)
    if isinstance(model, LanguageModel):
        ways["score"] = lambda: score_documents(model, asked)
        ways["next"] = lambda: next_events(model, asked, beam=10)
    rates = {}
    for name, answer in ways.items():
        start = time.perf_counter()
        count = sum(1 for _ in answer())
        rates[name] = count / (time.perf_counter() - start)
    return rates


def gemm_gflops(device: torch.device) -> float:
    """How fast the machine multiplies matrices now."""
    a, b = (torch.randn(SIDE, SIDE, device=device) for _ in range(2))
    out = torch.empty_like(a)

    def multiply() -> None:
        torch.mm(a, b, out=out)
        out[0, 0].item()  # waits for a GPU

    multiply()
    start, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - start) < SECONDS:
        multiply()
        count += 1
    return 2 * SIDE**3 * count / passed / 1e9


def _documents(settings: BenchmarkSettings, count: int) -> Documents:
    """Documents that all have M events, of words as frequent as Zipf's law has it."""
    rng = np.random.default_rng(settings.seed)
    (events,) = settings.lengths
    shape = (count, events)
    words = (
        settings.vocabulary ** rng.random((*shape, settings.slots)) - 1
    )  # log-uniform: frequency falls as 1/rank
    return Documents.of_padded(
        ids=pa.chunked_array([[str(i) for i in range(count)]]),
        tokens=words.astype(np.int32),
        # A head has some frames of its own, as in a language.
        frames=(
            (7 * words[..., 0].astype(np.int64) + rng.integers(FRAMES_OF_A_HEAD, size=shape))
            % settings.frames
        ).astype(np.int32),
        lengths=np.full(count, events, dtype=np.int32),
    )


@torch.no_grad()
def _evaluation(model: Model, documents: Documents, settings: BenchmarkSettings) -> Iterator[None]:
    """What perplexity needs of one batch, again and again; or frames, of a model that only knows these."""
    model.eval()
    (rows,) = in_order(len(documents), len(documents))
    while True:
        batch = collate(documents, rows).to(model.device)
        if isinstance(model, LanguageModel):
            noise = Noise(generator(settings.seed, "evaluate"), len(batch))
            model.word_log_probs(batch, noise).sum().item()  # waits for a GPU
        elif (framed := as_frame_model(model)) is not None:
            framed.posterior(batch).log_q.sum().item()
        yield


def _seconds(work: Callable[[], Any]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _peak_memory_mb(device: torch.device) -> float:
    return torch.cuda.max_memory_allocated(device) / 1e6 if device.type == "cuda" else peak_memory_mb()
