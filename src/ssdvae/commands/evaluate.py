"""`ssdvae evaluate`: measure a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ssdvae.commands import AnyPath, Command
from ssdvae.evaluation.options import EvaluateOptions
from ssdvae.options import with_options

if TYPE_CHECKING:
    from ssdvae.data.corpus import Corpus
    from ssdvae.io.progress import Progress


@with_options(EvaluateOptions)
def evaluate(
    run: AnyPath,
    *,
    corpus: Corpus | AnyPath | None = None,
    details: AnyPath | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> dict[str, Any]:
    """Measure a trained model on one split of a corpus, and return its scores by name.

    >>> ssdvae.evaluate("runs/first", split="valid")["ppl"]
    >>> ssdvae.evaluate("wiki-en", corpus="corpus", tasks="perplexity")

    A corpus that was prepared for another model is read with the vocabulary of this one. The scores of a run
    are kept in its ``scores.json``. Where perplexity is measured on the validation split of a run, its
    surprisal quantiles are kept too, for the percentiles of `score`.

    Args:
        run: run folder, or the name of a packaged model or of one on the hub
        corpus: corpus folder; by default that of the run
        details: file for the scores of each item, in JSON lines
    """
    from ssdvae.commands.coerce import as_model, corpus_of
    from ssdvae.evaluation.measure import evaluate_run, in_numbers_of
    from ssdvae.evaluation.task import find_tasks
    from ssdvae.inference.surprisal import save_quantiles
    from ssdvae.io.progress import resolve

    chosen, bar = EvaluateOptions(**options), resolve(progress)
    find_tasks(chosen.task_names)  # refuse a wrong name before the model is read
    data, model = corpus_of(run, corpus), as_model(run)
    if corpus is not None:
        data = in_numbers_of(model, data)
    scores = evaluate_run(run, model, data, chosen, details=details, progress=bar)
    wanted = model.quantiles is None and scores.get("ppl") is not None
    if wanted and corpus is None and chosen.split == "valid" and Path(run).is_dir():
        save_quantiles(model, data, Path(run), bar)
    return scores


def print_scores(scores: dict[str, Any]) -> None:
    """Print a line for each score, with a note where its name does not explain it."""
    from ssdvae.evaluation.task import find_figure, mark_of

    plain = {name: value for name, value in scores.items() if not isinstance(value, dict | list)}
    width = max(20, *(len(name) + 1 for name in plain)) if plain else 0
    for name, value in plain.items():
        text = "–" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
        text += mark_of(name, scores)
        figure = find_figure(name) if value is not None else None
        note = figure.note if figure is not None else None
        print(f"{name:{width}}{text:10}{note}" if note else f"{name:{width}}{text}")
    if any(mark_of(name, scores) for name in scores):
        bounded = scores.get("ppl_bound") is not None
        instead = "compare models by ppl_bound" if bounded else "do not compare it with other models"
        print(f"† conditions on the words that it predicts: {instead}")


COMMAND = Command(
    evaluate,
    print_scores,
    examples=(
        "ssdvae evaluate runs/first",
        "ssdvae evaluate runs/first --split test --tasks perplexity --json",
    ),
    record=dict,
)
