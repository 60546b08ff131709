"""Event similarity: are the events near each other that people find similar?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ssdvae.config import EvaluateSettings
from ssdvae.evaluation.tasks.base import Data, Figure, Result, Task, file_data

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.evaluation.measure import Evaluation

NAME = "similarity"

EXPLANATION = (
    "Higher is better. Of two pairs of events, the similar one must be nearer than the other one, which "
    "shares more words (accuracy; equally near counts one half); or the cosines must rank pairs as people "
    "do (Spearman's ρ). Events are read alone. With --floor-vectors, what averaged word vectors get, what "
    "they get multiplied slot by slot (centred), and the lead over averaged ones on the same items. "
    "Published, for the 115 hard pairs, the 1,000 of the extended set, and ρ of the 108 transitive ones: "
    "with intents and sentiments 77.4 %, 62.8 %, 0.74 (Ding et al. 2019); on the first by tensors 43.5 % "
    "(Weber et al. 2018)."
)

FLOOR = "what averaged word vectors get"
MULTIPLIED = "what word vectors get, multiplied"


def data(corpus: Corpus, settings: EvaluateSettings) -> Data | None:
    return file_data(NAME, settings.similarity, corpus, settings)


def run(evaluation: Evaluation, data: Data) -> Result:
    from ssdvae.data.triples import HardPairs, read_similarity
    from ssdvae.evaluation.choices import Averages, Reader
    from ssdvae.evaluation.options import with_interval
    from ssdvae.evaluation.similarity import similarities
    from ssdvae.evaluation.vectors import event_vectors

    items, settings = read_similarity(data.path), evaluation.settings
    reader, seed = Reader(evaluation.model, evaluation.corpus.lowercase), settings.eval_seed
    events = [e for i in items for e in ((*i.similar, *i.other) if isinstance(i, HardPairs) else i.pair)]
    found = similarities(
        items, lambda some: event_vectors(evaluation.model, reader, some, settings.eval_batch)
    )
    figures: dict[str, Any] = found.figures(NAME, seed)
    if settings.floor_vectors is not None:
        averages = Averages(settings.floor_vectors, events, reader)
        floor = similarities(items, averages.of_each)
        figures |= floor.figures(f"{NAME}_vectors", seed)
        figures |= similarities(items, averages.products).figures(f"{NAME}_products", seed)
        if isinstance(items[0], HardPairs):
            figures |= with_interval(f"{NAME}_lead", found.credit - floor.credit, seed)
    figures |= {f"{NAME}_items": len(items), f"{NAME}_unknown_words": reader.unknown_share(events)}
    return Result(len(items), figures, found.details())


SIMILARITY = Task(
    name=NAME,
    title="Event similarity",
    explanation=EXPLANATION,
    figures=(
        Figure(f"{NAME}_accuracy", "accuracy", "higher", share=True, headline="similarity accuracy"),
        Figure(f"{NAME}_rho", "Spearman's ρ", "higher"),
        Figure(f"{NAME}_vectors_accuracy", "by word vectors", share=True, note=FLOOR),
        Figure(f"{NAME}_vectors_rho", "ρ by word vectors", note=FLOOR),
        Figure(f"{NAME}_products_accuracy", "by multiplied ones", share=True, note=MULTIPLIED),
        Figure(f"{NAME}_products_rho", "ρ by multiplied ones", note=MULTIPLIED),
        Figure(f"{NAME}_lead", "lead over word vectors", "higher", share=True),
    ),
    run=run,
    settings=("eval_batch", "eval_seed"),
    data=data,
    has_details=True,
    reproduced=False,
)
