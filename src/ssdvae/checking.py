"""Is a corpus or a run whole? Every file of the folder is read and held against what vouches for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ssdvae.config import SPLITS
from ssdvae.data.corpus import ITEMS, Corpus, item_file
from ssdvae.data.items import count_items
from ssdvae.errors import DataError, UserError
from ssdvae.files import check_exists
from ssdvae.measurements import SCORES, read_scores
from ssdvae.models.base import Model
from ssdvae.models.hub import FILES
from ssdvae.runs import CHECKPOINT, Run
from ssdvae.weights import load_weights


@dataclass(frozen=True)
class Checked:
    """One thing that was looked at: what was found there, or what is wrong with it."""

    name: str
    found: str
    problem: UserError | None = None


def check(folder: Path) -> list[Checked]:
    """Everything about a corpus folder or a run folder; problems are collected, not raised."""
    check_exists(folder)
    if (folder / "manifest.json").is_file():
        return list(_corpus(folder))
    if any((folder / name).is_file() for name in ("config.yaml", *FILES)):
        return list(_run(folder))
    raise UserError(f"{folder} is neither a corpus (manifest.json) nor a run (config.yaml) nor a model")


def _looked_at(name: str, look: Callable[[], str]) -> Checked:
    try:
        return Checked(name, look())
    except UserError as error:
        return Checked(name, "", error)


def _corpus(folder: Path) -> Iterator[Checked]:
    try:
        corpus = Corpus(folder)
    except UserError as error:
        yield Checked("manifest.json", "", error)
        return
    yield Checked("manifest.json", f"format {corpus.manifest['format']}")
    for name in sorted(corpus.manifest["sha256"]):
        yield _looked_at(name, partial(_corpus_file, corpus, name))


def _corpus_file(corpus: Corpus, name: str) -> str:
    path = corpus.checked(name, anew=True)
    if name == "vocab.json":
        return f"{len(corpus.vocabulary):,} words"
    if name == "frames.json":
        return f"{len(corpus.frames):,} frames"
    for split in SPLITS:
        if name == f"{split}.arrow":
            documents = corpus.manifest["splits"][split]["documents"]
            return f"{len(corpus.split(split)):,} documents" if documents else "no documents"
        for kind in ITEMS:
            if name == item_file(kind, split):
                items, counted = (
                    count_items(path, kind, corpus.slots),
                    corpus.manifest.get(kind, {}).get(split),
                )
                if counted not in (None, items):
                    raise DataError(path, None, f"{items} items", f"{counted}, as manifest.json has it")
                return f"{items:,} items"
    return "as it was written"


def _run(folder: Path) -> Iterator[Checked]:
    run = Run(folder)
    if run.config_path.exists():
        yield _looked_at("config.yaml", lambda: f"settings of {run.config()[1].model}")
        yield _looked_at("the corpus", lambda: _same_corpus(run))
    if any((folder / name).exists() for name in FILES):
        yield _looked_at("the model", lambda: _model(folder))
    if run.checkpoint_path.exists():
        yield _looked_at("checkpoint", lambda: _checkpoint(run))
    if run.metrics_path.exists():
        yield _looked_at("metrics.jsonl", lambda: f"{len(run.metrics()):,} records")
    if (folder / SCORES).exists():
        yield _looked_at(SCORES, lambda: f"{len(read_scores(folder)):,} measurements")


def _same_corpus(run: Run) -> str:
    corpus, state = Corpus(run.config()[0]), run.state()
    if state.corpus and state.corpus != corpus.fingerprint:
        found = f"the fingerprint of another corpus than {corpus.folder}"
        raise DataError(run.checkpoint_path, None, found, "that of the corpus in config.yaml")
    bad = [checked for checked in _corpus(corpus.folder) if checked.problem is not None]
    if bad:
        assert bad[0].problem is not None
        raise bad[0].problem
    return str(corpus.folder)


def _model(folder: Path) -> str:
    model: Any = Model.read(folder)
    return f"{model.config.model}, {sum(p.numel() for p in model.parameters()):,} parameters"


def _checkpoint(run: Run) -> str:
    load_weights(run.checkpoint_path, CHECKPOINT)
    state = run.state()
    if len(run.metrics()) < state.records:
        raise DataError(run.metrics_path, None, f"{len(run.metrics())} lines", f"{state.records} or more")
    return f"step {state.step:,}{', finished' if state.finished else ''}"
