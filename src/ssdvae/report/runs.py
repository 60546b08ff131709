"""Runs as the page sees them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae.config import Split, TrainSettings
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.evaluation.tasks import mark_of
from ssdvae.files import real_path
from ssdvae.measurements import Measurement, read_scores
from ssdvae.runs import Record, Run, best_validation, distinct


@dataclass(frozen=True)
class Reported:
    """A run with all that the page says of it."""

    name: str
    folder: Path
    settings: TrainSettings
    corpus: Corpus | None  # None if it cannot be opened any more
    curve: list[Record]  # see ``Run.curve``
    measured: list[Measurement]
    colour: int  # the same for runs that differ in nothing but the seed

    @property
    def best(self) -> Record | None:
        """The validation that the saved model is from."""
        return best_validation(self.curve)

    def sentence(self, error: UserError) -> str:
        """What went wrong with the run: the first line, without the folders that only its owner knows."""
        text = str(error).splitlines()[0].removesuffix(".") + "."
        for folder in (self.folder, self.corpus.folder) if self.corpus else (self.folder,):
            text = text.replace(str(folder), folder.name)
        return text

    def scores(self, figure: str, split: Split, task: str | None = None) -> Measurement | None:
        """The measurement with a figure, of any task or of this one: on the split, or else the first."""
        found = [m for m in self.measured if task in (None, m.task) and m.scores.get(figure) is not None]
        whole = next((m for m in found if m.data == split), None)
        cut = next((m for m in found if m.data.startswith(f"{split}, first ")), None)
        return whole or cut or (found[0] if found else None)


def read_runs(folders: Sequence[Path]) -> list[Reported]:
    """Each run once, in the order given."""
    folders = distinct(folders)
    colours: dict[str, int] = {}
    runs = []
    for name, folder in zip(short_names(folders), folders, strict=True):
        run = Run(folder)
        corpus_folder, settings = run.config()
        try:
            corpus: Corpus | None = Corpus(corpus_folder)
        except UserError:
            corpus = None
        same = json.dumps({**settings.to_dict(), "seed": None, "corpus": str(corpus_folder)})
        colour = colours.setdefault(same, len(colours))
        runs.append(Reported(name, folder, settings, corpus, run.curve(), read_scores(folder), colour))
    return runs


def describe_data(data: str) -> str:
    """What was measured on: the name of a split, or of a file."""
    return Path(data).name


def short_names(folders: Sequence[Path]) -> list[str]:
    """The ends of the paths, as short as they can be and still differ: a page tells no more than that."""
    parts = [real_path(folder).parts for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def ppl_text(record: Record) -> str:
    """That of a validation, marked if the model has read the words that it predicts."""
    return f"{record['ppl']:.2f}{mark_of('ppl', record)}"


def setting_text(value: Any) -> str:
    """A setting as a reader wants it: of a path, the name."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.name if isinstance(value, Path) else str(value)
