"""Multiple-choice narrative cloze: which of several events belongs to a document?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssdvae.data.benchmarks import read_mcnc
from ssdvae.evaluation.choices import CHOICE_NOTE, Question, answer, choice_figures
from ssdvae.evaluation.task import LIKELIHOOD, Data, Result, Task, file_data

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation

NAME = "mcnc"

EXPLANATION = (
    "Higher is better: the share of items whose held-out event is chosen among wrong ones, after the last "
    f"events of its document (as many as the model is measured on, less one). By likelihood. {CHOICE_NOTE} "
    "Published, for the items of Granroth-Wilding and Clark (2016; five candidates): 52.5 % (Li et al. "
    "2018), 56.0 % (Ding et al. 2019)."
)


def run(evaluation: Evaluation, data: Data) -> Result:
    settings = evaluation.settings
    # With the candidate, no more events than a document that the model is measured on.
    most = max(1, settings.events - 1) if settings.events else None
    questions = [
        Question(item.context[-most:] if most else item.context, item.candidates)
        for item in read_mcnc(data.path)
    ]
    return answer(NAME, evaluation, questions)


TASK = Task(
    name=NAME,
    title="Multiple-choice narrative cloze",
    explanation=EXPLANATION,
    figures=choice_figures(NAME, "narrative-cloze accuracy"),
    run=run,
    needs=(LIKELIHOOD,),
    settings=("events", "cloze_seeds", "eval_batch", "eval_seed"),
    data=lambda corpus, settings: file_data(NAME, settings.mcnc, corpus, settings),
    has_details=True,
    reproduced=False,
)
