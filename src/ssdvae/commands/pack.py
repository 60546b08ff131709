"""`ssdvae pack`: export a run as a model in half precision, with surprisal quantiles and a model card."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
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
    from ssdvae.analysis.statistics import Statistics
    from ssdvae.data.corpus import Corpus
    from ssdvae.data.events import Document
    from ssdvae.io.progress import Progress
    from ssdvae.io.scores import Measurement
    from ssdvae.models.base import Model

LICENSE = "LICENSE"

EXAMPLE_SCRIPTS = GenerateOptions(scripts=300, events=6)
"""Scripts that are packed: the explorer shows them where the corpus of the model is not at hand."""

DOCUMENTS_PACKED, DOCUMENTS_COUNTED = 100, 20_000
"""Documents that are packed, and those of the training split that are counted, at most."""


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
    from ssdvae.models.hub import FILES, README, SHOWN
    from ssdvae.models.quantiles import TYPICAL
    from ssdvae.models.word_vectors import WORD_VECTORS

    return (*FILES, TYPICAL, WORD_VECTORS, *SHOWN, README, LICENSE)


@with_options(EvaluateOptions)
def pack(
    run: AnyPath,
    out: AnyPath,
    *,
    corpus: Corpus | AnyPath | None = None,
    about: AnyPath | None = None,
    word_vectors: AnyPath | None = None,
    license: AnyPath | None = None,
    documents: AnyPath | None = None,
    framenet: str | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> PackedModel:
    """Export a run as a model in half precision, with surprisal quantiles and a model card.

    >>> ssdvae.pack("runs/first", "my-model", about="about.md", license="LICENSE").loss

    The card has the commands that made the run, the scores on one split, and the perplexity beside that in
    full precision. `load` reads the folder, and `push_to_hub` publishes it. A folder that has a packed model
    is overwritten. Counts over the training split are packed for the explorer; nothing that occurs fewer
    than five times is in them.

    Args:
        run: run folder
        out: folder to write
        corpus: corpus folder; by default that of the run
        about: Markdown for the card: the data, their licences, the limits
        word_vectors: text file of word vectors (GloVe's format), stored in 8 bits: an unknown word is read as
            the nearest known one
        license: licence of the weights, copied into the folder
        documents: file of documents, of which the first 100 are packed, with `title` and `url` where they
            have one; by default scripts that the model writes
        framenet: FrameNet release or its folder: definitions of the frames are packed
    """
    from ssdvae.commands.coerce import as_model, corpus_of
    from ssdvae.data.readers import write_jsonl
    from ssdvae.data.readers.jsonl import write_records
    from ssdvae.data.vectors import read_vectors, words_of_vectors
    from ssdvae.evaluation.measure import flat, measure
    from ssdvae.extraction.framenet import Definitions
    from ssdvae.inference.surprisal import compute_quantiles
    from ssdvae.io.files import atomic_write, check_exists, translate_os_errors
    from ssdvae.io.progress import resolve
    from ssdvae.models.base import LanguageModel, as_frame_model
    from ssdvae.models.card import LIMITS, CardExtras
    from ssdvae.models.hub import DEFINITIONS, DOCUMENTS, SCRIPTS, SHOWN
    from ssdvae.models.word_vectors import WordVectors

    run, out, chosen, bar = Path(run), Path(out), EvaluateOptions(**options), resolve(progress)
    owner, model = corpus_of(run, corpus), as_model(run)
    _refuse_other_files(out)
    if documents is not None:
        documents = Path(documents)
        check_exists(documents)
    definitions = None if framenet is None else Definitions.of_framenet(framenet, model.frames.names)
    if model.vocabulary.slot_counts is None:
        model.vocabulary = owner.split("train").count_slots(model.vocabulary)
    if word_vectors is not None:
        words = words_of_vectors(word_vectors)
        model.vectors = WordVectors.of(words, read_vectors(word_vectors, words).matrix)
    with translate_os_errors(about or run, "read"):
        text = LIMITS if about is None else Path(about).read_text(encoding="utf-8")
        licence = None if license is None else Path(license).read_bytes()
    full = measure(model, "", owner, chosen.changed(tasks="perplexity"), progress=bar)
    model.half().float()  # round the weights to half precision
    if isinstance(model, LanguageModel):
        compute_quantiles(model, owner, chosen.split, bar)
    statistics = _statistics(model, owner, bar) if as_frame_model(model) is not None else None
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
        for name in SHOWN:  # of what was packed before
            (out / name).unlink(missing_ok=True)
        if licence is not None:
            with atomic_write(out / LICENSE) as path:
                path.write_bytes(licence)
    if documents is not None:
        write_records(out / DOCUMENTS, _titled(documents, owner))
    elif isinstance(model, LanguageModel):
        write_jsonl(out / SCRIPTS, _example_scripts(model))
    if definitions is not None:
        definitions.write(out / DEFINITIONS)
    model.half().save(out, packed.scores, extras)
    if statistics is not None:
        statistics.counts.write(out)
    return packed


def _statistics(model: Model, corpus: Corpus, progress: Progress) -> Statistics:
    """Return the counts of the training split, of as many events as the model was trained on."""
    import numpy as np

    from ssdvae.analysis.statistics import Statistics

    split = corpus.split("train").first(model.context_window.measured)
    some = split.take(np.arange(min(len(split), DOCUMENTS_COUNTED)))
    with progress.task("statistics", len(some)) as advance:
        return Statistics.measure(model, some, "train", corpus.lemmas, advance=advance)


def _titled(file: Path, corpus: Corpus) -> Iterator[dict[str, Any]]:
    """Yield the first documents of a file, with their titles and addresses."""
    from ssdvae.data.events import document_to_record
    from ssdvae.data.readers import read_documents
    from ssdvae.data.readers.jsonl import read_titles

    titles = read_titles(file)
    for document in islice(read_documents(file, slots=corpus.slots), DOCUMENTS_PACKED):
        title = titles.get(document.id)
        record = document_to_record(document, corpus.slots)
        yield record if title is None else {"id": document.id, **title._asdict(), **record}


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
