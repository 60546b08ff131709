"""Ablation of the parts of a trained model: figures with the output of a part replaced.

A first pass over the data records the output of the part for each document. In later passes each document
gets the mean output, or that of another document; nothing else changes:

    ==================  ==================================================================
    document-vector     the vector of the whole document, for frames and words
    frames              the frames that the words follow, the first state with them
    state               the first state of the decoder alone
    ==================  ==================================================================

Whole documents are swapped among themselves, and so are seeds that are to be continued; frames only among
documents of as many events. A part whose swap changes nothing is not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ssdvae.data.batches import generator
from ssdvae.io.errors import UserError
from ssdvae.models.base import LanguageModel
from ssdvae.models.latents import LatentQuery, Latents
from ssdvae.models.ssdvae import Chain

Way = Literal["mean", "other"]
WAYS: tuple[Way, ...] = ("mean", "other")

Rows = tuple[Tensor, ...]
"""The output of a part for one document."""


@dataclass(frozen=True)
class Ablation:
    """The figures with one part swapped; part and way are None where none was."""

    part: str | None
    way: Way | None
    figures: dict[str, float]


@dataclass(frozen=True)
class _Query:
    """The documents of a query for latent variables."""

    continued: bool  # more events follow than were read
    documents: list[bytes]  # the words of each, as its key

    @classmethod
    def of(cls, query: LatentQuery) -> _Query:
        tokens, mask = query.read.tokens.cpu(), query.read.mask.cpu()
        documents = [words[there].numpy().tobytes() for words, there in zip(tokens, mask, strict=True)]
        return cls(query.mask.shape[1] > query.read.mask.shape[1], documents)


Pool = tuple[Any, ...]
"""Documents that can be swapped: whether they are continued, and the shapes of their outputs."""


class _Recording:
    """The outputs of a part by document, and their replacements."""

    def __init__(self) -> None:
        self.outputs: dict[Pool, dict[bytes, Rows]] = {}
        self.replacements: dict[Pool, dict[bytes, Rows]] = {}
        self._query: _Query | None = None

    def set_query(self, query: _Query) -> None:
        self._query = query

    def record(self, module: nn.Module, inputs: Any, output: Any) -> None:
        for pool, document, rows in self._rows_of_query(output):
            self.outputs.setdefault(pool, {}).setdefault(document, rows)

    def swap(self, way: Way, seed: int) -> None:
        """Compute the replacement of each document."""
        for number, (pool, rows) in enumerate(self.outputs.items()):
            together = [torch.stack(parts) for parts in zip(*rows.values(), strict=True)]
            if way == "mean":
                changed = [part.mean(0, keepdim=True).expand_as(part) for part in together]
            else:
                # A cycle through a random order: no document gets its own output, if there are two or more.
                order = torch.randperm(len(rows), generator=generator(seed, "swap", number))
                other = torch.empty_like(order)
                other[order] = order.roll(1)
                changed = [part[other.to(part.device)] for part in together]
            self.replacements[pool] = dict(zip(rows, zip(*changed, strict=True), strict=True))

    def replay(self, module: nn.Module, inputs: Any, output: Any) -> Any:
        rows = [self.replacements[pool][document] for pool, document, _ in self._rows_of_query(output)]
        return _with_rows(output, rows) if rows else output

    def _rows_of_query(self, output: Any) -> Iterator[tuple[Pool, bytes, Rows]]:
        """Yield the output of each document of the query, once: later calls belong to no query."""
        query, self._query = self._query, None
        if query is None:
            return
        for document, rows in zip(query.documents, _rows(output), strict=True):
            yield (query.continued, *(part.shape for part in rows)), document, rows


def _rows(output: Any) -> Iterator[Rows]:
    """Yield the output of each document, without padding."""
    if isinstance(output, Chain):
        for memory, sample, mask in zip(output.memory, output.sample, output.mask, strict=True):
            yield memory[mask].clone(), sample[mask].clone()
    else:
        for row in output:
            yield (row.clone(),)


def _with_rows(output: Any, rows: list[Rows]) -> Any:
    if isinstance(output, Chain):
        memory, sample = output.memory.clone(), output.sample.clone()
        memory[output.mask], sample[output.mask] = (torch.cat(parts) for parts in zip(*rows, strict=True))
        return replace(output, memory=memory, sample=sample)
    return torch.stack([row for (row,) in rows])


@contextmanager
def _hooked(module: nn.Module, hook: Callable[[nn.Module, Any, Any], Any]) -> Iterator[None]:
    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _observed_queries(model: LanguageModel, recordings: Iterable[_Recording]) -> Iterator[None]:
    """Pass every query for latent variables to the recordings."""
    latents, observers = model.latents, list(recordings)

    def observed(query: LatentQuery) -> Latents:
        documents = _Query.of(query)
        for recording in observers:
            recording.set_query(documents)
        return latents(query)

    model.__dict__["latents"] = observed
    try:
        yield
    finally:
        del model.__dict__["latents"]


def swap_parts(
    model: LanguageModel, names: list[str], measure: Callable[[], dict[str, float]], seed: int = 1
) -> Iterator[Ablation]:
    """Yield the figures of ``measure`` without a swap, and with each part swapped in each way.

    ``measure`` must be deterministic, and its figures must depend on ``LanguageModel.latents``.
    """
    parts = model.parts()
    if not names:
        raise UserError(f"name at least one part; {model.config.model} has: {', '.join(parts) or 'none'}")
    for name in names:
        if name not in parts:
            has = ", ".join(parts) or "none that can be swapped"
            raise UserError(f"{model.config.model} has no part {name!r}; it has: {has}")
    recordings = {name: _Recording() for name in names}
    with ExitStack() as hooks:
        hooks.enter_context(_observed_queries(model, recordings.values()))
        for name, recording in recordings.items():
            hooks.enter_context(_hooked(parts[name], recording.record))
        figures = measure()
    yield Ablation(None, None, figures)
    for name, recording in recordings.items():
        for way in WAYS:
            recording.swap(way, seed)
            with _observed_queries(model, [recording]), _hooked(parts[name], recording.replay):
                figures = measure()
            yield Ablation(name, way, figures)  # while nothing is swapped
