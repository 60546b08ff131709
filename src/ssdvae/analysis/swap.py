"""What a part of a trained model is worth: the figures when it is the mean, or that of another document.

A first pass over the data records what the part gives for each document. In the passes after it, each
document gets the mean of that, or what another document was given; all else is computed as ever:

    ==================  ==================================================================
    document-vector     what the vector of the whole document adds to the logits
    frames              the vectors of the frames that the words follow, the first state with them
    state               the first state of the decoder alone
    ==================  ==================================================================

A part whose swap changes nothing is not used; one whose swap takes the cloze to chance is all that tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ssdvae.data.batches import generator
from ssdvae.errors import UserError
from ssdvae.models.base import EventModel
from ssdvae.models.latent import Posterior

Way = Literal["mean", "other"]
WAYS: tuple[Way, ...] = ("mean", "other")

Rows = tuple[Tensor, ...]
"""What a part gives for the documents of a batch: the first dimension is theirs."""


@dataclass(frozen=True)
class Swapped:
    """The figures with one part swapped; ``way`` is None where nothing was."""

    part: str | None
    way: Way | None
    figures: dict[str, float]


class _Recording:
    """What a part gave, call by call, and what it is made to give instead."""

    def __init__(self) -> None:
        self.calls: list[Rows] = []
        self.place = 0
        self.given: list[Rows] = []

    def record(self, module: nn.Module, inputs: Any, output: Any) -> None:
        self.calls.append(tuple(part.detach().clone() for part in _rows(output)))

    def swap(self, way: Way, seed: int) -> None:
        """Decide what each call gets; calls of the same shape are one pool of documents."""
        self.place, self.given = 0, [()] * len(self.calls)
        pools: dict[tuple[torch.Size, ...], list[int]] = {}
        for number, rows in enumerate(self.calls):
            pools.setdefault(tuple(part.shape[1:] for part in rows), []).append(number)
        for number, calls in enumerate(pools.values()):
            together = tuple(torch.cat(parts) for parts in zip(*(self.calls[c] for c in calls), strict=True))
            count = len(together[0])
            if way == "mean":
                changed = tuple(part.mean(0, keepdim=True).expand_as(part) for part in together)
            else:
                # A cycle through a random order: nobody gets its own, if there is more than one.
                order = torch.randperm(count, generator=generator(seed, "swap", number))
                other = torch.empty_like(order)
                other[order] = order.roll(1)
                changed = tuple(part[other.to(part.device)] for part in together)
            sizes = [len(self.calls[c][0]) for c in calls]
            for call, rows in zip(
                calls, zip(*(torch.split(part, sizes) for part in changed), strict=True), strict=True
            ):
                self.given[call] = rows

    def replay(self, module: nn.Module, inputs: Any, output: Any) -> Any:
        rows, self.place = self.given[self.place], self.place + 1
        return _with_rows(output, rows)


def _rows(output: Any) -> Rows:
    if isinstance(output, Posterior):
        return (output.memory,)
    return output if isinstance(output, tuple) else (output,)


def _with_rows(output: Any, rows: Rows) -> Any:
    if isinstance(output, Posterior):
        return replace(output, memory=rows[0])
    return rows if isinstance(output, tuple) else rows[0]


@contextmanager
def _hooked(module: nn.Module, hook: Callable[[nn.Module, Any, Any], Any]) -> Iterator[None]:
    handle = module.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()


def swap_parts(
    model: EventModel, names: list[str], measure: Callable[[], dict[str, float]], seed: int = 1
) -> Iterator[Swapped]:
    """The figures of ``measure`` as they are, and with each part swapped in each way.

    ``measure`` asks the model the same questions in the same order whenever it is called.
    """
    there = model.parts()
    for name in names:
        if name not in there:
            has = ", ".join(there) or "none that can be swapped"
            raise UserError(f"{model.config.model} has no part {name!r}; it has: {has}")
    recordings = {name: _Recording() for name in names}
    with ExitStack() as hooks:
        for name, recording in recordings.items():
            hooks.enter_context(_hooked(there[name], recording.record))
        figures = measure()
    yield Swapped(None, None, figures)
    for name, recording in recordings.items():
        for way in WAYS:
            recording.swap(way, seed)
            with _hooked(there[name], recording.replay):
                figures = measure()
            yield Swapped(name, way, figures)  # while nothing is swapped
