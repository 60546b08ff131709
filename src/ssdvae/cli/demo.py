"""Start here: the demo, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import Namespace
from rich.console import Console

from ssdvae import api
from ssdvae.cli.command import Command
from ssdvae.cli.console import output, show
from ssdvae.cli.layout import TableText
from ssdvae.cli.parser import Parser

if TYPE_CHECKING:
    from ssdvae.answers.generate import Script
    from ssdvae.data.events import Document
    from ssdvae.tour import Asked, Tour


def demo_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for everything the demo makes")


def demo(args: Namespace) -> None:
    show_tour(api.demo(args.out))


def show_tour(tour: Tour) -> None:
    """The curve, the scores beside the best possible ones, some documents, and events found in a text."""
    out = output(110)
    out.print("\nPerplexity of the validation split, as training went on")
    out.print(f"  {_sparkline(tour.curve)}  {tour.curve[0]:.2f} → {tour.curve[-1]:.2f}\n")
    show([_scores(tour.scores)], out)
    out.print(
        "The best possible figures are exact: the corpus knows its own distribution, and no model comes "
        "below but by luck. Those of ssdvae, the paper's model, are recorded (docs/results.md): twice as "
        "wide, on more documents, cut to five events, where 5.26 is possible. Its perplexity is a bound; "
        "that of ssdvae-exact is exact.\n"
    )
    for document, inferred in tour.documents:
        show([_document(document, inferred)], out, plain=True)
        out.print()
    for script, log_prob in tour.scripts:
        show([_script(script, log_prob)], out, plain=True)
        out.print()
    if tour.extracted is not None:
        rows = list(_extracted(tour.extracted))
        show([("Events found in a text", ["sentence", "event", "frame"], rows)], out, plain=True)
        out.print(
            f"Frames below {tour.threshold} or of unknown verbs are latent: the model infers them. "
            f"The events are in {tour.folder / 'text' / 'ferry.jsonl'}.\n"
        )
    if tour.asked is not None:
        show_asked(tour.asked, out)
    out.print(f"Everything is in {tour.folder}: scores.json, the corpus, and the run ({tour.run.folder}).")
    out.print(f"Open {tour.page} in a browser to see it all: {tour.page.resolve().as_uri()}", soft_wrap=True)


def show_asked(asked: Asked, out: Console) -> None:
    """What a model that has read other texts makes of this one: a table, and an answer a line."""
    head = ["event", "frame", "more surprising than"]
    rows = [
        [
            str(read.event),
            f"{read.frame} ({read.probability:.2f})",
            f"{scored.percentile or 0:.0f}% of events",
        ]
        for read, scored in zip(asked.inferred.events, asked.scored.events, strict=True)
    ]
    show(
        [(f"The same text, read by {asked.model}, which comes with the package", head, rows)], out, plain=True
    )
    (hole,) = asked.filled.holes
    *_, blank = asked.filled.events
    answers = {
        "next": ("what follows?", [(c.name, f"{c.probability:.1%}") for c in asked.ahead.heads]),
        "fill": (
            f"_ {' '.join(blank.words[1:])}",
            [(f.event.head, f"{f.probability:.1%}") for f in hole.fillings],
        ),
        "similar": (
            str(asked.similar[0].asked),
            [(str(s.event), f"{s.similarity:.2f}") for s in asked.similar],
        ),
    }
    for command, (question, found) in answers.items():
        told = ", ".join(f"{what} ({number})" for what, number in found)
        out.print(f"  {command:9}{question:22}{told}")
    out.print('\nAsk it yourself: ssdvae next "arrested police suspect in", or ssdvae explore.\n')


def _scores(scores: dict[str, Any]) -> TableText:
    model, best = scores["ssdvae-exact"], scores["best"]
    rows = [
        ["perplexity", f"{scores['ssdvae']['ppl_bound']:.2f}", f"{model['ppl']:.2f}", f"{best['ppl']:.2f}"]
    ]
    shares = {
        "accuracy of latent frames": "frame_accuracy",
        f"cloze by likelihood (chance {model.get('cloze_chance', 0):.1%})": "cloze_nll",
        "generated scripts that are possible": "scripts_possible",
    }
    for label, name in shares.items():
        if name in model and name in best:
            columns = (scores["ssdvae"].get(name), model[name], best[name])
            rows.append([label, *("" if value is None else f"{value:.1%}" for value in columns)])
    title = f"{model['documents']:,} unseen documents, {model['words']:,} words"
    return title, ["", "ssdvae", "ssdvae-exact", "best possible"], rows


def _script(script: Script, log_prob: float) -> TableText:
    told = "impossible in this world" if log_prob == -math.inf else f"possible: log p = {log_prob:.1f}"
    rows = [[str(event.event), event.inferred or ""] for event in script.events]
    title = f"A script after the first event ({told})"
    return title, [name.ljust(24) for name in ("event", "inferred frame")], rows


def _sparkline(values: Sequence[float]) -> str:
    """A curve of one line, on a logarithmic scale."""
    logs = [math.log(value) for value in values]
    low, high = min(logs), max(logs)
    return "".join("▁▂▃▄▅▆▇█"[round((x - low) / max(high - low, 1e-9) * 7)] for x in logs)


def _document(document: Document, inferred: Sequence[str]) -> TableText:
    rows = [
        [str(event), str(event.frame), guess if guess == event.frame else f"{guess} ✗"]
        for event, guess in zip(document.events, inferred, strict=True)
    ]
    # Padded, so that the columns of one document stand below those of the other.
    return document.id, [name.ljust(24) for name in ("event", "true frame", "inferred frame")], rows


def _extracted(document: Document) -> Iterator[list[str]]:
    """Each event beside the sentence that it is from, which is said once."""
    last = -1
    for event in document.events:
        assert event.origin is not None
        sentence = "" if event.origin.sentence == last else str(event.origin.text)
        last = event.origin.sentence
        frame = f"{event.frame} ({event.probability:.2f})" if event.frame else "latent"
        yield [sentence, str(event), frame]


COMMANDS = (
    Command(
        "demo",
        "train, evaluate and look at a model of the embedded corpus",
        "demo",
        demo_flags,
        demo,
        ("ssdvae demo", "ssdvae demo --out elsewhere"),
    ),
)
