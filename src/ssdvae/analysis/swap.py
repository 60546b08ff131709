"""What a part of a trained model is worth: the figures when it is the mean, or that of another document.

A first pass over the data records what the part gives for each document. In the passes after it, each
document gets the mean of that, or what another document was given; all else is computed as ever:

    ==================  ==================================================================
    document-vector     the vector of the whole document, for frames and words
    frames              the frames that the words follow, the first state with them
    state               the first state of the decoder alone
    ==================  ==================================================================

Whole documents are exchanged among themselves, and so are seeds that are to be continued; frames only among
documents of as many events. A part whose swap changes nothing is not used; one whose swap takes the cloze to
chance is all that the model goes by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ssdvae.data.batches import generator
from ssdvae.errors import UserError
from ssdvae.models.base import LanguageModel, LatentQuery, Latents
from ssdvae.models.ssdvae import Chain

Way = Literal["mean", "other"]
WAYS: tuple[Way, ...] = ("mean", "other")

Rows = tuple[Tensor, ...]
"""What a part gives for one document."""


@dataclass(frozen=True)
class Swapped:
    """The figures with one part swapped; ``way`` is None where nothing was."""

    part: str | None
    way: Way | None
    figures: dict[str, float]


@dataclass(frozen=True)
class _Question:
    """The documents whose latent variables are asked for."""

    continued: bool  # whether more events are to follow than were read
    documents: list[bytes]  # the words of each, which tell it from others

    @classmethod
    def of(cls, query: LatentQuery) -> _Question:
        tokens, mask = query.read.tokens.cpu(), query.read.mask.cpu()
        documents = [words[there].numpy().tobytes() for words, there in zip(tokens, mask, strict=True)]
        return cls(query.mask.shape[1] > query.read.mask.shape[1], documents)


Pool = tuple[Any, ...]
"""Whether documents are continued, and the shapes of what they get: who can be swapped with whom."""


class _Recording:
    """What a part gave each document, and what it is made to give instead."""

    def __init__(self) -> None:
        self.own: dict[Pool, dict[bytes, Rows]] = {}
        self.given: dict[Pool, dict[bytes, Rows]] = {}
        self._asked: _Question | None = None

    def ask(self, question: _Question) -> None:
        self._asked = question

    def record(self, module: nn.Module, inputs: Any, output: Any) -> None:
        for pool, document, rows in self._answer(output):
            self.own.setdefault(pool, {}).setdefault(document, rows)

    def swap(self, way: Way, seed: int) -> None:
        """Decide what each document gets."""
        for number, (pool, rows) in enumerate(self.own.items()):
            together = [torch.stack(parts) for parts in zip(*rows.values(), strict=True)]
            if way == "mean":
                changed = [part.mean(0, keepdim=True).expand_as(part) for part in together]
            else:
                # A cycle through a random order: nobody gets its own, if there is more than one.
                order = torch.randperm(len(rows), generator=generator(seed, "swap", number))
                other = torch.empty_like(order)
                other[order] = order.roll(1)
                changed = [part[other.to(part.device)] for part in together]
            self.given[pool] = dict(zip(rows, zip(*changed, strict=True), strict=True))

    def replay(self, module: nn.Module, inputs: Any, output: Any) -> Any:
        given = [self.given[pool][document] for pool, document, _ in self._answer(output)]
        return _with_rows(output, given) if given else output

    def _answer(self, output: Any) -> Iterator[tuple[Pool, bytes, Rows]]:
        """What each document that was asked about gets. Only once: what comes later answers no query."""
        asked, self._asked = self._asked, None
        if asked is None:
            return
        for document, rows in zip(asked.documents, _rows(output), strict=True):
            yield (asked.continued, *(part.shape for part in rows)), document, rows


def _rows(output: Any) -> Iterator[Rows]:
    """What each document gets, without padding."""
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
def _noted(model: LanguageModel, recordings: Iterable[_Recording]) -> Iterator[None]:
    """Tell recordings of every query for latent variables."""
    latents, told = model.latents, list(recordings)

    def noting(query: LatentQuery) -> Latents:
        question = _Question.of(query)
        for recording in told:
            recording.ask(question)
        return latents(query)

    model.__dict__["latents"] = noting
    try:
        yield
    finally:
        del model.__dict__["latents"]


def swap_parts(
    model: LanguageModel, names: list[str], measure: Callable[[], dict[str, float]], seed: int = 1
) -> Iterator[Swapped]:
    """The figures of ``measure`` as they are, and with each part swapped in each way.

    ``measure`` asks the model the same questions whenever it is called. Its figures must rest on
    ``LanguageModel.latents``: what a model does without them is left as it is.
    """
    there = model.parts()
    if not names:
        raise UserError(f"name at least one part; {model.config.model} has: {', '.join(there) or 'none'}")
    for name in names:
        if name not in there:
            has = ", ".join(there) or "none that can be swapped"
            raise UserError(f"{model.config.model} has no part {name!r}; it has: {has}")
    recordings = {name: _Recording() for name in names}
    with ExitStack() as hooks:
        hooks.enter_context(_noted(model, recordings.values()))
        for name, recording in recordings.items():
            hooks.enter_context(_hooked(there[name], recording.record))
        figures = measure()
    yield Swapped(None, None, figures)
    for name, recording in recordings.items():
        for way in WAYS:
            recording.swap(way, seed)
            with _noted(model, [recording]), _hooked(there[name], recording.replay):
                figures = measure()
            yield Swapped(name, way, figures)  # while nothing is swapped
