"""What there is to choose from: read from the tables of the library, without waiting for torch."""

from ssdvae.evaluation.tasks import mark_of, task_choices
from ssdvae.paper.grid import targets as paper_tables

__all__ = ["mark_of", "paper_tables", "task_choices"]
