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
from ssdvae.io.files import atomic_write
from ssdvae.io.locks import lock_path


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
            return {
                Key(row["log"], row["model"], int(row["seed"]), row["split"]): row
                for row in csv.DictReader(file)
            }

    def add(
        self,
        key: Key,
        figures: Mapping[str, float],
        options: Mapping[str, Any],
        losses: Mapping[str, Floats],
    ) -> None:
        """Write a cell: first the losses, then the row that says it is complete."""
        (self.folder / "losses").mkdir(parents=True, exist_ok=True)
        small: dict[str, Any] = {name: values.astype(np.float32) for name, values in losses.items()}
        np.savez_compressed(self._losses(key), **small)
        shown = [f"{figures[name]:.6g}" if name in figures else "" for name in FIGURES]
        row = [*key, *shown, json.dumps(options, sort_keys=True)]
        with lock_path(self.folder / "cells.lock", busy=None):
            rows = [list(old.values()) for old in self.read().values()]
            with atomic_write(self._table) as path, path.open("w", newline="") as file:
                csv.writer(file).writerows([HEADER, *rows, row])

    def losses(self, key: Key) -> dict[str, Floats]:
        """Return the losses of each prefix of a cell."""
        with np.load(self._losses(key)) as file:
            return {name: file[name].astype(np.float64) for name in file.files}

    def _losses(self, key: Key) -> Path:
        return self.folder / "losses" / f"{key.name}.npz"

    @property
    def _table(self) -> Path:
        return self.folder / "cells.csv"
