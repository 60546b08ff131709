"""Results of a comparison as cells: a row of a CSV file and the losses of all prefixes, each written once."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.log_measures import Floats


class Key(NamedTuple):
    log: str
    model: str
    seed: int
    split: str

    @property
    def name(self) -> str:
        return "-".join(map(str, self))


FIGURES = (
    "accuracy",
    "macro_f1",
    "log_loss",
    "calibration",
    "calibration_low",
    "calibration_high",
    "next_mae",
    "remaining_mae",
    "train_seconds",
    "prefixes_per_second",
)
HEADER = (*Key._fields, *FIGURES, "options")


@dataclass(frozen=True)
class Cells:
    """A folder of results. A cell that is there is not computed again."""

    folder: Path

    def __contains__(self, key: Key) -> bool:
        return key in self.read()

    def read(self) -> dict[Key, dict[str, str]]:
        """Return the rows of all cells."""
        if not self._table.is_file():
            return {}
        with self._table.open(newline="") as file:
            rows = [row for row in csv.DictReader(file) if None not in row.values()]  # not one that was cut
        return {Key(row["log"], row["model"], int(row["seed"]), row["split"]): row for row in rows}

    def add(
        self,
        key: Key,
        figures: Mapping[str, float],
        options: Mapping[str, Any],
        losses: Mapping[str, Floats],
    ) -> None:
        """Write a cell: first the losses, then the row that says it is complete."""
        (self.folder / "losses").mkdir(parents=True, exist_ok=True)
        np.savez_compressed(self._losses(key), **{name: x.astype(np.float32) for name, x in losses.items()})
        new = not self._table.is_file()
        with self._table.open("a", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(HEADER)
            shown = [f"{figures[name]:.6g}" if name in figures else "" for name in FIGURES]
            writer.writerow([*key, *shown, json.dumps(options, sort_keys=True)])

    def losses(self, key: Key) -> dict[str, Floats]:
        """Return the losses of each prefix of a cell."""
        with np.load(self._losses(key)) as file:
            return {name: file[name].astype(np.float64) for name in file.files}

    def _losses(self, key: Key) -> Path:
        return self.folder / "losses" / f"{key.name}.npz"

    @property
    def _table(self) -> Path:
        return self.folder / "cells.csv"
