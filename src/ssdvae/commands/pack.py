"""`ssdvae pack`: export a run as a model in half precision, with surprisal quantiles and a model card."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command
from ssdvae.commands.console import say
from ssdvae.data.options import SPLITS, PrepareOptions
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.inference.options import GenerateOptions
from ssdvae.io.errors import UserError
from ssdvae.options import Options, differences, flag, with_options
from ssdvae.training.options import TrainOptions

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.data.events import Document
    from ssdvae.io.progress import Progress
    from ssdvae.io.scores import Measurement
    from ssdvae.models.base import Model

LICENSE = "LICENSE"

EXAMPLE_SCRIPTS = GenerateOptions(scripts=300, events=6)
"""Scripts that are packed: the explorer shows them where the corpus of the model is not at hand."""


@dataclass(frozen=True)
class PackedModel:
    """A packed model: its folder, its scores and those of the run."""

    folder: Path
    scores: dict[str, Any]
    full: dict[str, Any]  # perplexity of the run, in full precision

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(path.stat().st_size for name in packed_files() if (path := self.folder / name).is_file())

    @property
    def loss(self) -> float | None:
        """The relative increase of the perplexity: 0.001 is a thousandth of it."""
        from ssdvae.io.run import selection_metric

        name = selection_metric(self.full)
        if name is None or self.scores.get(name) is None:
            return None
        return float(self.scores[name] / self.full[name] - 1)


def packed_files() -> tuple[str, ...]:
    """Return the names of the files that a packed folder may have."""
    from ssdvae.models.hub import FILES, SCRIPTS
    from ssdvae.models.quantiles import TYPICAL

    return (*FILES, TYPICAL, SCRIPTS, "README.md", LICENSE)


@with_options(EvaluateOptions)
def pack(
    run: AnyPath,
    out: AnyPath,
    *,
    corpus: Corpus | AnyPath | None = None,
    about: AnyPath | None = None,
    license: AnyPath | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> PackedModel:
    """Export a run as a model in half precision, with surprisal quantiles and a model card.

    >>> ssdvae.pack("runs/first", "my-model", about="about.md", license="LICENSE").loss

    The card has the commands that made the run, the scores on one split, and the perplexity beside that in
    full precision. `load` reads the folder, and `push_to_hub` publishes it. A folder that has a packed model
    is overwritten.

    Args:
        run: run folder
        out: folder to write
        corpus: corpus folder; by default that of the run
        about: Markdown for the card: the data, their licences, the limits
        license: licence of the weights, copied into the folder
    """
    from ssdvae.commands.coerce import as_model, corpus_of
    from ssdvae.data.readers import write_jsonl
    from ssdvae.evaluation.measure import flat, measure
    from ssdvae.inference.surprisal import compute_quantiles
    from ssdvae.io.files import atomic_write, translate_os_errors
    from ssdvae.io.progress import resolve
    from ssdvae.models.base import LanguageModel
    from ssdvae.models.card import LIMITS, CardExtras
    from ssdvae.models.hub import SCRIPTS

    run, out, chosen, bar = Path(run), Path(out), EvaluateOptions(**options), resolve(progress)
    owner, model = corpus_of(run, corpus), as_model(run)
    _refuse_other_files(out)
    with translate_os_errors(about or run, "read"):
        text = LIMITS if about is None else Path(about).read_text(encoding="utf-8")
        licence = None if license is None else Path(license).read_bytes()
    full = measure(model, "", owner, chosen.changed(tasks="perplexity"), progress=bar)
    model.half().float()  # round the weights to half precision
    if isinstance(model, LanguageModel):
        compute_quantiles(model, owner, chosen.split, bar)
    measured = measure(model, "", owner, chosen, progress=bar)
    packed = PackedModel(out, flat(measured), flat(full))
    extras = CardExtras(
        name=out.resolve().name,
        about=text,
        made=_provenance(run, owner, chosen, packed),
        figures=_score_table(measured, packed.full),
        licensed=licence is not None,
    )
    with translate_os_errors(out, "write"):
        out.mkdir(parents=True, exist_ok=True)
        if licence is not None:
            with atomic_write(out / LICENSE) as path:
                path.write_bytes(licence)
    if isinstance(model, LanguageModel):
        write_jsonl(out / SCRIPTS, _example_scripts(model))
    model.half().save(out, packed.scores, extras)
    return packed


def _example_scripts(model: Model) -> Iterator[Document]:
    from ssdvae.data.events import Document
    from ssdvae.inference.generation import generate

    for number, script in enumerate(generate(model, EXAMPLE_SCRIPTS), start=1):
        yield Document(f"script {number}", tuple(told.event for told in script.events))


def _refuse_other_files(out: Path) -> None:
    """Refuse a folder that is neither new nor empty nor a packed model, whole or begun."""
    from ssdvae.io.files import is_left_over

    names, mine = [path.name for path in out.iterdir()] if out.is_dir() else [], packed_files()
    if others := [name for name in names if name not in mine and not is_left_over(name, mine)]:
        raise UserError(f"{out} has other files than those of a packed model ({others[0]}): choose another")


def _score_table(packed: Iterable[Measurement], full: dict[str, Any]) -> str:
    """Return the scores of all tasks as Markdown: packed, in full precision, and without a model."""
    from ssdvae.evaluation.task import TASKS
    from ssdvae.models.card import markdown_table

    rows = []
    for measured in packed:
        for figure in TASKS[measured.task].figures:
            value = measured.scores.get(figure.name)
            if value is None:
                continue
            mark, in_full = figure.mark(measured.scores), full.get(figure.name)
            floor = figure.floor and measured.scores.get(figure.floor.score)
            rows.append(
                [
                    f"{measured.task}, {Path(measured.data).name}",
                    figure.title,
                    figure.headline_text(value) + mark,
                    "" if in_full is None else figure.headline_text(in_full) + mark,
                    f"{figure.headline_text(floor)} ({figure.floor.title})" if floor and figure.floor else "",
                ]
            )
    head = ["task, data", "figure", "this model", "in full precision", "without a model"]
    return markdown_table(head, rows)


def _provenance(run: Path, corpus: Corpus, options: EvaluateOptions, packed: PackedModel) -> str:
    """Return how the model was made: data, commands, and the cost of half precision."""
    from ssdvae.evaluation.task import mark_of
    from ssdvae.io.run import Run, selection_metric

    splits, seed = corpus.manifest["splits"], Run(run).config()[1].seed
    text = (
        f"The seed is {seed}. The training split has {splits['train']['documents']:,} documents and "
        f"{splits['train']['events']:,} events. All figures below are of the split `{options.split}`, "
        f"{splits[options.split]['documents']:,} documents.\n\n"
        "```\n" + "\n".join(commands(run, corpus, options, packed.folder)) + "\n```\n"
    )
    if packed.loss is not None:
        name = str(selection_metric(packed.full))
        mark = mark_of(name, packed.full)
        text += (
            "\nThe weights are stored in half precision and used in full precision. The perplexity is "
            f"{packed.scores[name]:.4f}{mark}, that of the run {packed.full[name]:.4f}{mark}: "
            f"{packed.loss:+.3%}.\n"
        )
    return text


def commands(run: Path, corpus: Corpus, options: EvaluateOptions, out: Path) -> list[str]:
    """Return the commands that make the folder again, with the options that differ from the defaults."""
    from ssdvae.io.run import Run

    sources = [Path(source["path"]).name for source in corpus.manifest["sources"]]
    if len(sources) > 1:
        sources = [f"--{split} {name}" for split, name in zip(SPLITS, sources, strict=False)]
    prepared = PrepareOptions.of(corpus.manifest["settings"])
    trained = Run(run).config()[1]
    named = {"preset": trained.preset, "model": trained.model}
    named = {name: value for name, value in named.items() if value is not None}
    chosen = [f"--{name} {value}" for name, value in named.items()]
    further = _flags(trained, TrainOptions.chosen(named, corpus.counts))
    words = (
        ["prepare", *sources, *_flags(prepared, PrepareOptions()), "--out corpus"],
        ["train corpus", *chosen, *further, "--out run"],
        ["pack run", *_flags(options, EvaluateOptions()), f"--out {out.resolve().name}"],
    )
    return [" ".join(["ssdvae", *command]) for command in words]


def _flags(options: Options, defaults: Options) -> Iterator[str]:
    """Yield the flags of the options that differ from the defaults; files by their names alone."""
    for name, (value, _) in differences([options.values(), defaults.values()]).items():
        if isinstance(value, bool):
            yield flag(name) if value else flag(name).replace("--", "--no-", 1)
        else:
            yield f"{flag(name)} {value.name if isinstance(value, Path) else shlex.quote(str(value))}"


def show(packed: PackedModel) -> None:
    """Print the size of the folder, and the cost of half precision."""
    cost = "" if packed.loss is None else f"; half precision changes the perplexity by {packed.loss:+.3%}"
    say(f"wrote {packed.folder}: {packed.bytes / 1e6:.1f} MB{cost}")


COMMAND = Command(
    pack,
    show,
    examples=(
        "ssdvae pack runs/first --out my-model",
        "ssdvae pack runs/first --out my-model --about about.md --license LICENSE",
    ),
)
