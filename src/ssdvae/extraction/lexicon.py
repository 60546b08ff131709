"""Lexicons: the frames that each verb can evoke, from a table or learned by a classifier."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ssdvae.data.events import Document, Event
from ssdvae.data.readers.rows import named_rows
from ssdvae.io.errors import DataError, shorten
from ssdvae.io.files import stop_at_first_error
from ssdvae.io.records import read_json

FramePrediction = tuple[str, float | None]
"""A frame and its probability; None where the annotator gives none."""

COLUMNS = {"verb": ("verb", "lemma"), "frame": ("frame",), "weight": ("weight", "probability", "count")}


def normalize_verb(verb: str) -> str:
    """Return a verb as events have it: "give up" becomes give_up, and "abide (by)" becomes abide."""
    return "_".join(re.sub(r"\(+[^()]*\)+", " ", verb.replace("_", " ")).lower().split())


class Lexicon:
    """The frames of each verb with their weights: p(f | verb) = weight of f / sum of the verb's weights.

    ``forms`` has the verb of each inflected form that was seen.
    """

    def __init__(
        self, frames: Mapping[str, Mapping[str, float]], forms: Mapping[str, str] | None = None
    ) -> None:
        self.frames = {verb: dict(choices) for verb, choices in frames.items()}
        self.forms = dict(forms or {})

    def __len__(self) -> int:
        return len(self.frames)

    def verb(self, event: Event) -> str:
        """Return the entry of an event's verb: its lemma, the word itself, or the verb of its form."""
        words = [normalize_verb(word) for word in (event.lemma, event.head) if word]
        words.append(self.forms.get(event.head.lower(), words[0]))
        return next((word for word in words if word in self.frames), words[0])

    def candidates(self, event: Event) -> dict[str, float]:
        """Return the frames of an event's verb with their weights; none for an unknown verb."""
        return self.frames.get(self.verb(event), {})

    def probabilities(self, event: Event) -> dict[str, float]:
        """Return the probability of each frame of an event's verb."""
        choices = self.candidates(event)
        total = sum(choices.values())
        return {frame: weight / total for frame, weight in choices.items()} if total else {}

    def predict(self, document: Document) -> list[FramePrediction | None]:
        """Return the likeliest frame of each event; None for an unknown verb."""
        return [most_likely(self.probabilities(event)) for event in document.events]

    def fingerprint(self) -> str:
        """Return a hash of the entries, in their order, in which probabilities are added up."""
        return hashlib.sha256(json.dumps([self.frames, self.forms]).encode()).hexdigest()


def most_likely(probabilities: Mapping[str, float]) -> FramePrediction | None:
    """Return the likeliest frame; among equals, the first by name."""
    best = min(probabilities, key=lambda frame: (-probabilities[frame], frame), default=None)
    return None if best is None else (best, probabilities[best])


def read_lexicon(path: Path) -> Lexicon:
    """Read a lexicon from a table (``verb,frame,weight``) or JSON (``{"verb": ["frame", …]}``)."""
    name = path.name.lower().removesuffix(".gz")
    frames: dict[str, dict[str, float]] = {}
    for line, verb, frame, weight in _json_entries(path) if name.endswith(".json") else _csv_entries(path):
        if not (isinstance(verb, str) and normalize_verb(verb) and isinstance(frame, str) and frame.strip()):
            raise DataError(path, line, f"{shorten(verb)}: {shorten(frame)}", "a verb and a frame")
        try:
            value = float(weight)
        except (TypeError, ValueError, OverflowError):
            value = -1.0
        if not 0 <= value < float("inf"):
            raise DataError(path, line, f"the weight {shorten(weight)}", "a number, 0 or more")
        choices = frames.setdefault(normalize_verb(verb), {})
        choices["_".join(frame.split())] = value
    if not frames:
        raise DataError(path, None, "no verbs", "a lexicon of verbs and their frames")
    return Lexicon(frames)


Entry = tuple[int | None, Any, Any, Any]


def _csv_entries(path: Path) -> Iterable[Entry]:
    for line, cells in named_rows(path, "csv", stop_at_first_error, COLUMNS, ("verb", "frame")):
        yield line, cells["verb"], cells["frame"], cells.get("weight") or 1


def _json_entries(path: Path) -> Iterable[Entry]:
    expected = 'a lexicon such as {"hit": ["Impact", "Cause_harm"]}'
    for verb, frames in read_json(path, dict[str, str | list[str] | dict[str, float]], expected).items():
        if not frames:
            raise DataError(path, None, f"{shorten(frames)} for {shorten(verb)}", "a frame, or several")
        names = [frames] if isinstance(frames, str) else frames
        for frame in names:
            yield None, verb, frame, frames[frame] if isinstance(frames, dict) else 1
