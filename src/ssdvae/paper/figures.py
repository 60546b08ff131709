"""The paper's own figures, each with the table that it is in.

``paper.csv`` has them under the names and in the units of this package: the paper's perplexity counts
separators (``ppl_official``), and its cloze accuracy, printed in per cent, is a share. A baseline that
classifies frames is named as the model that does so here.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ssdvae.config import TrainSettings

SOURCE = "Rezaee and Ferraro, NAACL 2021"

TABLES = {
    "1a": "Table 1a",
    "1b": "Table 1b",
    "3": "Tables 3 and 5",
    "6": "Table 6",
}
"""How each table is cited; the deviations of Table 3 are in Table 5."""


@dataclass(frozen=True)
class PaperFigure:
    """The mean of three runs and their standard deviation."""

    table: str
    model: str
    attention: str  # empty for the baselines
    observe: float | None  # ε; None for the baselines
    data: str  # wiki or nyt
    split: str
    figure: str
    mean: float
    deviation: float
    printed: str

    def is_of(self, settings: TrainSettings) -> bool:
        """Whether a run with these settings is meant to give this figure."""
        values = settings.values()
        return (
            self.model == settings.model
            and self.attention in ("", values.get("attention"))
            and self.observe in (None, settings.observe)
        )


@cache
def paper_figures() -> tuple[PaperFigure, ...]:
    text = (resources.files(__package__) / "paper.csv").read_text(encoding="utf-8")
    _, *lines = csv.reader(text.splitlines())
    return tuple(
        PaperFigure(
            *(table, model, attention),
            float(observe) if observe else None,
            *(data, split, figure),
            float(mean),
            float(deviation),
            f"{mean} ± {deviation}",
        )
        for table, model, attention, observe, data, split, figure, mean, deviation in lines
    )


def counterpart(settings: TrainSettings, figure: str, split: str, data: str = "wiki") -> PaperFigure | None:
    """The paper's figure for such a run; None where it has none."""
    found = (
        p
        for p in paper_figures()
        if (p.figure, p.data, p.split) == (figure, data, split) and p.is_of(settings)
    )
    return next(found, None)
