"""`ssdvae train`: train a model on a corpus folder, or resume a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command
from ssdvae.io.errors import UserError
from ssdvae.options import with_options
from ssdvae.training.options import TrainOptions

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.io.progress import Progress
    from ssdvae.io.run import Run


@with_options(TrainOptions)
def train(
    corpus: Corpus | AnyPath,
    out: AnyPath,
    *,
    exist_ok: bool = False,
    progress: bool | Progress = True,
    **options: Any,
) -> Run:
    """Train a model on a corpus folder into a new run folder.

    >>> run = ssdvae.train("corpus", "runs/first", observe=0.9)

    ``model`` and ``preset`` give defaults to the other options. Those that are shown are of the default
    model; what is shown as ``auto`` fits the corpus. If ``exist_ok``, resume an existing run with identical
    options.
    """
    from ssdvae.commands.coerce import as_corpus
    from ssdvae.io.progress import resolve
    from ssdvae.training import train as training

    TrainOptions.refuse_unknown(options)
    opened = as_corpus(corpus)
    begin = training.train_or_resume if exist_ok else training.train
    return begin(opened, Path(out), TrainOptions.chosen(options, opened.counts), resolve(progress))


def resume(run: AnyPath, *, progress: bool | Progress = True) -> Run:
    """Resume a run that was stopped, with its own options, as if it had never stopped.

    >>> ssdvae.resume("runs/first")
    """
    from ssdvae.io.progress import resolve
    from ssdvae.training import train as training

    return training.resume(Path(run), progress=resolve(progress))


_resume = resume


@with_options(TrainOptions)
def main(
    corpus: Path | None = None,
    *,
    out: Path | None = None,
    resume: Path | None = None,
    exist_ok: bool = False,
    **options: Any,
) -> None:
    """Train a model on a corpus folder, or resume a run.

    Args:
        corpus: corpus folder
        out: run folder to write
        resume: resume this run; takes no other flag
        exist_ok: resume the run in --out if it exists, with identical options
    """
    if resume is not None:
        if options or corpus or out or exist_ok:
            raise UserError("--resume uses the options of the run and takes nothing else")
        _resume(resume)
    elif corpus is None or out is None:
        raise UserError("name a corpus folder and --out RUN, or --resume RUN")
    else:
        train(corpus, out, exist_ok=exist_ok, **options)


COMMAND = Command(
    main,
    examples=("ssdvae train corpus --out runs/first --observe 0.9", "ssdvae train --resume runs/first"),
)
