"""What was found, as tables for a terminal: a title, a head and lines each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ssdvae.api.choices import find_figure
from ssdvae.cli.layout import TableText

if TYPE_CHECKING:
    from ssdvae.analysis.swap import Swapped
    from ssdvae.answers.generate import Script
    from ssdvae.answers.infer import InferredDocument


def explain_tables(record: dict[str, Any]) -> Iterator[TableText]:
    """Of ``Explanation.to_record``."""
    if "beliefs" in record:
        yield from _belief_tables(record["beliefs"])
    if "before" in record:
        yield _before_table(record["before"])
    if "compare" in record:
        yield _compare_table(record["compare"])
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
    for order, links in record.get("transitions", {}).items():
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


def _belief_tables(beliefs: dict[str, Any]) -> Iterator[TableText]:
    """First what the model believes, with numbers."""
    for title, key, part in (
        ("What a word means: p(frame | word), on average over its events", "word", "frames"),
        ("How a frame is put: p(word | frame)", "frame", "words"),
    ):
        rows = beliefs[f"{part}_given_{key}s"]
        width = max((len(found[part]) for found in rows.values()), default=0)
        lines = [
            [
                name,
                f"{found['times']:,.0f}",
                *(f"{best} {share:.0%}" for best, share in found[part]),
                *[""] * (width - len(found[part])),
            ]
            for name, found in rows.items()
        ]
        yield title, [key, "events", *map(str, range(1, width + 1))], lines


def _before_table(before: dict[str, Any]) -> TableText:
    links = before["preceded_by"]
    distances = list(dict.fromkeys(name for link in links for name in link["by_distance"]))
    head = ["frame", "times", "lift", "PMI", *(f"lift {name} before" for name in distances)]
    lines = [
        [
            link["frame"],
            f"{link['count']:.1f}",
            f"{link['lift']:.1f}",
            f"{link['pmi']:.2f}",
            *(f"{link['by_distance'][name][1]:.1f}" for name in distances),
        ]
        for link in links
    ]
    return f"What comes before {before['frame']}, at any distance", head, lines


def _compare_table(found: dict[str, Any]) -> TableText:
    sizes = ", ".join(f"{name} ({count:,} documents)" for name, count in found["groups"].items())
    title = (
        f"What differs between {sizes}: {found['found']:,} found at p ≤ 0.05, corrected for all "
        f"{found['tests']:,} tests by {found['permutations']:,} shuffles"
    )
    head = ["group", "kind", "more often", "times", "rate", "elsewhere", "ratio", "z", "p"]
    lines = [
        [
            d["group"],
            d["kind"],
            d["name"],
            f"{d['count']:,.0f}",
            f"{d['rate']:.2%}",
            f"{d['rate_elsewhere']:.2%}",
            f"{d['ratio']:.1f}",
            f"{d['z']:.1f}",
            f"{d['p']:.3f}",
        ]
        for d in found["differences"]
    ]
    return title, head, lines


def swap_table(rows: Sequence[Swapped]) -> TableText:
    """The model as it is, and with each part swapped."""
    shown = [figure for name in rows[0].figures if (figure := find_figure(name)) is not None]
    lines = [
        [
            row.part or "as it is",
            {"mean": "the mean", "other": "another document's"}.get(row.way or "", ""),
            *(figure.headline_text(row.figures[figure.name]) + figure.mark(row.figures) for figure in shown),
        ]
        for row in rows
    ]
    return "What parts are worth", ["part", "is", *(figure.name for figure in shown)], lines


def inferred_table(document: InferredDocument) -> TableText:
    """The known frame is shown if any event has one; ``=`` marks an observed one."""
    known = any(event.gold for event in document.events)
    others = max((len(event.frames) - 1 for event in document.events), default=0)
    head = ["event", *(["known frame"] if known else []), "inferred frame", "", *["or", ""] * others]
    lines = [
        [
            str(event.event),
            *([f"{event.gold or '–'}{' =' if event.observed else ''}"] if known else []),
            *(text for frame in event.frames for text in (frame.name, f"{frame.probability:.0%}")),
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
