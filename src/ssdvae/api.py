"""What ``import ssdvae`` offers: the commands as functions.

import ssdvae
ssdvae.extract("stories", "events.jsonl")
ssdvae.annotate("events.jsonl", "framed.jsonl", frames="verbs.csv")
corpus = ssdvae.prepare("framed.jsonl", "corpus", preset="tiny")
run = ssdvae.train(corpus, "runs/first", preset="tiny", observe=0.9)
model = ssdvae.load("runs/first")
ssdvae.evaluate("runs/first", split="valid")["ppl_bound"]
ssdvae.explain("runs/first").clusters.top_frames("elected")
ssdvae.generate("runs/first", ["elected taylor election at"])
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.analysis import explain as explaining
from ssdvae.answers import generate as generation
from ssdvae.answers.infer import InferredDocument, infer_documents
from ssdvae.cli.console import say
from ssdvae.config import (
    MEASURED_ALIKE,
    PRESETS,
    TRAINED_ALIKE,
    AnnotateSettings,
    EvaluateSettings,
    ExplainSettings,
    ExtractSettings,
    GenerateSettings,
    InferSettings,
    PrepareSettings,
    ReportSettings,
    ReproduceSettings,
    Split,
    TrainSettings,
)
from ssdvae.data import prepare as preparing
from ssdvae.data.corpus import Corpus
from ssdvae.data.events import Document, Event, event_from_text
from ssdvae.data.readers import read_documents
from ssdvae.errors import Malformed, UserError
from ssdvae.evaluation import measure as measuring
from ssdvae.extraction import annotate as annotating
from ssdvae.extraction import extract as extracting
from ssdvae.files import atomic_write, check_exists, sha256
from ssdvae.models.base import EventModel
from ssdvae.report import page
from ssdvae.runs import Run
from ssdvae.training import train as training

if TYPE_CHECKING:
    from ssdvae.paper.reproduce import Reproduced

AnyPath = str | Path


def extract(
    sources: AnyPath | Sequence[AnyPath], out: AnyPath, *, format: str | None = None, **settings: Any
) -> extracting.Extracted:
    """Write the events of texts, parsed or not, to a file of JSON lines; a bad document is passed over.

    In a script, call it under ``if __name__ == "__main__"``, or with ``jobs=1``.
    """
    paths = [sources] if isinstance(sources, str | Path) else sources
    chosen = ExtractSettings(**settings)
    return extracting.extract([Path(path) for path in paths], Path(out), chosen, format=format)


def annotate(
    source: AnyPath,
    out: AnyPath,
    *,
    frames: AnyPath,
    save: AnyPath | None = None,
    candidates: AnyPath | None = None,
    relations: AnyPath | None = None,
    format: str | None = None,
    **settings: Any,
) -> annotating.Annotated:
    """Write the documents of a file again, with the frames that an annotator finds probable enough.

    In a script, call it under ``if __name__ == "__main__"``, or with ``jobs=1``.
    """
    chosen = AnnotateSettings(**settings)
    check_exists(source)
    save, candidates, relations = (Path(p) if p else None for p in (save, candidates, relations))
    annotator = annotating.load_annotator(str(frames), save=save, candidates=candidates, relations=relations)
    return annotating.annotate(Path(source), Path(out), annotator, chosen, format=format)


def prepare(
    sources: AnyPath | Mapping[Split, AnyPath],
    out: AnyPath,
    *,
    preset: str = "paper",
    format: str | None = None,
    skip_bad: bool = False,
    jobs: int = 1,
    **settings: Any,
) -> Corpus:
    """Make a corpus folder from one file of documents, or from ``{"train": …, "valid": …, "test": …}``.

    More ``jobs`` share the work on JSON lines (0: one for each core); then, in a script, call it under
    ``if __name__ == "__main__"``.
    """
    paths: Path | dict[Split, Path] = (
        {split: Path(path) for split, path in sources.items()}
        if isinstance(sources, Mapping)
        else Path(sources)
    )
    chosen = PrepareSettings.preset(preset, **settings)
    return preparing.prepare(paths, Path(out), chosen, format=format, skip_bad=skip_bad, jobs=jobs)


def train(corpus: Corpus | AnyPath, out: AnyPath, *, preset: str = "paper", **settings: Any) -> Run:
    """Train a model on a corpus folder into a new run folder."""
    chosen = TrainSettings.preset(preset, **settings)
    return training.train(corpus if isinstance(corpus, Corpus) else Corpus(corpus), Path(out), chosen)


def resume(run: AnyPath) -> Run:
    """Go on with a run that was stopped."""
    return training.resume(Path(run))


def load(run: AnyPath) -> EventModel:
    """The model of a run folder, or one from the Hugging Face hub by its name. Executes no code."""
    if Path(run).is_dir():
        return EventModel.read(Path(run))
    try:
        return EventModel.from_pretrained(str(run))
    except (OSError, ValueError) as error:
        # Not a folder: the hub was asked, and has no such model, refuses, or cannot be reached.
        raise UserError(
            f"there is no folder {run}, and the Hugging Face hub gave no model of that name:\n{error}"
        ) from error


def evaluate(
    run: AnyPath,
    *,
    corpus: Corpus | AnyPath | None = None,
    details: AnyPath | None = None,
    tick: Callable[[int], None] = lambda documents: None,
    **settings: Any,
) -> dict[str, Any]:
    """The scores of a run on one split, by default of the corpus it was trained on.

    Kept in ``scores.json`` of the run folder; ``details`` is a file for the scores of each cloze item.
    """
    chosen = EvaluateSettings(**settings)
    corpus, model = _corpus(run, corpus), _ready(run)
    folder = Path(run)
    weights = sha256(folder / "model.safetensors") if folder.is_dir() else str(run)
    # Opened before the work: a place that cannot be written to is better known now.
    with nullcontext() if details is None else atomic_write(details) as path:
        measured = measuring.measure(model, weights, corpus, chosen, details=path, tick=tick)
    if folder.is_dir():
        try:
            measuring.write_scores(folder, measured)
        except UserError as error:
            # The figures are worth more than the file.
            say(f"the scores are not kept: {error}")
    return measuring.flat(measured)


def explain(
    run: AnyPath,
    *,
    corpus: Corpus | AnyPath | None = None,
    tick: Callable[[int], None] = lambda documents: None,
    **settings: Any,
) -> explaining.Explanation:
    """Clusters, attention and chains of frames on one split, by default of the corpus of the run."""
    chosen = ExplainSettings(**settings)
    corpus, model = _corpus(run, corpus), _ready(run)
    corpus.check_names(model.vocabulary, model.frames)
    return explaining.explain(model, corpus.split(chosen.split), chosen, tick)


def infer(
    run: EventModel | AnyPath, documents: AnyPath | Iterable[Document], **settings: Any
) -> Iterator[InferredDocument]:
    """The frames of the documents of a file, or of any others, one after another."""
    chosen = InferSettings(**settings)
    if isinstance(documents, str | Path):
        documents = read_documents(documents)
    return infer_documents(_ready(run), documents, **chosen.to_dict())


def generate(
    run: EventModel | AnyPath,
    seed_events: Sequence[Event | str] = (),
    frames: Sequence[str | None] = (),
    **settings: Any,
) -> list[generation.Script]:
    """Scripts that begin with events such as ``"elected taylor election at"``, or none; likeliest first."""
    chosen = GenerateSettings(**settings)
    try:
        seed = [event if isinstance(event, Event) else event_from_text(event) for event in seed_events]
    except Malformed as error:
        raise UserError(f"a seed event: {error}") from error
    return generation.generate(_ready(run), chosen, seed_events=seed, frames=frames)


def _corpus(run: AnyPath, corpus: Corpus | AnyPath | None) -> Corpus:
    """The corpus that was named, or that of the run."""
    if corpus is None:
        corpus, _ = Run(run).config()
    return corpus if isinstance(corpus, Corpus) else Corpus(corpus)


def _ready(run: EventModel | AnyPath) -> EventModel:
    """A model, on the fastest device."""
    return (run if isinstance(run, EventModel) else load(run)).on_fastest_device()


def reproduce_paper(what: str, data: Corpus | AnyPath, out: AnyPath, **settings: Any) -> Reproduced:
    """Make the runs behind the paper's tables, ``what`` of them, and set theirs and ours side by side.

    Takes the settings of `reproduce`, and those of `train` and `evaluate` that it does not vary itself.
    """
    # Not at the top: it asks for more of the system than the rest does (POSIX).
    from ssdvae.paper.reproduce import reproduce

    known = (*ReproduceSettings.names(), *TRAINED_ALIKE, *MEASURED_ALIKE)
    if unknown := [name for name in settings if name not in known]:
        raise UserError(f"no setting {unknown[0]!r}; there are: {', '.join(known)}")
    chosen = ReproduceSettings.of(settings)
    training = {**PRESETS[chosen.scale], **_only(TRAINED_ALIKE, settings)}
    measuring = EvaluateSettings(**_only(MEASURED_ALIKE, settings))
    corpus = data if isinstance(data, Corpus) else Corpus(data)
    return reproduce(what, corpus, Path(out), chosen, training, measuring)


def _only(names: Iterable[str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in names if name in values}


def write_report(
    runs: Sequence[AnyPath],
    out: AnyPath = "report.html",
    *,
    tick: Callable[[int], None] = lambda runs: None,
    **settings: Any,
) -> Path:
    """Write one page about some runs: what they are, their scores, and what their models learned."""
    return page.write_report([Path(run) for run in runs], Path(out), ReportSettings(**settings), tick)
