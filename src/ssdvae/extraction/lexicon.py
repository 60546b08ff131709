"""Which frames a verb can evoke: a table of one's own, or what a frame classifier has learned of it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ssdvae.data.events import Document, Event
from ssdvae.data.readers.tabular import csv_rows
from ssdvae.errors import DataError, shorten
from ssdvae.files import stop_at_first_error
from ssdvae.records import read_json

Guess = tuple[str, float | None]
"""A frame, and how probable it is; ``None`` where the annotator does not say."""

COLUMNS = {"verb": ("verb", "lemma"), "frame": ("frame",), "weight": ("weight", "probability", "count")}


def entry(verb: str) -> str:
    """A verb as events have it: ``give up`` is ``give_up``, and what may be left out, ``abide (by)``, is."""
    return "_".join(re.sub(r"\(+[^()]*\)+", " ", verb.replace("_", " ")).lower().split())


class Lexicon:
    """The frames of each verb with their weights; a verb's probabilities are its weights over their sum."""

    def __init__(
        self, frames: Mapping[str, Mapping[str, float]], forms: Mapping[str, str] | None = None
    ) -> None:
        self.frames = {verb: dict(choices) for verb, choices in frames.items()}
        self.forms = dict(forms or {})

    def __len__(self) -> int:
        return len(self.frames)

    def verb(self, event: Event) -> str:
        """The entry of an event's verb: that of its lemma, of the word itself, or of a word seen before."""
        words = [entry(word) for word in (event.lemma, event.head) if word]
        words.append(self.forms.get(event.head.lower(), words[0]))
        return next((word for word in words if word in self.frames), words[0])

    def candidates(self, event: Event) -> dict[str, float]:
        return self.frames.get(self.verb(event), {})

    def probabilities(self, event: Event) -> dict[str, float]:
        choices = self.candidates(event)
        total = sum(choices.values())
        return {frame: weight / total for frame, weight in choices.items()} if total else {}

    def guess(self, document: Document) -> list[Guess | None]:
        return [most_probable(self.probabilities(event)) for event in document.events]

    def fingerprint(self) -> str:
        # In its own order, in which probabilities are added up.
        return hashlib.sha256(json.dumps([self.frames, self.forms]).encode()).hexdigest()


def most_probable(probabilities: Mapping[str, float]) -> Guess | None:
    """The best frame, the first by its name among equals, so that the same words always give the same."""
    best = min(probabilities, key=lambda frame: (-probabilities[frame], frame), default=None)
    return None if best is None else (best, probabilities[best])


def read_lexicon(path: Path) -> Lexicon:
    """A lexicon in a table (``verb,frame,weight``) or in JSON (``{"verb": ["frame", …]}``)."""
    name = path.name.lower().removesuffix(".gz")
    frames: dict[str, dict[str, float]] = {}
    for line, verb, frame, weight in _json_entries(path) if name.endswith(".json") else _csv_entries(path):
        if not (isinstance(verb, str) and entry(verb) and isinstance(frame, str) and frame.strip()):
            raise DataError(path, line, f"{shorten(verb)}: {shorten(frame)}", "a verb and a frame")
        try:
            value = float(weight)
        except (TypeError, ValueError):
            value = -1.0
        if not 0 <= value < float("inf"):
            raise DataError(path, line, f"the weight {shorten(weight)}", "a number, 0 or more")
        choices = frames.setdefault(entry(verb), {})
        choices["_".join(frame.split())] = value
    if not frames:
        raise DataError(path, None, "no verbs", "a lexicon of verbs and their frames")
    return Lexicon(frames)


Entry = tuple[int | None, Any, Any, Any]


def _csv_entries(path: Path) -> Iterable[Entry]:
    for line, cells in csv_rows(path, stop_at_first_error, COLUMNS, ("verb", "frame")):
        yield line, cells["verb"], cells["frame"], cells.get("weight") or 1


def _json_entries(path: Path) -> Iterable[Entry]:
    for verb, frames in read_json(path, dict, 'a lexicon such as {"hit": ["Impact", "Cause_harm"]}').items():
        choices = [frames] if isinstance(frames, str) else frames
        if isinstance(choices, list):
            choices = dict.fromkeys((f for f in choices if isinstance(f, str)), 1)
        if not isinstance(choices, dict) or not choices:
            raise DataError(
                path, None, f"{shorten(frames)} for {shorten(verb)}", "a frame, or a list of them"
            )
        for frame, weight in choices.items():
            yield None, verb, frame, weight
