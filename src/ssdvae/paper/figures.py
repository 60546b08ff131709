"""The paper's own figures, each with the table that it is in.

``paper.csv`` has them under the names and in the units of this package: the paper's perplexity counts
separators (``ppl_with_separators``), and its cloze accuracy, printed in per cent, is a share. A baseline that
classifies frames is named as the model that does so here.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib import resources

from ssdvae.evaluation.published import Published, PublishedFigure

SOURCE = "Rezaee and Ferraro, NAACL 2021"

TABLES = {
    "1a": "Table 1a",
    "1b": "Table 1b",
    "3": "Tables 3 and 5",
    "6": "Table 6",
}
"""How each table is cited; the deviations of Table 3 are in Table 5."""

NOTE = (
    f"The paper's figures ({SOURCE}), in italics, are means and deviations of three runs on its own corpus "
    "of Wikipedia, with 40,000 words and 500 frames. A run on any other corpus does not compare with them."
)


@cache
def published_figures() -> Published:
    """All figures of the paper; those on Wikipedia stand beside the corpus of a run."""
    return Published(SOURCE, TABLES, "wiki", NOTE, _read_figures())


def _read_figures() -> tuple[PublishedFigure, ...]:
    text = (resources.files(__package__) / "paper.csv").read_text(encoding="utf-8")
    _, *lines = csv.reader(text.splitlines())
    return tuple(
        PublishedFigure(
            *(table, model, attention),
            float(observe) if observe else None,
            *(data, split, figure),
            float(mean),
            float(deviation),
            f"{mean} ± {deviation}",
        )
        for table, model, attention, observe, data, split, figure, mean, deviation in lines
    )
