"""Perplexity: how well the words are predicted, and whether the latent variables are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ssdvae.evaluation.tasks.base import Data, Figure, Result, Task
from ssdvae.measurements import CONDITIONS_ON_TARGETS

if TYPE_CHECKING:
    from ssdvae.evaluation.measure import Evaluation


def run(evaluation: Evaluation, data: Data) -> Result:
    return Result(len(evaluation.documents), evaluation.split_pass.scores)


PERPLEXITY = Task(
    name="perplexity",
    title="Perplexity",
    explanation="Lower is better. † The model has read the words that it predicts: in SSDVAE and HAQAE “ppl” "
    "conditions on latent variables that were inferred from them, and a document vector reads them too. "
    "Only the bound, which pays for the latent variables, "
    "compares models with and without them. "
    "The paper's perplexity counts separators. “Information” is the mutual information of an event and its "
    "frame, or of a document and a latent variable, in nats: next to 0, the frames say nothing.",
    figures=(
        Figure("ppl", "ppl", "lower", digits=2, marked_by=CONDITIONS_ON_TARGETS),
        Figure(
            "ppl_with_separators",
            "ppl with separators",
            "lower",
            digits=2,
            paper="1a",
            marked_by=CONDITIONS_ON_TARGETS,
        ),
        Figure("ppl_bound", "ppl bound", "lower", digits=2, headline="perplexity bound"),
        Figure(
            "latent_information",
            "information, nats",
            digits=2,
            compared=False,
            note="mutual information of event and frame, nats",
        ),
        Figure("latent_used", "values in use", digits=0, compared=False),
    ),
    # It needs no words: of a model without them, it measures the use of the latent variables.
    run=run,
    settings=("events", "bound_samples", "eval_batch", "eval_seed"),
    scores_words=True,
)
