"""Cases of a log on a page: those that deviate, and at which event, and where running ones may go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ssdvae.data.events import Document
from ssdvae.inference.forecast import Forecast, next_events
from ssdvae.inference.options import AnomalyOptions
from ssdvae.inference.surprisal import Anomaly
from ssdvae.models.base import Model
from ssdvae.report.render import AnyCell, Chips, Name, Table

CASES, EXPECTED, BEFORE = 10, 3, 4
"""Cases in a table, what was expected in each, and the activities before that are named."""


UNUSUAL = AnomalyOptions(by="case", top=CASES, expected=EXPECTED)
"""Options of the search for unusual cases."""


def unusual_cases(
    found: Sequence[Anomaly], total: int, href: Callable[[Anomaly], str] | None = None
) -> list[Any]:
    """Return the cases with the highest mean surprisal, each with its most surprising event."""
    rows: list[list[AnyCell]] = [
        [
            one.id if href is None else Name(one.id, None, href(one)),
            "–" if one.document.percentile is None else f"{one.document.percentile:.0f}",
            f"#{one.place + 1} {one.scored.event}",
            f"{one.scored.nats:.1f}",
            one.scored.lateness or "–",
            outcomes(one.expected),
        ]
        for one in found
    ]
    return [
        f"Of {total:,} cases, those whose events are the most surprising on average, in nats "
        "(−log p), and the most surprising one: what happened there, whether it came late or early, and "
        "what was expected. The percentile compares the case with the validation split.",
        Table(
            f"The {len(rows)} most unusual cases",
            ["case", "percentile", "most surprising event", "nats", "time", "expected"],
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
            outcomes(forecast),
            whole.events[len(half.events)].head,
            *("–" if time is None else time.short for time in forecast.times),
        ]
        for whole, half, forecast in zip(some, halves, next_events(model, halves, top=EXPECTED), strict=True)
    ]
    return [
        "Cases of which the model has read the first half: their last activities, what it expects next, what "
        "came, and when it expects the next event and the end: the median, and the interval of 80 %.",
        Table(
            "What is expected next",
            ["case", "so far", "expected next", "came", "next event in", "case over in"],
            rows,
            names=4,
        ),
    ]


def outcomes(forecast: Forecast, by_frame: bool = False) -> Chips:
    """Return the most likely next activities, or frames if there are, the end of the case among them."""
    ranked = forecast.frames if by_frame and forecast.frames else forecast.heads
    heads = [(one.name, one.probability) for one in ranked]
    if forecast.end_probability is not None:
        heads = sorted([*heads, ("case ends", forecast.end_probability)], key=lambda pair: -pair[1])
    return Chips([Name(name, share) for name, share in heads[:EXPECTED]])
