"""Masked event: which of several events stood at a place in a document?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssdvae.config import EvaluateSettings
from ssdvae.evaluation.tasks.base import LIKELIHOOD, Data, Result, Task, item_data
from ssdvae.evaluation.tasks.ways import WAYS, choice_figures

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.evaluation.measure import Evaluation

NAME = "masked"

EXPLANATION = (
    "Higher is better: the share of items whose true event is chosen for its place in a document, with what "
    f"came before and after. By the likelihood of the whole document with each candidate. {WAYS}"
)


def data(corpus: Corpus, settings: EvaluateSettings) -> Data | None:
    return item_data("masked", corpus, settings)


def run(evaluation: Evaluation, data: Data) -> Result:
    from ssdvae.data.choices import MaskedItem, read_items
    from ssdvae.evaluation.choices import Question, answer

    questions = [
        Question(item.events[: item.place], item.candidates, item.events[item.place + 1 :])
        for item in read_items(data.path, MaskedItem)
    ]
    return answer(NAME, evaluation, questions)


MASKED = Task(
    name=NAME,
    title="Masked event",
    explanation=EXPLANATION,
    figures=choice_figures(NAME, "masked-event accuracy"),
    run=run,
    needs=(LIKELIHOOD,),
    settings=("cloze_seeds", "eval_batch", "eval_seed"),
    default=False,
    data=data,
    has_details=True,
    reproduced=False,
)
