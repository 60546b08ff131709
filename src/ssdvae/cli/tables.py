"""What was found, as tables for a terminal: a title, a head and lines each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ssdvae.cli.layout import TableText

if TYPE_CHECKING:
    from ssdvae.answers.generate import Script
    from ssdvae.answers.infer import InferredDocument


def explain_tables(record: dict[str, Any]) -> Iterator[TableText]:
    """Of ``Explanation.to_record``."""
    if "clusters" in record:
        clusters = record["clusters"]
        for title, key in (("Frames given words (β_enc)", "word"), ("Words given frames (β_dec)", "frame")):
            rows = clusters["frames_given_tokens" if key == "word" else "tokens_given_frames"]
            width = max(map(len, rows.values()), default=0)
            lines = [[name, *(best for best, _ in top)] for name, top in rows.items()]
            yield title, [key, *map(str, range(1, width + 1))], lines
        if clusters["purity"] is not None:
            figures = [[f"{clusters['purity']:.3f}", f"{clusters['nmi']:.3f}"]]
            yield "Purity of clusters", ["purity", "nmi"], figures
    if "attention" in record:
        slots = list(record["attention"]["all frames"]["own"])
        head = ["frame", "events", *(f"own {slot}" for slot in slots), "elsewhere", "heads", "entropy", "of"]
        lines = [
            [
                frame,
                f"{look['events']:,}",
                *(f"{look['own'][slot]:.0%}" for slot in slots),
                f"{1 - look['own_event']:.0%}",
                f"{look['heads']:.0%}",
                f"{look['entropy']:.2f}",
                f"{look['most_entropy']:.2f}",
            ]
            for frame, look in record["attention"].items()
        ]
        yield "Where each frame looks, and the entropy of that in nats", head, lines
    for order, links in record["transitions"].items():
        lines = [
            [
                link["first"],
                link["second"],
                f"{link['count']:.1f}",
                f"{link['probability']:.0%}",
                f"{link['lift']:.1f}",
            ]
            for link in links
        ]
        head = ["frame", "next frame", "times", "probability", "lift"]
        yield f"Which frame follows which, by {order}", head, lines


def inferred_table(document: InferredDocument) -> TableText:
    """The known frame is shown if any event has one; ``=`` marks an observed one."""
    known = any(event.gold for event in document.events)
    head = ["event", *(["known frame"] if known else []), "inferred frame", "", "or", ""]
    lines = [
        [
            str(event.event),
            *([f"{event.gold or '–'}{' =' if event.observed else ''}"] if known else []),
            event.frame,
            f"{event.probability:.0%}",
            event.runner_up or "–",
            f"{event.runner_up_probability:.0%}",
        ]
        for event in document.events
    ]
    unknown = f", unknown words: {document.unknown_words}" if document.unknown_words else ""
    return f"{document.id}{unknown}", head, lines


def script_table(script: Script, number: int) -> TableText:
    """Seed events have no plan to show: they were given."""
    framed = any(event.inferred for event in script.events)
    head = ["event", *(["made from", "inferred frame", ""] if framed else [])]
    lines = []
    for place, event in enumerate(script.events):
        line = [str(event.event)]
        if framed:
            planned = "(seed)" if place < script.seeds else event.planned or "–"
            line += [planned, event.inferred or "–", f"{event.probability or 0:.0%}"]
        lines.append(line)
    return f"script {number}, log p {script.log_prob:.1f}", head, lines
