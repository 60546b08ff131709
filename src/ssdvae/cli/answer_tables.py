"""Answers as tables for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ssdvae.cli.layout import TableText

if TYPE_CHECKING:
    from ssdvae.answers.embed import Similar
    from ssdvae.answers.fill import Filled
    from ssdvae.answers.next_events import Next
    from ssdvae.answers.score import ScoredDocument
    from ssdvae.answers.unusual import Unusual


def chance(p: float) -> str:
    """A probability: in per cent, with more digits where it is small."""
    return f"{p:.1%}" if p >= 0.001 else f"{p:.1e}"


def next_tables(answer: Next) -> Iterator[TableText]:
    told = " and ".join(f"{name} {value}" for name, value in answer.given.items())
    given = f", given {told} ({chance(answer.given_probability or 0)})" if told else ""
    after = f"after {answer.read} event{'s' if answer.read > 1 else ''}" if answer.read else "at the start"
    title = f"{answer.id}: {after}{given} – {answer.note}"
    head, rows = ["", *(["next frame", ""] if answer.frames else []), "next head", ""], []
    for place in range(max(len(answer.frames), len(answer.heads))):
        row = [str(place + 1)]
        for names in (answer.frames, answer.heads) if answer.frames else (answer.heads,):
            found = names[place] if place < len(names) else None
            row += ["", ""] if found is None else [found.name, chance(found.probability)]
        rows.append(row)
    yield title, head, rows
    framed = any(event.frame for event in answer.events)
    yield (
        "the likeliest events",
        ["event", "", *(["frame"] if framed else [])],
        [
            [str(e.event), chance(e.probability), *([e.frame.name if e.frame else "–"] if framed else [])]
            for e in answer.events
        ],
    )


WORDINGS = {"exact": "exact", "bound": "differences of bounds", "estimate": "estimates"}


def scored_table(document: ScoredDocument) -> TableText:
    """Nats of each event and slot, and how many events of the validation split are less surprising."""
    usual = any(event.percentile is not None for event in document.events)
    framed = any(event.frames for event in document.events)
    head = ["event", "nats", *(["percentile"] if usual else []), *document.slots]
    rows = [
        [
            str(event.event),
            f"{event.nats:.1f}",
            *([f"{event.percentile or 0:.0f}"] if usual else []),
            *(f"{nats:.1f}" for nats in event.slots),
            *([event.frames[0].name, chance(event.frames[0].probability)] if framed else []),
        ]
        for event in document.events
    ]
    whole = "" if document.percentile is None else f", percentile {document.percentile:.0f}"
    title = f"{document.id}: {document.nats:.1f} nats ({WORDINGS[document.kind]}){whole}"
    return title, [*head, *(["frame", ""] if framed else [])], rows


def unusual_table(found: Sequence[Unusual]) -> TableText:
    rows = [
        [
            str(one.scored.event),
            f"{one.id} #{one.place + 1}",
            f"{one.scored.nats:.1f}",
            "–" if one.scored.percentile is None else f"{one.scored.percentile:.1f}",
            "; ".join(f"{e.event} {chance(e.probability)}" for e in one.expected.events[:3]),
        ]
        for one in found
    ]
    return "the most surprising events", ["event", "where", "nats", "percentile", "expected"], rows


def filled_tables(document: Filled) -> Iterator[TableText]:
    if not document.holes:
        yield f"{document.id}: nothing is missing", ["event"], [[str(event)] for event in document.events]
    for hole in document.holes:
        frames = ", ".join(f"{frame.name} {chance(frame.probability)}" for frame in hole.frames[:3])
        title = f"{document.id}, event {hole.place + 1}" + (f"; its frame: {frames}" if frames else "")
        rows = [[str(f.event), chance(f.probability), chance(f.before)] for f in hole.fillings]
        yield title, ["may have been", "by both sides", "by what came before"], rows


def similar_table(found: Sequence[Similar]) -> TableText:
    rows = [
        [str(one.asked), str(one.event), f"{one.similarity:.2f}", f"{one.id} #{one.place + 1}"]
        for one in found
    ]
    return "the nearest events", ["event", "is like", "cosine", "where"], rows
