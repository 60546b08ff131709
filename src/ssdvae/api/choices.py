"""What there is to choose from: read from the tables of the library, without waiting for torch."""

from ssdvae.evaluation.tasks import find_figure, mark_of, task_choices
from ssdvae.paper.grid import targets as paper_tables

__all__ = ["figure_note", "find_figure", "mark_of", "paper_tables", "task_choices"]


def figure_note(name: str) -> str | None:
    """What a figure says, in a few words, where that is not plain."""
    figure = find_figure(name)
    return None if figure is None else figure.note
