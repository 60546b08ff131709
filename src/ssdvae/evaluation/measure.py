"""All that is measured of a model, and the file in its run folder that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

from ssdvae import __version__
from ssdvae.config import EvaluateSettings
from ssdvae.data.cloze import ClozeTask, read_cloze
from ssdvae.data.corpus import Corpus
from ssdvae.data.readers.jsonl import write_records
from ssdvae.errors import DataError, Malformed, UserError
from ssdvae.evaluation.cloze import score_cloze
from ssdvae.evaluation.frames import FramePredictions
from ssdvae.evaluation.perplexity import evaluate
from ssdvae.files import atomic_write, sha256, translate_os_errors
from ssdvae.locks import held
from ssdvae.memory import keep_freed_memory
from ssdvae.models.base import EventModel
from ssdvae.records import read_json, to_json
from ssdvae.shapes import check_shape, made

FILE = "scores.json"


class Bin(TypedDict):
    """Events that are inferred with about the same confidence."""

    confidence: float
    accuracy: float
    events: int


NESTED: dict[str, Any] = {
    "ppl_bound_by_samples": dict[str, float | None] | None,
    "frame_reliability": list[Bin] | None,
    "frame_confusions": list[dict[str, Any]] | None,
}
"""Figures that are no numbers. All others are, or null where a number is not finite."""


@dataclass(frozen=True)
class Measurement:
    """Figures, and what is needed to trust them and to make them again."""

    task: str
    data: str  # the split, or the file; and how it was scored, if not as usual
    sha256: str  # of what was measured on
    items: int
    settings: dict[str, Any]  # seeds, samples, batch
    version: str
    model_sha256: str  # of the weights
    scores: dict[str, Any]


def measure(
    model: EventModel,
    weights: str,
    corpus: Corpus,
    settings: EvaluateSettings,
    *,
    details: Path | None = None,
    tick: Callable[[int], None] = lambda items: None,
) -> list[Measurement]:
    """Do the tasks, each as far as the model has an answer; ``weights`` is the fingerprint of the model.

    ``details`` is a file for the scores of every cloze item.
    """
    keep_freed_memory()
    corpus.check_names(model.vocabulary, model.frames)
    path = _cloze_file(model, corpus, settings) if "cloze" in settings.task_names else None
    if details is not None and path is None:
        raise UserError("--details writes the scores of cloze items, and no cloze is to be measured")
    done = []

    def keep(task: str, data: str, digest: str, items: int, scores: dict[str, Any]) -> None:
        used = {name: value for name, value in settings.to_dict().items() if name not in ("tasks", "split")}
        done.append(Measurement(task, data, digest, items, used, __version__, weights, scores))

    if {"perplexity", "frames"} & settings.task_names:
        predictions = FramePredictions()
        documents = corpus.split(settings.split)
        digest = corpus.manifest["sha256"][f"{settings.split}.arrow"]
        words = "perplexity" in settings.task_names
        scores = evaluate(model, documents, settings, words=words, look=predictions.add, tick=tick)
        if words:
            keep("perplexity", settings.split, digest, len(documents), scores)
        if "frames" in settings.task_names and (scores := predictions.scores(model.frames)):
            keep("frames", settings.split, digest, scores["frame_events"], scores)
    if path is not None:
        task = ClozeTask.of(read_cloze(path), model.vocabulary, corpus.lowercase)
        result = score_cloze(model, task, settings, tick)
        name = settings.split if settings.cloze is None else str(settings.cloze)
        # Beside the usual measurement, not in its place.
        name += ", frames read" if settings.cloze_frames == "read" else ""
        keep("cloze", name, sha256(path), len(task), result.summary(settings.eval_seed))
        if details is not None:
            write_records(details, result.details())
    return done


def _cloze_file(model: EventModel, corpus: Corpus, settings: EvaluateSettings) -> Path | None:
    """Where the items are; None if the model cannot score them, or there are none and none were asked for."""
    if model.decoder is None:
        return None
    if settings.cloze is not None:
        return settings.cloze
    if settings.task_names == {"cloze"} or corpus.has_cloze(settings.split):
        return corpus.cloze(settings.split)
    return None


def flat(measurements: Iterable[Measurement]) -> dict[str, Any]:
    """The figures of all tasks by name."""
    return {name: value for m in measurements for name, value in m.scores.items()}


def write_scores(folder: Path, measurements: Iterable[Measurement]) -> None:
    """Keep measurements in a run folder; one of the same task and data takes the place of the older."""
    # Another process may do the same at the same time: what it keeps is not to be lost.
    with translate_os_errors(folder / FILE, "write"), held(folder / f".{FILE}.lock", None):
        kept = {(m.task, m.data, m.sha256): m for m in (*read_scores(folder), *measurements)}
        with atomic_write(folder / FILE) as path:
            path.write_text(to_json([asdict(m) for m in kept.values()], indent=2) + "\n", encoding="utf-8")


def read_scores(folder: Path) -> list[Measurement]:
    """What was measured of a run; nothing if it never was."""
    path = folder / FILE
    if not path.is_file():
        return []
    expected = "scores that `ssdvae evaluate` wrote"
    measurements = []
    for number, record in enumerate(read_json(path, list, expected), start=1):
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
