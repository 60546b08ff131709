"""`ssdvae next`: predict the next event."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import Command
from ssdvae.commands.console import TableText, chance
from ssdvae.commands.questions import Answers, check_events, give, is_terminal
from ssdvae.data.options import ReadOptions, StreamOptions
from ssdvae.inference.options import NextOptions
from ssdvae.io.errors import UserError
from ssdvae.options import split_options, with_options

if TYPE_CHECKING:
    from ssdvae.commands.coerce import AnyModel, Documents
    from ssdvae.inference.output import Candidate
    from ssdvae.inference.prefixes import PrefixForecasts
    from ssdvae.io.progress import Progress


@with_options(ReadOptions, NextOptions)
def next_events(
    run: AnyModel,
    documents: Documents,
    *,
    given: Mapping[str, str] | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> Answers[Any]:
    """Predict what comes after the events of each document: the next frame, head and likely events.

    >>> next(ssdvae.next_events("runs/first", [["arrested police suspect in"]])).heads
    >>> list(ssdvae.next_events("runs/first", "events.jsonl", given={"frame": "Arrest"}, top=3))

    Documents are given as to `infer`. ``given`` has what is known of the next event: its ``frame``, or words
    by the names of their slots. An answer is a `Forecast` or, with ``every_prefix``, `PrefixForecasts`.
    """
    from ssdvae.inference.forecast import forecasts

    kind = NextOptions
    return Answers(run, documents, "looking ahead", forecasts, kind, options, progress, given=given)


def tables(answers: Iterable[Any]) -> Iterator[TableText]:
    """Yield two tables for each document: frames and heads side by side, and whole events.

    With ``--every-prefix``, one: a row for each of its events.
    """
    for answer in answers:
        if hasattr(answer, "prefixes"):
            yield _prefix_table(answer)
            continue
        known = " and ".join(f"{name} {value}" for name, value in answer.given.items())
        given = f", given {known} ({chance(answer.given_probability or 0)})" if known else ""
        plural = "s" if answer.read > 1 else ""
        after = f"after {answer.read} event{plural}" if answer.read else "at the start"
        columns = [("next frame", answer.frames), ("next head", answer.heads)][not answer.frames :]
        rows = [
            [str(rank), *(text for one in row for text in (("", "") if one is None else _cells(one)))]
            for rank, row in enumerate(zip_longest(*(found for _, found in columns)), start=1)
        ]
        ends = "" if answer.end_probability is None else f", case ends: {chance(answer.end_probability)}"
        when = zip(("next event in ", "case over in "), answer.times, strict=True)
        told = "".join(f"; {what}{time}" for what, time in when if time is not None)
        title = f"{answer.id}: {after}{given}{ends}{told} – {answer.note}"
        yield title, ["", *(text for name, _ in columns for text in (name, ""))], rows
        framed = any(event.frame for event in answer.events)
        yield (
            "likely events",
            ["event", "", *(["frame"] if framed else [])],
            [
                [str(e.event), chance(e.probability), *([e.frame.name if e.frame else "–"] if framed else [])]
                for e in answer.events
            ],
        )


def _prefix_table(answer: PrefixForecasts) -> TableText:
    head = ["", "after", "next", "", "case ends", "next event in", "case over in"]
    rows = []
    for number, prefix in enumerate(answer.prefixes, start=1):
        end = "–" if prefix.end_probability is None else chance(prefix.end_probability)
        times = ["–" if time is None else time.short for time in prefix.times]
        rows.append([str(number), str(prefix.event), *_cells(prefix.heads[0]), end, *times])
    return f"{answer.id}: after every event", head, rows


def _cells(candidate: Candidate) -> tuple[str, str]:
    return candidate.name, chance(candidate.probability)


@with_options(ReadOptions, NextOptions, StreamOptions)
def main(
    events: list[str] = [],  # noqa: B006  # read only
    *,
    run: str | None = None,
    given: list[str] | None = None,
    out: Path | None = None,
    json: bool = False,
    **options: Any,
) -> None:
    """Predict the next event: its frame, its head, likely events.

    Args:
        events: events that came before, each in quotes, "arrested police suspect in"; or a file of
            documents; by default those of standard input, one a line, with a blank line after each document
        run: run folder, or the name of a model; by default the model in the package
        given: NAME=VALUE, what is known of the next event: its frame (frame=Arrest), or words (subj=police)
        out: file to write, .jsonl, .jsonl.gz, .csv or .parquet; or a folder for shards (no ending)
        json: print a line of JSON for each document
    """
    if wrong := [text for text in given or [] if "=" not in text]:
        raise UserError(f"--given: found {wrong[0]!r}, expected NAME=VALUE, such as frame=Arrest")
    known = None if given is None else dict(text.split("=", 1) for text in given)
    start: Any = [{"id": "events", "events": events}]
    documents = start
    if len(events) == 1 and Path(events[0]).exists():
        documents = events[0]
    elif not events and not is_terminal():
        documents = sys.stdin.buffer
    else:
        check_events(events)
    stream, own = split_options(options, StreamOptions)
    answers: Iterator[Any] = next_events(run, documents, given=known, **own)
    if documents is not start and not events:  # nothing typed is the start of a document
        first = next(answers, None) or next(next_events(run, start, given=known, **own))
        answers = chain([first], answers)
    give(answers, tables, out=out, json=json, stream=stream)


COMMAND = Command(
    main,
    examples=(
        "ssdvae next 'arrested police suspect in' --run runs/first",
        "printf 'arrested police suspect\\ntried court suspect' | ssdvae next --run runs/first",
        "ssdvae next 'met she him' --run runs/first --given frame=Arrest",
    ),
)
