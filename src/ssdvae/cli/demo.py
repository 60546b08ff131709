"""Start here: the demo, and what it shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jsonargparse import Namespace

from ssdvae import api
from ssdvae.cli.command import Command
from ssdvae.cli.console import output, show
from ssdvae.cli.layout import TableText
from ssdvae.cli.parser import Parser

if TYPE_CHECKING:
    from ssdvae.data.events import Document
    from ssdvae.tour import Tour


def demo_flags(parser: Parser, argv: Sequence[str]) -> None:
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for everything the demo makes")


def demo(args: Namespace) -> None:
    show_tour(api.demo(args.out))


def show_tour(tour: Tour) -> None:
    """The curve, the scores beside the best possible ones, some documents, and events found in a text."""
    out = output(110)
    out.print("\nPerplexity of the validation split, as training went on")
    out.print(f"  {_sparkline(tour.curve)}  {tour.curve[0]:.2f} → {tour.curve[-1]:.2f}\n")
    show([_scores(tour.scores["ssdvae"], tour.scores["best"])], out)
    out.print(
        "The best possible figures are exact: the corpus knows its own distribution. Compare ppl_bound "
        "with them: it pays for its frames, and no model comes below but by luck. ppl does not pay for "
        "them: it is told the frames that the encoder read off the very words to be predicted.\n"
    )
    for document, inferred in tour.documents:
        show([_document(document, inferred)], out, plain=True)
        out.print()
    if tour.extracted is not None:
        rows = list(_extracted(tour.extracted))
        show([("Events found in a text", ["sentence", "event", "frame"], rows)], out, plain=True)
        out.print(
            f"Frames below {tour.threshold} or of unknown verbs are latent: the model infers them. "
            f"The events are in {tour.folder / 'text' / 'ferry.jsonl'}.\n"
        )
    out.print(f"Everything is in {tour.folder}: scores.json, the corpus, and the run ({tour.run.folder}).")
    out.print(f"Open {tour.page} in a browser to see it all: {tour.page.resolve().as_uri()}", soft_wrap=True)


def _scores(model: dict[str, Any], best: dict[str, Any]) -> TableText:
    rows = [
        ["ppl (frames read off the same words)", f"{model['ppl']:.3f}", ""],
        ["ppl_official (separators counted)", f"{model['ppl_official']:.3f}", ""],
        ["ppl_bound (comparable)", f"{model['ppl_bound']:.3f}", f"{best['ppl']:.3f}"],
        ["accuracy of latent frames", f"{model['frame_accuracy']:.1%}", f"{best['frame_accuracy']:.1%}"],
    ]
    for name, kind in (("cloze_nll", "likelihood"), ("cloze_pmi", "mutual information")):
        if name in model and name in best:
            label = f"cloze by {kind} (chance {model['cloze_chance']:.1%})"
            rows.append([label, f"{model[name]:.1%}", f"{best[name]:.1%}"])
    title = f"{model['documents']} unseen documents, {model['words']:,} words"
    return title, ["", "model", "best possible"], rows


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
