"""Runs as the report sees them, and tables of how they were made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae.data.corpus import Corpus
from ssdvae.data.options import SPLITS, Split
from ssdvae.evaluation.task import mark_of
from ssdvae.io.errors import UserError
from ssdvae.io.files import real_path
from ssdvae.io.run import Metrics, Run, best_validation, unique_folders
from ssdvae.io.scores import Measurement, read_scores
from ssdvae.models.base import Model
from ssdvae.models.options import ModelOptions
from ssdvae.options import differences
from ssdvae.report.render import Cell, Details, Table, Text, absent
from ssdvae.training.options import TrainOptions


@dataclass(frozen=True)
class ReportedRun:
    """A run, or another model, with all that the report says of it."""

    name: str
    folder: Path
    options: TrainOptions | ModelOptions
    corpus: Corpus | None  # None if it cannot be opened any more, or there is none
    curve: list[Metrics]  # see ``Run.curve``
    measurements: list[Measurement]
    colour: int  # the same for runs that differ in nothing but the seed
    foreign: bool = False  # the corpus was named, and is not that of the run

    @property
    def trained_here(self) -> bool:
        """Tell whether this is a run, not a model that was packed or downloaded."""
        return isinstance(self.options, TrainOptions)

    @property
    def best(self) -> Metrics | None:
        """The validation that the saved model is from."""
        return best_validation(self.curve)

    def public_message(self, error: UserError) -> str:
        """Return the first line of an error, without the folders that only the owner of the run knows."""
        text = str(error).splitlines()[0].removesuffix(".") + "."
        for folder in (self.folder, self.corpus.folder) if self.corpus else (self.folder,):
            text = text.replace(str(folder), folder.name)
        return text

    def measurement(self, figure: str, split: Split, task: str | None = None) -> Measurement | None:
        """Return the measurement with a figure, of any task or of this one: on the split, or the first."""
        found = [m for m in self.measurements if task in (None, m.task) and m.scores.get(figure) is not None]
        whole = next((m for m in found if m.data == split), None)
        cut = next((m for m in found if m.data.startswith(f"{split}, first ")), None)
        return whole or cut or (found[0] if found else None)


def read_runs(folders: Sequence[Path], corpus: Corpus | None = None) -> list[ReportedRun]:
    """Read each run once, in the order given; with ``corpus``, all are shown on that one."""
    folders = unique_folders(folders)
    colours: dict[str, int] = {}
    runs = []
    for name, folder in zip(short_names(folders), folders, strict=True):
        run = Run(folder)
        options: TrainOptions | ModelOptions
        if run.config_path.is_file() or not (folder / "config.json").is_file():
            own, options = run.config()
        else:
            own, options = None, Model.read(folder).config
        shown = corpus or (None if own is None else _opened(own))
        same = json.dumps({**options.to_dict(), "seed": None, "corpus": str(own)})
        colour = colours.setdefault(same, len(colours))
        scores, foreign = read_scores(folder), corpus is not None
        runs.append(ReportedRun(name, folder, options, shown, run.curve(), scores, colour, foreign))
    return runs


def _opened(folder: Path) -> Corpus | None:
    try:
        return Corpus(folder)
    except UserError:
        return None


def short_names(folders: Sequence[Path]) -> list[str]:
    """Return the ends of the paths, as short as they can be and still differ: a page tells no more."""
    parts = [real_path(folder).parts for folder in folders]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [str(folder) for folder in folders]


def describe_data(data: str) -> str:
    """Return the name of the split or of the file that was measured on."""
    return Path(data).name


def ppl_text(record: Metrics) -> str:
    """Return the perplexity of a validation, marked if the model has read the words that it predicts."""
    return f"{record['ppl']:.2f}{mark_of('ppl', record)}"


def option_text(value: Any) -> str:
    """Return the value of an option for readers: of a path, the name."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value.name if isinstance(value, Path) else str(value)


def data_tables(runs: Sequence[ReportedRun]) -> Iterator[Table | Text]:
    """Yield a table of the corpora, and a sentence for each that cannot be opened."""
    corpora = {r.corpus.fingerprint: r.corpus for r in runs if r.corpus is not None}
    head = ["corpus", "sources", "words", "frames", "events a document", *(f"{s} documents" for s in SPLITS)]
    rows = [
        [
            corpus.folder.name,
            ", ".join(Path(source["path"]).name for source in corpus.manifest["sources"]),
            f"{corpus.manifest['words']:,}",
            f"{corpus.manifest['frames']:,}",
            str(corpus.events or "all"),
            *(f"{corpus.manifest['splits'][split]['documents']:,}" for split in SPLITS),
        ]
        for corpus in corpora.values()
    ]
    if rows:
        yield Table("Data", head, rows, names=2)
    for run in runs:
        if run.corpus is None and run.trained_here:
            yield absent(f"The corpus of {run.name} cannot be opened any more.")
        elif run.corpus is None:
            yield absent(
                f"{run.name} has no corpus of its own: it is shown on the documents that were packed with it."
            )


def runs_table(runs: Sequence[ReportedRun]) -> Table:
    """Return a table of the runs: the options in which they differ, and how far training came."""
    differs = differences([run.options.values() for run in runs], ("model", "seed"))
    head = ["run", "model", *differs, "seed", "epochs", "minutes", "best valid ppl"]
    rows = []
    for run in runs:
        last = run.curve[-1] if run.curve else None
        rows.append(
            [
                run.name,
                run.options.model,
                *(option_text(run.options.values().get(name)) for name in differs),
                str(run.options.values().get("seed", "–")),
                f"{last['epoch']:g}" if last else "–",
                f"{last['seconds'] / 60:.1f}" if last else "–",
                ppl_text(run.best) if run.best else "–",
            ]
        )
    return Table("Runs, and the settings in which they differ", head, rows, names=2)


def options_table(runs: Sequence[ReportedRun]) -> Details:
    """Return every option of every run, empty where its model has none; those that differ are marked."""
    rows: list[list[str | Cell]] = []
    known = [run.options.values() for run in runs]
    for name in TrainOptions.names():
        if any(name in values for values in known):
            cells = [option_text(values[name]) if name in values else "" for values in known]
            rows.append([Cell(name, "mark") if len(set(cells)) > 1 else name, *cells])
    caption = "All settings" + ("; marked where the runs differ" if len(runs) > 1 else "")
    head = ["setting", *(run.name for run in runs)]
    return Details("All settings", [Table(caption, head, rows, names=len(head))])
