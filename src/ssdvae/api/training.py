"""Train: a model from a corpus, a run that goes on, a model that is loaded; and the demo of it all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.api.signatures import AnyPath, with_settings
from ssdvae.config import EvaluateSettings, TrainSettings
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.hub import default_model, packaged
from ssdvae.progress import Progress, resolve
from ssdvae.runs import Run

if TYPE_CHECKING:
    from ssdvae.packing import Packed
    from ssdvae.tour import Tour

# What trains is imported where it is called: to load a model and ask it something takes none of it.


def demo(out: AnyPath = "demo", *, progress: bool | Progress = True) -> Tour:
    """Train, evaluate and look at a model of the embedded corpus; what is done already is not done again.

    >>> ssdvae.demo("demo").scores["ssdvae"]["ppl_bound"]
    """
    from ssdvae.tour import take_tour

    return take_tour(Path(out), progress=resolve(progress))


@with_settings(TrainSettings)
def train(
    corpus: Corpus | AnyPath,
    out: AnyPath,
    *,
    go_on: bool = False,
    progress: bool | Progress = True,
    **settings: Any,
) -> Run:
    """Train a model on a corpus folder into a new run folder.

    >>> run = ssdvae.train("corpus", "runs/first", observe=0.9)

    ``model`` and ``preset`` give defaults to the other settings. Those that are shown are of the default
    model; what is shown as ``auto`` fits the corpus. With ``go_on``, an existing run with identical settings
    is resumed.
    """
    from ssdvae.training import train as training

    TrainSettings.refuse_unknown(settings)
    opened = as_corpus(corpus)
    begin = training.train_or_resume if go_on else training.train
    return begin(opened, Path(out), TrainSettings.chosen(settings, opened.counts), resolve(progress))


def resume(run: AnyPath, *, progress: bool | Progress = True) -> Run:
    """Resume a run that was stopped, with its own settings, as if it had never stopped.

    >>> ssdvae.resume("runs/first")
    """
    from ssdvae.training import train as training

    return training.resume(Path(run), progress=resolve(progress))


@with_settings(EvaluateSettings)
def pack(
    run: AnyPath,
    out: AnyPath,
    *,
    corpus: Corpus | AnyPath | None = None,
    about: AnyPath | None = None,
    license: AnyPath | None = None,
    progress: bool | Progress = True,
    **settings: Any,
) -> Packed:
    """Make a folder of a run to give away: weights in half precision, what `score` needs, and a card.

    >>> ssdvae.pack("runs/first", "my-model", about="about.md", license="LICENSE").loss

    The card has the commands that made the run, all figures of one split, and the perplexity beside that in
    full precision. ``about`` is a file of Markdown that goes into it: the data, their licences, the limits;
    ``license`` is put beside it. `load` reads the folder, and `push_to_hub` publishes it.
    """
    from ssdvae.packing import pack as packing

    chosen, found = EvaluateSettings.exactly(settings), corpus_of(run, corpus)
    texts = {
        name: None if file is None else Path(file) for name, file in (("about", about), ("license", license))
    }
    return packing(Path(run), Path(out), as_model(run), found, chosen, **texts, progress=resolve(progress))


def load(run: AnyPath | None = None) -> Model:
    """The model of a run folder; or by its name, one of the package, or one of the Hugging Face Hub.

    >>> model = ssdvae.load("runs/first")

    Without a name, the one that comes with the package. Executes no code.
    """
    if (folder := folder_of(run)) is not None:
        return Model.read(folder)
    try:
        return Model.from_pretrained(str(run))
    except (OSError, ValueError) as error:
        # Not a folder: the hub was asked, and has no such model, refuses, or cannot be reached.
        raise UserError(
            f"there is no folder {run}, and the Hugging Face hub gave no model of that name:\n{error}"
        ) from error


def folder_of(run: AnyPath | None) -> Path | None:
    """Where a model is on this machine; None for one that only the hub can have."""
    if run is None:
        return default_model()
    return Path(run) if Path(run).is_dir() else packaged(str(run))


def as_corpus(corpus: Corpus | AnyPath) -> Corpus:
    return corpus if isinstance(corpus, Corpus) else Corpus(corpus)


def corpus_of(run: AnyPath, corpus: Corpus | AnyPath | None) -> Corpus:
    """The corpus that was named, or that of the run."""
    return as_corpus(Run(run).config()[0] if corpus is None else corpus)


def as_model(run: Model | AnyPath | None) -> Model:
    """A model, on the fastest device."""
    return (run if isinstance(run, Model) else load(run)).on_fastest_device()
