"""Cases of a log on a page: those that deviate, with the event at fault, and where running ones may go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ssdvae.data.events import Document
from ssdvae.inference.forecast import Forecast, next_events
from ssdvae.inference.options import AnomalyOptions
from ssdvae.inference.surprisal import find_anomalies, score_documents
from ssdvae.models.base import Model
from ssdvae.report.render import AnyCell, Chips, Name, Table

CASES, EXPECTED, BEFORE = 10, 3, 4
"""Cases in a table, what was expected in each, and the activities before that are named."""


def unusual_cases(model: Model, documents: Sequence[Document]) -> list[Any]:
    """Return the cases with the highest mean surprisal, each with its most surprising event."""
    options = AnomalyOptions(by="case", top=CASES, expected=EXPECTED)
    rows: list[list[AnyCell]] = [
        [
            one.id,
            "–" if one.document.percentile is None else f"{one.document.percentile:.0f}",
            f"#{one.place + 1} {one.scored.event}",
            f"{one.scored.nats:.1f}",
            _outcomes(one.expected),
        ]
        for one in find_anomalies(model, score_documents(model, documents), options)
    ]
    return [
        f"Of {len(documents):,} cases, those whose events are the most surprising on average, in nats "
        "(−log p), and the event at fault: what happened there, and what was expected. The percentile "
        "compares the case with the validation split.",
        Table(
            f"The {len(rows)} most unusual cases",
            ["case", "percentile", "event at fault", "nats", "expected"],
            rows,
            names=5,
        ),
    ]


def cases_ahead(model: Model, documents: Sequence[Document]) -> list[Any]:
    """Return what is expected next in cases of which only the first half is read, and what came."""
    some = [document for document in documents if len(document.events) > 1][:CASES]
    halves = [Document(d.id, d.events[: (len(d.events) + 1) // 2]) for d in some]
    rows: list[list[AnyCell]] = [
        [
            half.id,
            " → ".join(event.head for event in half.events[-BEFORE:]),
            _outcomes(forecast),
            whole.events[len(half.events)].head,
        ]
        for whole, half, forecast in zip(some, halves, next_events(model, halves, top=EXPECTED), strict=True)
    ]
    return [
        "Cases of which the model has read the first half: their last activities, what it expects next, and "
        "what came.",
        Table("What is expected next", ["case", "so far", "expected next", "came"], rows, names=4),
    ]


def _outcomes(forecast: Forecast) -> Chips:
    """Return the most likely next activities, the end of the case among them."""
    heads = [(head.name, head.probability) for head in forecast.heads]
    if forecast.end_probability is not None:
        heads = sorted([*heads, ("case ends", forecast.end_probability)], key=lambda pair: -pair[1])
    return Chips([Name(name, share) for name, share in heads[:EXPECTED]])
