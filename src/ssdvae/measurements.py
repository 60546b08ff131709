"""Measurements: figures of a run, with what is needed to trust them. They are kept in its scores.json."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

from ssdvae.errors import DataError, Malformed
from ssdvae.files import atomic_write, translate_os_errors
from ssdvae.locks import held
from ssdvae.records import read_json, to_json
from ssdvae.shapes import check_shape, made

SCORES = "scores.json"

CONDITIONS_ON_TARGETS = "ppl_conditions_on_targets"
"""The score that is 1 if the model has read the words that it predicts, and nothing pays for that."""


class Bin(TypedDict):
    """Events that are inferred with about the same confidence."""

    confidence: float
    accuracy: float
    events: int


NESTED: dict[str, Any] = {
    "ppl_bound_by_samples": dict[str, float | None] | None,
    "frame_reliability": list[Bin] | None,
    "next_head_reliability": list[Bin] | None,
    "next_frame_reliability": list[Bin] | None,
    "frame_confusions": list[dict[str, Any]] | None,
}
"""Figures that are no numbers. All others are, or null where a number is not finite."""


@dataclass(frozen=True)
class Measurement:
    """Figures, and what is needed to trust them and to measure them again."""

    task: str
    data: str  # the split, or the file; and how it was scored, if not as usual
    sha256: str  # of what was measured on
    items: int
    settings: dict[str, Any]  # seeds, samples, batch
    version: str
    model_sha256: str  # of the weights
    scores: dict[str, Any]


def write_scores(folder: Path, measurements: Iterable[Measurement]) -> None:
    """Keep measurements in a run folder; one of the same task and data takes the place of the older."""
    # Another process may do the same at the same time: what it keeps is not to be lost.
    with translate_os_errors(folder / SCORES, "write"), held(folder / f".{SCORES}.lock", None):
        kept = {(m.task, m.data, m.sha256): m for m in (*read_scores(folder), *measurements)}
        with atomic_write(folder / SCORES) as path:
            path.write_text(to_json([asdict(m) for m in kept.values()], indent=2) + "\n", encoding="utf-8")


def read_scores(folder: Path) -> list[Measurement]:
    """What was measured of a run; nothing if it never was."""
    path = folder / SCORES
    if not path.is_file():
        return []
    measurements = []
    for number, record in enumerate(read_json(path, list, "scores that `ssdvae evaluate` wrote"), start=1):
        try:
            measurement = made(Measurement, record)
            for name, value in measurement.scores.items():
                check_shape(value, NESTED.get(name, float | None), f"scores.{name}")
            if any(b["events"] < 1 for b in measurement.scores.get("frame_reliability") or ()):
                raise Malformed("no events at scores.frame_reliability", "1 or more in each")
        except Malformed as error:
            raise DataError(path, number, error.found, error.expected, unit="measurement") from error
        measurements.append(measurement)
    return measurements
