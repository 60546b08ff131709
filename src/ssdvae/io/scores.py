"""``scores.json`` of a run folder: measurements, with what is needed to trust them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from ssdvae.io.errors import DataError, Malformed
from ssdvae.io.files import translate_os_errors, write_text
from ssdvae.io.locks import lock_path
from ssdvae.io.records import LARGEST, Count, Record, parse, read_json, to_json

SCORES = "scores.json"

CONDITIONS_ON_TARGETS = "ppl_conditions_on_targets"
"""1 if the score conditions on the tokens it predicts without a KL term (not a valid perplexity)."""


class ReliabilityBin(Record, extra="ignore"):
    """Events that are predicted with about the same confidence."""

    confidence: float
    accuracy: float
    events: Annotated[int, Field(ge=1, lt=LARGEST)]


class Scores(Record, extra="allow"):
    """Scores by name: numbers, or null where a number is not finite; and these, which are no numbers."""

    __pydantic_extra__: dict[str, float | None]

    ppl_bound_by_samples: dict[str, float | None] | None = None
    frame_reliability: list[ReliabilityBin] | None = None
    next_head_reliability: list[ReliabilityBin] | None = None
    next_frame_reliability: list[ReliabilityBin] | None = None
    frame_confusions: list[dict[str, Any]] | None = None


class Measurement(Record):
    """The scores of a task on some data, and what is needed to measure them again."""

    task: str
    data: str  # the split, or the file; and how it was scored, if not as usual
    sha256: str  # of the data
    items: Count
    settings: dict[str, Any]  # seeds, samples, batch
    version: str
    model_sha256: str  # of the weights
    scores: dict[str, Any]  # see ``Scores``


def write_scores(folder: Path, measurements: Iterable[Measurement]) -> None:
    """Add measurements to a run folder; one of the same task and data replaces the older."""
    # Locked, since another process may add to the file at the same time.
    with translate_os_errors(folder / SCORES, "write"), lock_path(folder / f".{SCORES}.lock", None):
        merged = {(m.task, m.data, m.sha256): m for m in (*read_scores(folder), *measurements)}
        write_text(folder / SCORES, to_json([dict(m) for m in merged.values()], indent=2) + "\n")


def read_scores(folder: Path) -> list[Measurement]:
    """Return the measurements of a run; none if there is no file."""
    path = folder / SCORES
    if not path.is_file():
        return []
    measurements = []
    records = read_json(path, list[Any], "scores that `ssdvae evaluate` wrote")
    for number, record in enumerate(records, start=1):
        try:
            measurement = parse(Measurement, record)
            parse(Scores, measurement.scores, "scores")
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected, unit="measurement") from error
        measurements.append(measurement)
    return measurements
