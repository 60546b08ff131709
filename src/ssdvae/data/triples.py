"""The public sets of events that are a subject, a predicate and an object.

**Similarity** (Weber et al. 2018, Ding et al. 2019), one item on each line, fields between bars. Either two
pairs of events, of which the first is the more similar one:

    subject | verb | object | subject | verb | object | subject | verb | object | subject | verb | object

or one pair, and how similar people find it:

    subject | verb | object | subject | verb | object | 3.74

**Multiple-choice narrative cloze** (Granroth-Wilding and Clark 2016; files of Weber et al. 2018), one event
on each line: those of a document, ``HOLDOUT_SEP``, the event that was taken out, ``NEG_SEP``, events that are
wrong, ``DOC_SEP``:

    rocket|hurled on|journey

A predicate may have several words: the first is the verb, the others are the modifier.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ssdvae.data.events import MISSING, Words
from ssdvae.errors import DataError, Malformed, shorten
from ssdvae.files import AnyPath, text_lines

Pair = tuple[Words, Words]

HOLDOUT, WRONG, DOCUMENT = "HOLDOUT_SEP", "NEG_SEP", "DOC_SEP"


@dataclass(frozen=True, slots=True)
class Rated:
    """Two events, and how similar people find them."""

    pair: Pair
    rating: float


@dataclass(frozen=True, slots=True)
class HardPairs:
    """Two events that are similar, and two that share words and are not."""

    similar: Pair
    other: Pair


def read_similarity(path: AnyPath) -> list[HardPairs] | list[Rated]:
    """The items of a file, plain or .gz; blank lines are passed over."""
    hard: list[HardPairs] = []
    rated: list[Rated] = []
    for number, text in text_lines(path):
        if not text.strip():
            continue
        try:
            fields = [field.strip() for field in text.split("|")]
            if len(fields) not in (7, 12):
                raise Malformed(
                    f"{len(fields)} fields between bars", "12 (two pairs) or 7 (a pair, a number)"
                )
            if bool(hard if len(fields) == 7 else rated):
                raise Malformed(f"{len(fields)} fields between bars", "as many as on the lines before")
            events = [_event(*fields[start : start + 3]) for start in range(0, len(fields) - 1, 3)]
            if len(fields) == 7:
                rated.append(Rated((events[0], events[1]), _rating(fields[6])))
            else:
                hard.append(HardPairs((events[0], events[1]), (events[2], events[3])))
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected) from error
    if not hard and not rated:
        raise DataError(
            path, None, "no pairs of events", "subject | verb | object, two or four times on a line"
        )
    return hard or rated


def _event(subject: str, predicate: str, object: str) -> Words:
    verb, *others = predicate.split() or [""]
    if not verb:
        raise Malformed(
            f"no verb between {shorten(subject)} and {shorten(object)}", "subject | verb | object"
        )
    return verb, _word(subject), _word(object), _word(" ".join(others))


def _word(text: str) -> str:
    return "_".join(text.split()) or MISSING


def _rating(text: str) -> float:
    try:
        rating = float(text)
    except ValueError:
        raise Malformed(f"{shorten(text)} as the similarity", "a number") from None
    if not math.isfinite(rating):
        raise Malformed(f"{text} as the similarity", "a finite number")
    return rating


@dataclass(frozen=True, slots=True)
class NarrativeItem:
    """The other events of a document, the one that was taken out, and wrong ones."""

    context: tuple[Words, ...]
    truth: Words
    wrong: tuple[Words, ...]

    @property
    def candidates(self) -> tuple[Words, ...]:
        """The true one first."""
        return (self.truth, *self.wrong)


def read_mcnc(path: AnyPath) -> list[NarrativeItem]:
    """The items of a file, plain or .gz; blank lines are passed over."""
    items = list(_narratives(path))
    if not items:
        raise DataError(path, None, "no items", f"events, {HOLDOUT}, an event, {WRONG}, events, {DOCUMENT}")
    return items


def _narratives(path: AnyPath) -> Iterator[NarrativeItem]:
    marks = (HOLDOUT, WRONG, DOCUMENT)
    parts: list[list[Words]] = [[]]
    number = 0
    for number, text in text_lines(path):
        line = text.strip()
        if not line:
            continue
        try:
            if line in marks:
                if line != marks[len(parts) - 1]:
                    raise Malformed(line, f"events, or {marks[len(parts) - 1]}")
                parts.append([])
                if line == DOCUMENT:
                    yield _narrative(*parts[:-1])
                    parts = [[]]
            else:
                fields = line.split("|")
                if len(fields) != 3:
                    raise Malformed(shorten(line), "subject|predicate|object")
                parts[-1].append(_event(*fields))
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected) from error
    if parts == [[]]:
        return
    try:  # the last one may do without its mark
        yield _narrative(*parts, *[[]] * (len(marks) - len(parts)))
    except Malformed as error:
        raise DataError(path, number, error.found, error.expected) from error


def _narrative(context: list[Words], truth: list[Words], wrong: list[Words]) -> NarrativeItem:
    if not context or len(truth) != 1 or not wrong:
        found = f"an item of {len(context)} events, {len(truth)} taken out and {len(wrong)} wrong ones"
        raise Malformed(found, "events, 1 taken out, and wrong ones")
    return NarrativeItem(tuple(context), truth[0], tuple(wrong))
