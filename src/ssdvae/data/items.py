"""All that `prepare` asks about a split: the cloze, masked events, and orders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

from ssdvae.config import PrepareSettings, Split
from ssdvae.data.choices import ChoiceBuilder, MaskedItem, OrderItem, read_items, write_items
from ssdvae.data.cloze import ClozeBuilder, read_cloze, write_cloze
from ssdvae.data.corpus import ItemKind, item_file
from ssdvae.data.events import Slots, Words


class ItemBuilder:
    """Makes the items of a split while its documents go by, and holds only those that it needs."""

    def __init__(self, settings: PrepareSettings) -> None:
        self.cloze, self.choices = ClozeBuilder(settings), ChoiceBuilder(settings)

    def add(self, id: str, events: Sequence[Words]) -> None:
        """A document with its usable events."""
        self.cloze.add(id, events)
        self.choices.add(id, events)

    def add_all(self, other: ItemBuilder) -> None:
        """What another one has of other documents of the split."""
        self.cloze.add_all(other.cloze)
        self.choices.add_all(other.choices)

    def write(self, folder: Path, split: Split) -> dict[ItemKind, int]:
        """Write the items into a corpus folder, if there are any; returns how many of each kind."""
        counts: dict[ItemKind, int] = {"cloze": 0, "masked": 0, "order": 0}
        if cloze := self.cloze.items():
            counts["cloze"] = write_cloze(_place(folder, "cloze", split), cloze)
        if masked := self.choices.masked():
            counts["masked"] = write_items(_place(folder, "masked", split), masked)
        if orders := self.choices.orders():
            counts["order"] = write_items(_place(folder, "order", split), orders)
        return counts


def _place(folder: Path, kind: ItemKind, split: Split) -> Path:
    path = folder / item_file(kind, split)
    path.parent.mkdir(exist_ok=True)
    return path


def count_items(path: Path, kind: ItemKind, slots: Slots) -> int:
    """How many items a file has, all of them read."""
    if kind == "cloze":
        return len(read_cloze(path, slots))
    if kind == "masked":
        return len(read_items(path, MaskedItem))
    if kind == "order":
        return len(read_items(path, OrderItem))
    assert_never(kind)
