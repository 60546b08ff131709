"""Pictures that stand alone: a notebook shows them, and they can be saved as SVG."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ssdvae.analysis.transitions import Transitions
from ssdvae.answers.infer import InferredDocument
from ssdvae.answers.next_events import Next
from ssdvae.answers.score import ScoredDocument
from ssdvae.errors import UserError
from ssdvae.files import AnyPath, atomic_write
from ssdvae.report.charts import LEFT, WIDTH, Drawing, bars
from ssdvae.report.figures import curves_of
from ssdvae.report.frames import links
from ssdvae.report.html import Html, percent, tag
from ssdvae.report.page import asset
from ssdvae.report.runs import read_runs

KEYS, KEY = 26.0, 9.0
"""The height of a line of keys, and the width of a letter in it: that of a capital."""

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot have, not even escaped."""


@dataclass(frozen=True)
class Picture:
    """A drawing with its style and its keys in it, on a light ground."""

    drawing: Drawing

    def svg(self) -> str:
        """The picture as a file of SVG has it, which is XML; it needs nothing else."""
        drawn = self.drawing
        # One key says what the picture says anyway.
        keys, lines = _keys(drawn.keys, drawn.height) if len(drawn.keys) > 1 else (None, 0)
        height = drawn.height + KEYS * lines
        ground = tag("rect", width=WIDTH, height=height, style="fill: var(--card)")
        picture = tag(
            "svg",
            tag("title", drawn.label),
            tag("style", Html(asset("picture.css"))),
            ground,
            tag("g", drawn.content, class_=drawn.kind),
            keys,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH:g} {height:g}",
            width=1.4 * WIDTH,
            font_family="system-ui, sans-serif",
        )
        return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", picture)

    def save(self, path: AnyPath) -> Path:
        """Write it to a file, whose name ends in .svg."""
        if Path(path).suffix != ".svg":
            raise UserError(f"found {path} as the file to write, expected a name in .svg")
        with atomic_write(Path(path)) as temporary:
            temporary.write_text(self.svg(), encoding="utf-8")
        return Path(path)

    def _repr_svg_(self) -> str:
        """What a notebook shows."""
        return self.svg()


def _keys(names: Sequence[tuple[str, int]], top: float) -> tuple[Html, int]:
    """What the colours stand for, in as many lines as it takes."""
    parts, x, line = [], LEFT / 2, 0
    for name, colour in names:
        width = 24 + KEY * len(name)
        if x + width > WIDTH and x > LEFT / 2:
            x, line = LEFT / 2, line + 1
        y = top + KEYS * line + KEYS / 2
        parts += [
            tag("rect", x=x, y=y - 5, width=10.0, height=10.0, class_=f"c{colour}"),
            tag("text", name, x=x + 15, y=y + 4),
        ]
        x += width
    return tag("g", *parts), line + 1


def of_runs(folders: Sequence[Path]) -> Drawing:
    """How models learned: the validation NLL against epochs."""
    runs = [run for run in read_runs(folders) if run.curve]
    if not runs:
        raise UserError("no run has been validated yet, or none of the models predicts words")
    return curves_of(runs)


def of_transitions(transitions: Transitions) -> Drawing:
    """What follows what: the strongest links between frames."""
    return links(transitions)


def of_next(ahead: Next) -> Drawing:
    """What comes next: the likeliest frames, or heads where a model has no frames."""
    what, ranked = ("frame", ahead.frames) if ahead.frames else (ahead.slots[0], ahead.heads)
    rows = [(f"{one.name}  {percent(one.probability)}", [(what, one.probability)]) for one in ranked]
    return bars(f"The next {what}", rows, "of 1")


def of_inferred(document: InferredDocument) -> Drawing:
    """The frame of each event, and how sure the model is of it."""
    rows = [
        (
            f"{event.event}:  {event.frame}  {percent(event.probability)}",
            [("this frame", event.probability), ("other frames", 1 - event.probability)],
        )
        for event in document.events
    ]
    return bars(f"Frames of {document.id}", _some(rows), "of 1")


def of_scored(document: ScoredDocument) -> Drawing:
    """How surprising each event is, slot by slot."""
    rows = [
        (f"{event.event}:  {event.nats:.1f} nats", list(zip(document.slots, event.slots, strict=True)))
        for event in document.events
    ]
    return bars(f"Surprise in {document.id}", _some(rows), "nats")


def _some(rows: list[tuple[str, list[tuple[str, float]]]]) -> list[tuple[str, list[tuple[str, float]]]]:
    if not rows:
        raise UserError("the document has no events")
    return rows
