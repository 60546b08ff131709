"""A model to give away: in half precision, with what is usual beside it, and a card that tells all of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae.answers.generate import generate
from ssdvae.answers.usual import learn_typical
from ssdvae.config import (
    SPLITS,
    EvaluateSettings,
    GenerateSettings,
    PrepareSettings,
    Settings,
    TrainSettings,
)
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document
from ssdvae.data.readers import write_jsonl
from ssdvae.errors import UserError
from ssdvae.evaluation.measure import flat, measure
from ssdvae.evaluation.tasks import TASKS, mark_of
from ssdvae.evaluation.tasks.perplexity import PERPLEXITY
from ssdvae.files import atomic_write, translate_os_errors
from ssdvae.markdown import markdown_table
from ssdvae.measurements import Measurement
from ssdvae.models.base import LanguageModel, Model
from ssdvae.models.card import LIMITS, Story
from ssdvae.models.hub import FILES, SCRIPTS
from ssdvae.models.typical import TYPICAL
from ssdvae.progress import SILENT, Progress
from ssdvae.runs import Run, judged_by

LICENSE = "LICENSE"
PACKED = (*FILES, TYPICAL, SCRIPTS, "README.md", LICENSE)
"""What a packed folder may have."""

WRITTEN = GenerateSettings(scripts=300, events=6)


@dataclass(frozen=True)
class Packed:
    """A folder, and the figures of the model in it beside those of the run."""

    folder: Path
    scores: dict[str, Any]
    full: dict[str, Any]  # those of the run's words, in full precision

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(path.stat().st_size for name in PACKED if (path := self.folder / name).is_file())

    @property
    def loss(self) -> float | None:
        """By how much the perplexity is higher than that of the run: 0.001 is a thousandth of it."""
        name = judged_by(self.full)
        if name is None or self.scores.get(name) is None:
            return None
        return float(self.scores[name] / self.full[name] - 1)


def pack(
    run: Path,
    out: Path,
    model: Model,
    corpus: Corpus,
    settings: EvaluateSettings,
    *,
    about: Path | None = None,
    license: Path | None = None,
    progress: Progress = SILENT,
) -> Packed:
    """Write the model of a run to a folder that may hold an older one.

    ``about`` is a file of Markdown about data, licences and limits, and ``license`` one to be put beside it.
    """
    _refuse_others(out)
    with translate_os_errors(about or run, "read"):
        told = LIMITS if about is None else about.read_text(encoding="utf-8")
        licence = None if license is None else license.read_bytes()
    full = measure(model, "", corpus, settings.changed(tasks=PERPLEXITY.name), progress=progress)
    model.half().float()  # what is left of the weights in half precision
    if isinstance(model, LanguageModel):
        learn_typical(model, corpus, settings.split, progress)
    packed = measure(model, "", corpus, settings, progress=progress)
    found = Packed(out, flat(packed), flat(full))
    story = Story(
        name=out.resolve().name,
        about=told,
        made=_made(run, corpus, settings, found),
        figures=_figures(packed, found.full),
        licensed=licence is not None,
    )
    with translate_os_errors(out, "write"):
        out.mkdir(parents=True, exist_ok=True)
        if licence is not None:
            with atomic_write(out / LICENSE) as path:
                path.write_bytes(licence)
    if isinstance(model, LanguageModel):
        write_jsonl(out / SCRIPTS, _written(model))
    model.half().save(out, found.scores, story)
    model.float()
    return found


def _written(model: Model) -> Iterator[Document]:
    """Scripts that the model thinks of by itself: what it is shown on where its corpus is not."""
    for number, script in enumerate(generate(model, WRITTEN), start=1):
        yield Document(f"script {number}", tuple(told.event for told in script.events))


def _refuse_others(out: Path) -> None:
    """Only a folder that is new, empty or a packed model is written to."""
    there = [path.name for path in out.iterdir()] if out.is_dir() else []
    if strange := [name for name in there if name not in PACKED]:
        raise UserError(f"{out} has other files than those of a packed model ({strange[0]}): choose another")


def _figures(packed: Iterable[Measurement], full: dict[str, Any]) -> str:
    """All figures of all tasks: packed, of the run, and what needs no model, where there are such figures."""
    rows = []
    for mine in packed:
        for figure in TASKS[mine.task].figures:
            value = mine.scores.get(figure.name)
            if value is None:
                continue
            floor, in_full = figure.floor and mine.scores.get(figure.floor.score), full.get(figure.name)
            rows.append(
                [
                    f"{mine.task}, {Path(mine.data).name}",
                    figure.title,
                    figure.headline_text(value) + figure.mark(mine.scores),
                    "" if in_full is None else figure.headline_text(in_full) + figure.mark(mine.scores),
                    f"{figure.headline_text(floor)} ({figure.floor.title})" if floor and figure.floor else "",
                ]
            )
    return markdown_table(
        ["task, data", "figure", "this model", "in full precision", "without a model"], rows
    )


def _made(run: Path, corpus: Corpus, settings: EvaluateSettings, found: Packed) -> str:
    """The commands, as they can be typed again, and what half precision costs."""
    splits, seed = corpus.manifest["splits"], Run(run).config()[1].seed
    text = (
        f"The seed is {seed}. The training split has {splits['train']['documents']:,} documents and "
        f"{splits['train']['events']:,} events. All figures below are of the split `{settings.split}`, "
        f"{splits[settings.split]['documents']:,} documents.\n\n"
        "```\n" + "\n".join(commands(run, corpus, settings, found.folder)) + "\n```\n"
    )
    if found.loss is not None:
        name = str(judged_by(found.full))
        mark = mark_of(name, found.full)
        text += (
            "\nThe weights are kept in half precision, and computed with in full. The perplexity is "
            f"{found.scores[name]:.4f}{mark}, that of the run {found.full[name]:.4f}{mark}: "
            f"{found.loss:+.3%}.\n"
        )
    return text


def commands(run: Path, corpus: Corpus, settings: EvaluateSettings, out: Path) -> list[str]:
    """What to type to make the folder again, with the settings that are not at their defaults."""
    sources = [Path(source["path"]).name for source in corpus.manifest["sources"]]
    if len(sources) > 1:
        sources = [f"--{split} {name}" for split, name in zip(SPLITS, sources, strict=False)]
    prepared = PrepareSettings.of(corpus.manifest["settings"])
    trained = Run(run).config()[1]
    named = {"preset": trained.preset, "model": trained.model}
    named = {name: value for name, value in named.items() if value is not None}
    chosen = [f"--{name} {value}" for name, value in named.items()]
    further = _flags(trained, TrainSettings.chosen(named, corpus.counts))
    words = (
        ["prepare", *sources, *_flags(prepared, PrepareSettings()), "--out corpus"],
        ["train corpus", *chosen, *further, "--out run"],
        ["pack run", *_flags(settings, EvaluateSettings()), f"--out {out.resolve().name}"],
    )
    return [" ".join(["ssdvae", *command]) for command in words]


def _flags(settings: Settings, usual: Settings) -> Iterator[str]:
    """What to type to have these settings in the place of the usual ones; files by their names alone."""
    others = usual.values()
    for name, value in settings.values().items():
        flag = settings.table()[name].flag
        if name in others and value == others[name]:
            continue
        if isinstance(value, bool):
            yield flag if value else flag.replace("--", "--no-", 1)
        else:
            yield f"{flag} {value.name if isinstance(value, Path) else shlex.quote(str(value))}"
