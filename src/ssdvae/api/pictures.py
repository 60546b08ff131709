"""Draw: a picture of runs, of what a model has learned, or of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ssdvae.analysis.explain import Explanation
from ssdvae.analysis.transitions import Transitions
from ssdvae.answers.infer import InferredDocument
from ssdvae.answers.next_events import Next
from ssdvae.answers.score import ScoredDocument
from ssdvae.api.signatures import AnyPath
from ssdvae.report import pictures
from ssdvae.report.charts import Drawing
from ssdvae.report.pictures import Picture
from ssdvae.runs import Run

RunLike = Run | AnyPath


def draw(
    what: RunLike | Sequence[RunLike] | Explanation | Transitions | Next | InferredDocument | ScoredDocument,
) -> Picture:
    """A picture, which a notebook shows and ``save`` writes as SVG.

    >>> ssdvae.draw(["runs/first", "runs/second"])  # how they learned
    >>> ssdvae.draw(ssdvae.explain("runs/first"))  # which frames follow which
    >>> ssdvae.draw(next(ssdvae.next_events("runs/first", [["arrested police suspect"]]))).save("next.svg")

    Of what `infer` gives for a document, it shows the frame of each event; of what `score` gives, how
    surprising each word is.
    """
    return Picture(_drawing(what))


def _drawing(
    what: RunLike | Sequence[RunLike] | Explanation | Transitions | Next | InferredDocument | ScoredDocument,
) -> Drawing:
    match what:
        case Explanation():
            return pictures.of_transitions(what.transitions)
        case Transitions():
            return pictures.of_transitions(what)
        case Next():
            return pictures.of_next(what)
        case InferredDocument():
            return pictures.of_inferred(what)
        case ScoredDocument():
            return pictures.of_scored(what)
        case Run() | str() | Path():
            return pictures.of_runs([_folder(what)])
        case _:
            return pictures.of_runs([_folder(run) for run in what])


def _folder(run: RunLike) -> Path:
    return run.folder if isinstance(run, Run) else Path(run)
