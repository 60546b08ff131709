"""`ssdvae scores`: compare evaluated runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ssdvae.commands import AnyPath, Command
from ssdvae.commands.console import TableText, show

if TYPE_CHECKING:
    from ssdvae.evaluation.summary import Row


@dataclass(frozen=True)
class Scores:
    """Scores of runs, averaged over those that differ in their seed alone."""

    rows: list[Row]  # one for each configuration, task and data

    def tables(self) -> Iterator[TableText]:
        """Yield a table for each task and data: title, head, lines."""
        from ssdvae.evaluation.summary import score_tables

        return score_tables(self.rows)

    def markdown(self) -> str:
        """Return the tables in Markdown."""
        from ssdvae.models.card import markdown_table

        tables = [f"**{title}**\n\n{markdown_table(head, rows)}\n" for title, head, rows in self.tables()]
        return "\n".join(tables)


def scores(runs: AnyPath | Sequence[AnyPath]) -> Scores:
    """Compare the scores of evaluated runs, averaged over seeds.

    >>> for title, head, rows in ssdvae.scores(["runs/first", "runs/second"]).tables():
    ...     print(title, head, rows)

    Runs that differ in their seed alone are averaged, with the standard deviation.
    """
    from ssdvae.commands import paths
    from ssdvae.evaluation.summary import summarize

    return Scores(summarize(paths(runs)))


def main(runs: list[Path], *, markdown: bool = False) -> None:
    """Compare the scores of evaluated runs, averaged over seeds.

    Args:
        runs: run folders that were evaluated
        markdown: print the tables in Markdown
    """
    found = scores(runs)
    if markdown:
        print(found.markdown())
    else:
        show(found.tables())


COMMAND = Command(main, examples=("ssdvae scores runs/first", "ssdvae scores runs/first --markdown"))
