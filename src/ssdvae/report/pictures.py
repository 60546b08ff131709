"""Pictures that stand alone: a notebook shows them, and they are saved as SVG."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from ssdvae.analysis.transitions import Transitions
from ssdvae.data.events import Event
from ssdvae.inference.embedding import SimilarEvent
from ssdvae.inference.forecast import Forecast
from ssdvae.inference.generation import Script
from ssdvae.inference.infill import FilledDocument
from ssdvae.inference.posterior import InferredDocument
from ssdvae.inference.surprisal import ScoredDocument
from ssdvae.io.errors import UserError
from ssdvae.io.files import AnyPath, atomic_write
from ssdvae.report.charts import (
    LEFT,
    WIDTH,
    Axis,
    Bars,
    Curves,
    Drawing,
    Link,
    LinkGraph,
    Mark,
    Series,
    padded_range,
    percent,
)
from ssdvae.report.render import asset, render
from ssdvae.report.runs import ReportedRun, ppl_text, read_runs

KEYS, KEY = 26.0, 9.0
"""The height of a line of keys, and the width of a capital letter in it."""

LINKS = 24
"""Links between frames that are shown, at most."""

NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML cannot have, not even escaped."""


@dataclass(frozen=True)
class Picture:
    """A drawing with its style and its keys in it, on a light ground."""

    drawing: Drawing

    def svg(self) -> str:
        """Return the text of an SVG file, which is XML and needs nothing else."""
        # One key says what the picture says anyway.
        keys = list(_keys(self.drawing)) if len(self.drawing.keys) > 1 else []
        height = keys[-1][-1] + KEYS / 2 if keys else self.drawing.height
        style = Markup(asset("picture.css"))
        text = render("picture.svg", drawing=self.drawing, keys=keys, height=height, style=style)
        return NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)

    def save(self, path: AnyPath) -> Path:
        """Write the picture to a file whose name ends in .svg."""
        if Path(path).suffix != ".svg":
            raise UserError(f"found {path} as the file to write, expected a name in .svg")
        with atomic_write(Path(path)) as temporary:
            temporary.write_text(self.svg(), encoding="utf-8")
        return Path(path)

    def _repr_svg_(self) -> str:
        """Return what a notebook shows."""
        return self.svg()


def _keys(drawing: Drawing) -> Iterator[tuple[str, int, float, float]]:
    """Yield the names of the colours with their places, in as many lines as it takes."""
    x, line = LEFT / 2, 0
    for name, colour in drawing.keys:
        width = 24 + KEY * len(name)
        if x + width > WIDTH and x > LEFT / 2:
            x, line = LEFT / 2, line + 1
        yield name, colour, x, drawing.height + KEYS * (line + 0.5)
        x += width


def of_runs(folders: Sequence[Path]) -> Drawing:
    """Draw the learning curves of runs: the validation NLL against epochs."""
    runs = [run for run in read_runs(folders) if run.curve]
    if not runs:
        raise UserError("no run has been validated yet, or none of the models predicts words")
    return of_curves(runs)


def of_curves(runs: Sequence[ReportedRun]) -> Drawing:
    """Draw a learning curve for each run; each has been validated."""
    series = [
        Series(
            run.name,
            run.colour,
            [
                Mark(
                    r["epoch"],
                    math.log(r["ppl"]),
                    f"{run.name}, epoch {r['epoch']:g}: NLL {math.log(r['ppl']):.3f}, ppl {ppl_text(r)}",
                )
                for r in run.curve
            ],
        )
        for run in runs
    ]
    marks = [mark for one in series for mark in one.marks]
    return Curves(
        "Validation NLL against epochs",
        Axis("epochs (square-root scale)", 0, max(mark.x for mark in marks), root=True),
        Axis("NLL, nats a word", *padded_range([mark.y for mark in marks])),
        series,
    )


def of_transitions(transitions: Transitions) -> Drawing:
    """Draw the strongest links between frames."""
    links = [
        Link(
            link.first,
            link.second,
            link.probability,
            f"{link.first} → {link.second}: {percent(link.probability)} of the time, "
            f"{link.lift:.1f} times chance",
        )
        for link in transitions.strongest(LINKS)
    ]
    if not links:
        raise UserError("no two frames follow each other often enough in these documents")
    return LinkGraph("Strongest links between frames", links)


def of_next(ahead: Forecast) -> Drawing:
    """Draw the likeliest next frames, or heads where a model has no frames."""
    what, ranked = ("frame", ahead.frames) if ahead.frames else (ahead.slots[0], ahead.heads)
    rows = [(f"{one.name}  {percent(one.probability)}", [(what, one.probability)]) for one in ranked]
    return Bars(f"The next {what}", rows, "of 1")


def of_inferred(document: InferredDocument) -> Drawing:
    """Draw the frame of each event, and how sure the model is of it."""
    rows = [_framed(event.event, event.frame, event.probability) for event in document.events]
    return Bars(f"Frames of {document.id}", _require_events(rows), "of 1")


def of_script(script: Script) -> Drawing:
    """Draw the events of a script with their inferred frames; without bars if the model has no frames."""
    rows = [
        (str(e.event), []) if e.inferred is None else _framed(e.event, e.inferred, e.probability)
        for e in script.events
    ]
    return Bars("A script and its frames", _require_events(rows), "of 1")


def of_filled(document: FilledDocument) -> Drawing:
    """Draw the candidates for what is missing, by what comes before and after it."""
    rows = [
        (
            f"event {hole.place + 1}:  {filling.event}  {percent(filling.probability)}",
            [("probability", filling.probability)],
        )
        for hole in document.holes
        for filling in hole.fillings
    ]
    if not rows:
        raise UserError("nothing is missing in the document: ? stands for a missing event or word")
    return Bars(f"What is missing in {document.id}", rows, "of 1")


def of_similar(found: Sequence[SimilarEvent]) -> Drawing:
    """Draw the nearest events by the cosine of their embeddings."""
    rows = [
        (f"{one.asked}:  {one.event}  {one.similarity:.2f}", [("cosine", one.similarity)]) for one in found
    ]
    return Bars("The nearest events", rows, "")


def _framed(
    event: Event, frame: str | None, probability: float | None
) -> tuple[str, list[tuple[str, float]]]:
    if frame is None or probability is None:
        return f"{event}:  unknown", []
    parts = [("this frame", probability), ("other frames", 1 - probability)]
    return f"{event}:  {frame}  {percent(probability)}", parts


def of_scored(document: ScoredDocument) -> Drawing:
    """Draw how surprising each event is, slot by slot."""
    rows = [
        (f"{event.event}:  {event.nats:.1f} nats", list(zip(document.slots, event.slots, strict=True)))
        for event in document.events
    ]
    return Bars(f"Surprise in {document.id}", _require_events(rows), "nats")


def _require_events(
    rows: list[tuple[str, list[tuple[str, float]]]],
) -> list[tuple[str, list[tuple[str, float]]]]:
    if not rows:
        raise UserError("the document has no events")
    return rows
