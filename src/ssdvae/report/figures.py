"""The pictures that compare runs, each with a sentence that says what to see."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ssdvae.config import Split
from ssdvae.evaluation.tasks import mark_of
from ssdvae.measurements import Measurement
from ssdvae.report.charts import (
    Axis,
    Drawing,
    Mark,
    Series,
    bars,
    curves,
    padded_range,
    with_buttons,
    with_keys,
)
from ssdvae.report.html import Html, absent, join, table, tag
from ssdvae.report.runs import Reported, describe_data, ppl_text


def figure(title: str, see: str, picture: Html, data: Html | None = None) -> Html:
    """A picture with its title, what to see in it, and its numbers as a table."""
    numbers = None if data is None else tag("details", tag("summary", "The numbers as a table"), data)
    return tag("figure", tag("figcaption", tag("strong", title), " ", see), picture, numbers)


def _measured(runs: Sequence[Reported], figure: str, split: Split) -> list[tuple[Reported, Measurement]]:
    """The runs that have a figure, with the measurement that it is from."""
    return [(run, m) for run in runs if (m := run.scores(figure, split)) is not None]


def learning_curves(runs: Sequence[Reported]) -> Html:
    """Validation NLL against epochs on a square-root axis, as in the paper's figure."""
    drawn = [run for run in runs if run.curve]
    if not drawn:
        return absent("Left out: no run has been validated yet, or none of the models predicts words.")
    lowest, run = min(((r, run) for run in drawn for r in run.curve), key=lambda pair: float(pair[0]["ppl"]))
    corpora = {run.corpus.fingerprint for run in drawn if run.corpus is not None}
    apart = " The runs are on different corpora, so their curves do not compare." if len(corpora) > 1 else ""
    ahead = ""
    if any(mark_of("ppl", r) for run in drawn for r in run.curve):
        ahead = "† marks models that have read the words they predict: here they compare with no others. "
    rows = [
        [run.name, f"{r['epoch']:g}", f"{r['step']:,}", f"{math.log(r['ppl']):.3f}", ppl_text(r)]
        for run in drawn
        for r in run.curve
    ]
    return figure(
        "Validation NLL while training.",
        f"The lowest point is {math.log(lowest['ppl']):.3f} nats a word (ppl {ppl_text(lowest)}), by "
        f"{run.name} after epoch {lowest['epoch']:g}; a curve that still falls at its end could go on. "
        f"{ahead}Epochs are on a square-root scale, as in the paper.{apart}",
        with_buttons(curves_of(drawn)),
        table("Validations", ["run", "epoch", "step", "NLL", "ppl"], rows),
    )


def curves_of(runs: Sequence[Reported]) -> Drawing:
    """The picture of it, a curve for each run; each has been validated."""
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
    return curves(
        "Validation NLL against epochs",
        Axis("epochs (square-root scale)", 0, max(mark.x for mark in marks), root=True),
        Axis("NLL, nats a word", *padded_range([mark.y for mark in marks])),
        series,
    )


def calibration(runs: Sequence[Reported], split: Split) -> Html:
    """Reliability: how often a frame is right that the model holds with some confidence."""
    found = _measured(runs, "frame_reliability", split)
    if not found:
        return absent("Left out: no run has been measured on frames (“ssdvae evaluate RUN”).")
    series, rows = [], []
    for run, m in found:
        name, bins = run.name, m.scores["frame_reliability"]
        most = max(b["events"] for b in bins)
        notes = [
            f"{name}: confidence {b['confidence']:.2f}, right {b['accuracy']:.1%} of {b['events']:,} events"
            for b in bins
        ]
        marks = [
            Mark(b["confidence"], b["accuracy"], note, 3 + 6 * math.sqrt(b["events"] / most))
            for b, note in zip(bins, notes, strict=True)
        ]
        series.append(Series(name, run.colour, marks))
        rows += [[name, f"{b['confidence']:.3f}", f"{b['accuracy']:.3f}", f"{b['events']:,}"] for b in bins]
    errors = "; ".join(
        f"{run.name} {_shown(m, 'frame_ece', '.3f')} ({describe_data(m.data)})" for run, m in found
    )
    return figure(
        "Confidence against accuracy of the inferred frames.",
        "On the dashed line a model is right as often as it expects to be; below it, it is too sure. "
        f"Larger dots have more events. Expected calibration error: {errors}.",
        with_buttons(
            curves("Reliability", Axis("confidence", 0, 1), Axis("accuracy", 0, 1), series, diagonal=True)
        ),
        table("Reliability", ["run", "confidence", "accuracy", "events"], rows),
    )


def _shown(m: Measurement, figure: str, form: str) -> str:
    """A figure; a dash where it was not finite, or is not there."""
    value = m.scores.get(figure)
    return "–" if value is None else f"{value:{form}}"


def latent_use(runs: Sequence[Reported], split: Split) -> Html:
    """Whether the latent variables say anything, or have collapsed."""
    found = _measured(runs, "latent_kl", split)
    if not found:
        return absent("Left out: no run with latent variables has been measured (“ssdvae evaluate RUN”).")
    rows, shown = [], []
    for run, m in found:
        s = m.scores
        name = f"{run.name}, {describe_data(m.data)}"
        rows.append(
            [
                name,
                *(_shown(m, f"latent_{key}", ".2f") for key in ("kl", "entropy", "information")),
                _shown(m, "latent_used", ","),
                _shown(m, "latent_perplexity", ".1f"),
            ]
        )
        known, unsure, kl = (s.get(f"latent_{key}") or 0.0 for key in ("information", "entropy", "kl"))
        parts = (known, unsure, kl - known)
        shown.append((name, list(zip(PARTS, parts, strict=True))))
    head = ["run", "KL", "entropy", "mutual information", "values in use", "values, effectively"]
    return join(
        [
            figure(
                "What a latent variable says.",
                "A bar is the logarithm of the number of values. The first part is what the variable says "
                "about the document: a collapsed one has none of it. The second is what stays uncertain, the "
                "third the room of values that are rarely or never used.",
                with_keys(bars("What a latent variable says, in nats", shown, "nats")),
            ),
            table("Collapse diagnostics, in nats for each latent variable", head, rows),
            tag(
                "p",
                "KL is from the uniform prior; under that prior it is what the bound pays for each variable.",
                class_="note",
            ),
        ]
    )


PARTS = ("mutual information", "entropy", "unused")
