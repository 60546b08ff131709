"""`ssdvae check`: verify the files of a corpus, a run or a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ssdvae.commands import AnyPath, Command
from ssdvae.data.options import SPLITS
from ssdvae.io.errors import DataError, UserError

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.io.run import Run


@dataclass(frozen=True)
class FileCheck:
    """The check of a file: its content in a few words, or the problem with it."""

    name: str
    found: str
    problem: UserError | None = None


def check(folder: AnyPath) -> list[FileCheck]:
    """Verify every file of a corpus, a run or a model.

    >>> [part for part in ssdvae.check("runs/first") if part.problem is not None]

    Files are read and compared with their recorded checksums. Problems are collected, not raised:
    ``problem`` is the error that reading the file gives.

    Args:
        folder: corpus folder, run folder, or folder or name of a model
    """
    from ssdvae.io.files import check_exists
    from ssdvae.models.hub import FILES, packaged

    place = packaged(str(folder)) or Path(folder)
    check_exists(place)
    if (place / "manifest.json").is_file():
        return list(_check_corpus(place))
    if any((place / name).is_file() for name in ("config.yaml", *FILES)):
        return list(_check_run(place))
    raise UserError(f"{place} is neither a corpus (manifest.json) nor a run (config.yaml) nor a model")


def _check_file(name: str, read: Callable[[], str]) -> FileCheck:
    try:
        return FileCheck(name, read())
    except UserError as error:
        return FileCheck(name, "", error)


def _check_corpus(folder: Path) -> Iterator[FileCheck]:
    from ssdvae.data.corpus import Corpus

    try:
        corpus = Corpus(folder)
    except UserError as error:
        yield FileCheck("manifest.json", "", error)
        return
    yield FileCheck("manifest.json", f"format {corpus.manifest['format']}")
    for name in sorted(corpus.manifest["sha256"]):
        yield _check_file(name, partial(_check_corpus_file, corpus, name))


def _check_corpus_file(corpus: Corpus, name: str) -> str:
    from ssdvae.data.corpus import ITEMS, item_file
    from ssdvae.data.items import count_items

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
                items = count_items(path, kind, corpus.slots)
                recorded = corpus.manifest.get(kind, {}).get(split)
                if recorded not in (None, items):
                    raise DataError(path, None, f"{items} items", f"{recorded}, as manifest.json has it")
                return f"{items:,} items"
    return "unchanged"


def _check_run(folder: Path) -> Iterator[FileCheck]:
    from ssdvae.io.run import Run
    from ssdvae.io.scores import SCORES, read_scores
    from ssdvae.models.hub import FILES

    run = Run(folder)
    if run.config_path.exists():
        yield _check_file("config.yaml", lambda: f"options of {run.config()[1].model}")
        yield _check_file("the corpus", lambda: _check_corpus_of(run))
    if any((folder / name).exists() for name in FILES):
        yield _check_file("the model", lambda: _check_model(folder))
    if run.checkpoint_path.exists():
        yield _check_file("checkpoint", lambda: _check_checkpoint(run))
    if run.metrics_path.exists():
        yield _check_file("metrics.jsonl", lambda: f"{len(run.metrics()):,} records")
    if (folder / SCORES).exists():
        yield _check_file(SCORES, lambda: f"{len(read_scores(folder)):,} measurements")


def _check_corpus_of(run: Run) -> str:
    from ssdvae.data.corpus import Corpus

    corpus, state = Corpus(run.config()[0]), run.state()
    if state.corpus and state.corpus != corpus.fingerprint:
        found = f"the fingerprint of another corpus than {corpus.folder}"
        raise DataError(run.checkpoint_path, None, found, "that of the corpus in config.yaml")
    for checked in _check_corpus(corpus.folder):
        if checked.problem is not None:
            raise checked.problem
    return str(corpus.folder)


def _check_model(folder: Path) -> str:
    from ssdvae.models.hub import read_model

    model = read_model(folder)
    return f"{model.config.model}, {sum(p.numel() for p in model.parameters()):,} parameters"


def _check_checkpoint(run: Run) -> str:
    from ssdvae.io.run import CHECKPOINT
    from ssdvae.io.weights import load_weights

    load_weights(run.checkpoint_path, CHECKPOINT)
    state = run.state()
    if len(run.metrics()) < state.records:
        raise DataError(run.metrics_path, None, f"{len(run.metrics())} lines", f"{state.records} or more")
    return f"step {state.step:,}{', finished' if state.finished else ''}"


def print_checked(parts: list[FileCheck]) -> None:
    """Print a line for each part, then the problems as an error."""
    for part in parts:
        print(f"{part.name:20}{part.found if part.problem is None else 'DAMAGED'}")
    if problems := [str(part.problem) for part in parts if part.problem is not None]:
        raise UserError("\n".join(problems))


COMMAND = Command(check, show=print_checked, examples=("ssdvae check corpus", "ssdvae check runs/first"))
