"""Measure: a trained model on its tasks, several runs, the speed of a model, and whether files are whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssdvae import checking
from ssdvae.answers.usual import keep_typical
from ssdvae.api.data import paths
from ssdvae.api.signatures import AnyPath, with_settings
from ssdvae.api.training import as_model, corpus_of
from ssdvae.config import BenchmarkSettings, EvaluateSettings
from ssdvae.data.corpus import Corpus
from ssdvae.evaluation.of_run import evaluate_run
from ssdvae.evaluation.summary import Row, score_tables, summarize
from ssdvae.evaluation.tasks import find_tasks
from ssdvae.markdown import markdown_table
from ssdvae.progress import Progress, resolve
from ssdvae.training import benchmark as timing


@with_settings(EvaluateSettings)
def evaluate(
    run: AnyPath,
    *,
    corpus: Corpus | AnyPath | None = None,
    details: AnyPath | None = None,
    progress: bool | Progress = True,
    **settings: Any,
) -> dict[str, Any]:
    """The scores of a run on one split, by default of the corpus it was trained on.

    >>> ssdvae.evaluate("runs/first", split="valid")["ppl_bound"]

    They are kept in ``scores.json`` of the run folder; ``details`` is a file for the scores of each item, of
    a task that has items. Where perplexity is measured on the validation split of the run, what is usual
    there is kept too, for the percentiles of `score`.
    """
    chosen, shown = EvaluateSettings.exactly(settings), resolve(progress)
    find_tasks(chosen.task_names)  # a wrong name is better known before the model is read
    own, model = corpus_of(run, corpus), as_model(run)
    scores = evaluate_run(run, model, own, chosen, details=details, progress=shown)
    known = model.typical is not None or scores.get("ppl") is None
    if not known and corpus is None and chosen.split == "valid" and Path(run).is_dir():
        keep_typical(model, own, Path(run), shown)
    return scores


@dataclass(frozen=True)
class Scores:
    """The scores of runs, averaged over those that differ in their seed alone."""

    rows: list[Row]  # one for each configuration, task and data

    def tables(self) -> Iterator[tuple[str, list[str], list[list[str]]]]:
        """A table for each task and data: its title, its head and its lines."""
        return score_tables(self.rows)

    def markdown(self) -> str:
        """The same tables in Markdown."""
        return "\n".join(
            f"**{title}**\n\n{markdown_table(head, rows)}\n" for title, head, rows in self.tables()
        )


def scores(runs: AnyPath | Sequence[AnyPath]) -> Scores:
    """The scores of evaluated runs side by side; runs that differ in their seed alone are averaged.

    >>> for title, head, rows in ssdvae.scores(["runs/first", "runs/second"]).tables():
    ...     print(title, head, rows)
    """
    return Scores(summarize(paths(runs)))


@with_settings(BenchmarkSettings)
def benchmark(**settings: Any) -> dict[str, Any]:
    """Time a training step and an evaluation batch of a model, beside what the machine can do.

    >>> ssdvae.benchmark(preset="tiny", model="rnnlm")["train"]["documents_per_second"]
    """
    return timing.benchmark(BenchmarkSettings.chosen(settings))


def check(folder: AnyPath) -> list[checking.Checked]:
    """Every file of a corpus, a run or a model, read and held against what vouches for it.

    >>> [part for part in ssdvae.check("runs/first") if part.problem is not None]

    What is damaged is told, not raised: ``problem`` is the error that the file would give.
    """
    return checking.check(Path(folder))
