"""Quantiles of surprisal over the validation split, kept beside the weights.

With them a model tells the percentile of a surprisal without its corpus.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator

from ssdvae.io.errors import Malformed
from ssdvae.io.records import Count
from ssdvae.io.weights import WeightsRecord

TYPICAL = "typical.json"
STEPS = 200
"""Quantiles are kept at 0, 1/STEPS, … 1."""


DIGITS = 5
"""Decimal places of quantiles in files."""

ROUNDING = 1e-3
"""Nats that are this close are equal: sums in single precision depend on the batch."""


def _check_order(values: list[float]) -> list[float]:
    if len(values) < 2 or values != sorted(values):
        raise Malformed("quantiles that are too few, or not in order", "two or more, from low to high")
    return values


Quantiles = Annotated[list[float], AfterValidator(_check_order)]


class SurprisalQuantiles(WeightsRecord):
    """Quantiles of surprisal, in nats, over the documents of a split."""

    file, about = TYPICAL, "quantiles of nats"

    split: str
    documents: Count
    kind: str  # exact, bound or estimate, as the nats that are compared with them
    event: Quantiles  # after the first of each document, if there are any
    document: Quantiles  # a mean over its events: documents differ in length
    slots: list[Quantiles]
    first_event: Quantiles | None = None  # a first event is surprising: its topic is new
    first_slots: list[Quantiles] | None = None

    @classmethod
    def of(
        cls,
        split: str,
        kind: str,
        first_slots: NDArray[np.float64],
        first_events: NDArray[np.float64],
        slots: NDArray[np.float64],
        events: NDArray[np.float64],
        documents: NDArray[np.float64],
    ) -> SurprisalQuantiles:
        """Return the quantiles of surprisal by slot (E S) and event (E), and by document (mean over events).

        The first events of documents come first, then all others, among them the ends of cases.
        """
        steps = np.linspace(0, 1, STEPS + 1)

        def quantiles(values: NDArray[np.float64]) -> Any:
            return np.quantile(values, steps, axis=0).T.round(DIGITS).tolist()

        return cls.model_construct(
            split=split,
            documents=len(documents),
            kind=kind,
            event=quantiles(events if len(events) else first_events),
            document=quantiles(documents),
            slots=quantiles(slots if len(slots) else first_slots),
            first_event=quantiles(first_events),
            first_slots=quantiles(first_slots),
        )

    def at(self, place: int) -> tuple[Quantiles, list[Quantiles]]:
        """Return the quantiles of events in a place of their documents, from 0, and those of their slots."""
        if place or self.first_event is None or self.first_slots is None:
            return self.event, self.slots
        return self.first_event, self.first_slots


def percentile(values: NDArray[np.float64], quantiles: list[float]) -> NDArray[np.float64]:
    """Return the percentile of each value, by linear interpolation between quantiles.

    Values that differ by less than ``ROUNDING`` are equal, and of equal ones the middle counts (mid-rank):
    an event has the same percentile whatever else is in its batch.
    """
    steps = np.linspace(0, 100, len(quantiles))
    below, above = (np.interp(values + move, quantiles, steps) for move in (-ROUNDING, ROUNDING))
    found: NDArray[np.float64] = (below + above) / 2
    return found
