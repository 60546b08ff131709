"""Order: is the true order of a document likelier than the one with two events swapped?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ssdvae.data.items import OrderItem, read_items
from ssdvae.evaluation.choices import EventEncoder, OptionScores, score_scripts
from ssdvae.evaluation.task import LIKELIHOOD, Data, Figure, Result, Task, item_data

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation

NAME = "order"


def run(evaluation: Evaluation, data: Data) -> Result:
    items = [item.options for item in read_items(data.path, OrderItem)]
    settings = evaluation.settings
    encoder = EventEncoder(evaluation.model, evaluation.corpus.lowercase)
    unknown = encoder.unknown_share([event for true, _ in items for event in true])
    with evaluation.progress.task(NAME, 2 * len(items)) as advance:
        nll = score_scripts(evaluation.model, items, encoder, settings, advance)
    scores = OptionScores(NAME, {"nll": nll})
    figures = {**scores.figures(settings.eval_seed), f"{NAME}_unknown_words": unknown}
    return Result(len(items), figures, scores.details())


TASK = Task(
    name=NAME,
    title="Order of events",
    explanation="Higher is better: the share of documents whose true order is likelier than the one with two "
    "events swapped. Chance is one half, and so is whatever reads no order: frequency, word vectors.",
    figures=(Figure("order_nll", "by likelihood", "higher", share=True, headline="order accuracy"),),
    run=run,
    needs=(LIKELIHOOD,),
    settings=("eval_batch", "eval_seed"),
    default=False,
    data=partial(item_data, "order"),
    has_details=True,
    reproduced=False,
)
