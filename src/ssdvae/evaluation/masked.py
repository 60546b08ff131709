"""Masked event: which of several events stood at a place in a document?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ssdvae.data.items import MaskedItem, read_items
from ssdvae.evaluation.choices import CHOICE_NOTE, Question, answer, choice_figures
from ssdvae.evaluation.task import LIKELIHOOD, Data, Result, Task, item_data

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation

NAME = "masked"

EXPLANATION = (
    "Higher is better: the share of items whose true event is chosen for its place in a document, with what "
    f"came before and after. By the likelihood of the whole document with each candidate. {CHOICE_NOTE}"
)


def run(evaluation: Evaluation, data: Data) -> Result:
    questions = [
        Question(item.events[: item.place], item.candidates, item.events[item.place + 1 :])
        for item in read_items(data.path, MaskedItem)
    ]
    return answer(NAME, evaluation, questions)


TASK = Task(
    name=NAME,
    title="Masked event",
    explanation=EXPLANATION,
    figures=choice_figures(NAME, "masked-event accuracy"),
    run=run,
    needs=(LIKELIHOOD,),
    settings=("cloze_seeds", "eval_batch", "eval_seed"),
    default=False,
    data=partial(item_data, "masked"),
    has_details=True,
    reproduced=False,
)
