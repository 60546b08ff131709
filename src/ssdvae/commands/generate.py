"""`ssdvae generate`: generate scripts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ssdvae.commands import Command
from ssdvae.commands.console import TableText, show
from ssdvae.commands.questions import check_events
from ssdvae.data.events import END
from ssdvae.inference.options import GenerateOptions
from ssdvae.io.records import to_json
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.commands.coerce import AnyModel
    from ssdvae.data.events import AnyEvent
    from ssdvae.inference.generation import Script


@with_options(GenerateOptions)
def generate(
    run: AnyModel,
    seed_events: AnyEvent | Sequence[AnyEvent] = (),
    frames: Sequence[str | None] = (),
    **options: Any,
) -> list[Script]:
    """Generate scripts that begin with the seed events, or with none; most likely first.

    >>> ssdvae.generate("runs/first", ["arrested police suspect in"], frames=[None, "Trial"])

    An event is an `Event`, a mapping such as ``{"verb": "met", "subj": "she"}``, or a text such as
    ``"met she him at"``, with - for an empty slot. ``frames`` are those of the events after the seed, None
    where the model chooses.
    """
    from ssdvae.commands.coerce import as_events, as_model
    from ssdvae.inference import generation

    chosen, model = GenerateOptions(**options), as_model(run)
    seed = as_events(seed_events, model)
    return generation.generate(model, chosen, seed_events=seed, frames=frames)


def unknown_words(run: AnyModel, events: AnyEvent | Sequence[AnyEvent]) -> dict[str, str | None]:
    """Return the words of events that a model does not know, with what it reads instead, if anything.

    >>> ssdvae.unknown_words("runs/first", ["arrested police xyzzy"])
    """
    from ssdvae.commands.coerce import as_events, as_model
    from ssdvae.inference import lookup

    model = as_model(run)
    return lookup.unknown_words(model, as_events(events, model, warn=False))


def tables(scripts: Iterable[Script]) -> Iterator[TableText]:
    """Yield a table for each script: its events, the frames they were made from, and the inferred ones."""
    for number, script in enumerate(scripts, start=1):
        framed = any(event.inferred for event in script.events)
        head = ["event", *(["made from", "inferred frame", ""] if framed else [])]
        rows = []
        for place, event in enumerate(script.events):
            row = [str(event.event)]
            if framed:
                planned = "(seed)" if place < script.seeds else event.planned or "–"
                row += [planned, event.inferred or "–", f"{event.probability or 0:.0%}"]
            rows.append(row)
        if script.ended:
            rows.append([END, *[""] * (len(head) - 1)])
        yield f"script {number}, log p {script.log_prob:.1f}", head, rows


@with_options(GenerateOptions)
def main(
    seed_events: list[str] = [],  # noqa: B006  # read only
    *,
    run: str | None = None,
    frames: str | None = None,
    json: bool = False,
    **options: Any,
) -> None:
    """Generate scripts from seed events.

    Args:
        seed_events: events to begin with, each in quotes, "elected taylor election at", - for an empty slot;
            by default none
        run: run folder, or the name of a model; by default the model in the package
        frames: frames of the events after the seed, comma-separated; _ where the model chooses
        json: print one JSON object and nothing else
    """
    from ssdvae.commands.coerce import load

    check_events(seed_events)
    names = [] if frames is None else [name.strip() for name in frames.split(",")]
    model = load(run)
    scripts = generate(model, seed_events, [None if name == "_" else name for name in names], **options)
    if json:
        unknown = unknown_words(model, seed_events)
        print(to_json({"unknown_words": unknown, "scripts": [script.to_record() for script in scripts]}))
    else:
        show(tables(scripts))


COMMAND = Command(
    main,
    examples=(
        "ssdvae generate 'arrested police suspect in' --run runs/first",
        "ssdvae generate 'met she him' --run runs/first --frames _,Arrest",
    ),
)
