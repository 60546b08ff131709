"""What the tasks have in common that choose an event for a place in a document."""

from __future__ import annotations

from ssdvae.evaluation.tasks.base import Figure

WAYS = (
    "PMI takes away how likely the candidate is anyway. Frequency (the candidate with the commonest words) "
    "and averaged word vectors (the one nearest to the other events; with --floor-vectors) are what counting "
    "and word similarity get."
)


def choice_figures(task: str, headline: str) -> tuple[Figure, ...]:
    """The figures of such a task, by way of scoring."""
    return (
        Figure(f"{task}_nll", "by likelihood", "higher", share=True),
        Figure(f"{task}_pmi", "by PMI", "higher", share=True, headline=headline),
        Figure(f"{task}_frequency", "by frequency", share=True, note="what the commonest words get"),
        Figure(f"{task}_vectors", "by word vectors", share=True, note="what averaged word vectors get"),
    )
