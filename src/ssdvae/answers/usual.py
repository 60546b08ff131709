"""What is usual: measured once on the validation split of a model, and kept beside its weights."""

from __future__ import annotations

import logging
from pathlib import Path

from ssdvae.answers.score import MEASURED, typical_of
from ssdvae.config import Split
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.models.base import Model, as_language_model
from ssdvae.progress import SILENT, Progress

log = logging.getLogger(__name__)


def learn_typical(model: Model, corpus: Corpus, split: Split = "valid", progress: Progress = SILENT) -> None:
    """Let a model know what is usual in a split, as much of each document as it was trained on."""
    documents = corpus.split(split).first(model.reading.measured)
    with progress.task("what is usual", min(MEASURED, len(documents))) as advance:
        model.typical = typical_of(as_language_model(model), documents, split, advance=advance)


def keep_typical(model: Model, corpus: Corpus, folder: Path, progress: Progress = SILENT) -> None:
    """The same, kept in its folder, if that can be written to."""
    learn_typical(model, corpus, progress=progress)
    assert model.typical is not None
    try:
        model.typical.write(folder)
    except (OSError, UserError) as error:
        log.warning(f"what is usual is not kept: {error}")
