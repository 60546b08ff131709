"""Inverse narrative cloze: which of several continuations really followed a seed event?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssdvae.config import EvaluateSettings, ModelSettings
from ssdvae.errors import UserError
from ssdvae.evaluation.tasks.base import WORDS, Data, Figure, Floor, Result, Task
from ssdvae.files import sha256

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.evaluation.measure import Evaluation

NAME = "cloze"
CHANCE = Floor("cloze_chance", "by chance")


def data(corpus: Corpus, settings: EvaluateSettings) -> Data | None:
    """The file of --cloze, or the corpus's own. If it has none, and nothing else is measured, an error."""
    if settings.cloze is None and not corpus.has_cloze(settings.split) and settings.task_names != (NAME,):
        return None
    path = corpus.cloze(settings.split) if settings.cloze is None else settings.cloze
    name = settings.split if settings.cloze is None else str(settings.cloze)
    # Beside the usual measurement, not in its place.
    name += ", frames read" if settings.cloze_frames == "read" else ""
    return Data(name, sha256(path), path)


def check(config: ModelSettings, settings: EvaluateSettings) -> None:
    vector = config.values().get("document_vector") or config.values().get("variant") == "code"
    if vector and settings.cloze_frames == "read":
        raise UserError(
            "--cloze-frames read: the document vector would read the option that it is to choose\n"
            "with a document vector, frames are foreseen"
        )


def run(evaluation: Evaluation, data: Data) -> Result:
    from ssdvae.data.cloze import ClozeTask, read_cloze
    from ssdvae.evaluation.cloze import score_cloze

    model, settings = evaluation.model, evaluation.settings
    items = ClozeTask.of(read_cloze(data.path, model.slots), model.vocabulary, evaluation.corpus.lowercase)
    with evaluation.progress.task("cloze", len(items)) as advance:
        scores = score_cloze(model, items, settings, advance)
    return Result(len(items), scores.summary(settings.eval_seed), scores.details())


CLOZE = Task(
    name=NAME,
    title="Inverse narrative cloze",
    explanation="Higher is better: the share of items whose true continuation of a seed event is chosen. The "
    "paper chooses by likelihood; PMI takes away how likely the words are anyway.",
    figures=(
        Figure(
            "cloze_nll",
            "by likelihood",
            "higher",
            share=True,
            paper="1b",
            headline="cloze, by likelihood",
            floor=CHANCE,
        ),
        Figure("cloze_pmi", "by PMI", "higher", share=True, headline="cloze, by PMI", floor=CHANCE),
    ),
    run=run,
    check=check,
    needs=(WORDS,),
    settings=("cloze_seeds", "cloze_frames", "eval_batch", "eval_seed"),
    data=data,
    has_details=True,
    takes_cloze_files=True,
)
