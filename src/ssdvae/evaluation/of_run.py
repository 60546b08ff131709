"""Measure the model of a run, and keep the figures in its folder."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from ssdvae.config import EvaluateSettings
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.evaluation.meaning import commonest_of_run
from ssdvae.evaluation.measure import flat, measure
from ssdvae.files import atomic_write, sha256
from ssdvae.measurements import write_scores
from ssdvae.models.base import Model
from ssdvae.progress import SILENT, Progress

log = logging.getLogger(__name__)


def evaluate_run(
    run: str | Path,
    model: Model,
    corpus: Corpus,
    settings: EvaluateSettings,
    *,
    details: str | Path | None = None,
    progress: Progress = SILENT,
) -> dict[str, Any]:
    """The figures of all tasks by name; ``run`` is a folder, or the name of a model on the hub."""
    folder = Path(run)
    weights = sha256(folder / "model.safetensors") if folder.is_dir() else str(run)
    # Opened before the work: a place that cannot be written to is better known now.
    with nullcontext() if details is None else atomic_write(details) as path:
        measured = measure(
            model,
            weights,
            corpus,
            settings,
            details=path,
            progress=progress,
            commonest=lambda: commonest_of_run(folder, corpus),
        )
    if folder.is_dir():
        try:
            write_scores(folder, measured)
        except UserError as error:
            # The figures are worth more than the file.
            log.warning(f"the scores are not kept: {error}")
    return flat(measured)
