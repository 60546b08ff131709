"""How surprising things usually are: quantiles over the validation split, kept beside the weights.

With them a model says how unusual an event is without its corpus: the percentile of its nats.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ssdvae.errors import DataError, Malformed
from ssdvae.files import atomic_write, sha256
from ssdvae.records import read_json, to_json
from ssdvae.shapes import made

TYPICAL = "typical.json"
STEPS = 200
"""Quantiles are kept at 0, 1/STEPS, … 1."""


@dataclass(frozen=True)
class Typical:
    """Quantiles of nats over the documents of a split."""

    split: str
    documents: int
    kind: str  # exact, bound or estimate, as the nats that are compared with them
    event: list[float]
    document: list[float]  # a mean over its events: documents differ in length
    slots: list[list[float]]
    weights: str = ""  # SHA-256 of the weights that gave them

    @classmethod
    def of(
        cls,
        split: str,
        kind: str,
        slots: NDArray[np.float64],
        events: NDArray[np.float64],
        documents: NDArray[np.float64],
    ) -> Typical:
        """From the nats of each slot (E S) and event (E), and the mean over the events of each document."""
        steps = np.linspace(0, 1, STEPS + 1)
        by_slot = np.quantile(slots, steps, axis=0).T
        event, document = (np.quantile(values, steps).tolist() for values in (events, documents))
        return cls(split, len(documents), kind, event, document, by_slot.tolist())

    @classmethod
    def read(cls, folder: Path) -> Typical | None:
        """What is kept in the folder of a model; None if there is nothing, or of other weights."""
        path = folder / TYPICAL
        if not path.is_file():
            return None
        try:
            found = made(cls, read_json(path, dict, "quantiles of nats"))
            found.check()
        except Malformed as error:
            raise DataError(path, None, error.found, error.expected, "take the file away") from error
        return found if found.weights == sha256(folder / "model.safetensors") else None

    def check(self) -> None:
        for values in (self.event, self.document, *self.slots):
            if len(values) < 2 or values != sorted(values):
                raise Malformed(
                    "quantiles that are too few, or not in order", "two or more, from low to high"
                )

    def write(self, folder: Path) -> None:
        """Beside the weights that gave them."""
        record = {**asdict(self), "weights": sha256(folder / "model.safetensors")}
        with atomic_write(folder / TYPICAL) as path:
            path.write_text(to_json(record) + "\n", encoding="utf-8")


def percentile(values: NDArray[np.float64], quantiles: list[float]) -> NDArray[np.float64]:
    """How many in a hundred are less surprising: where a value stands among some quantiles."""
    found: NDArray[np.float64] = np.interp(values, quantiles, np.linspace(0, 100, len(quantiles)))
    return found
