"""Figures that others have published, to stand beside those of runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ssdvae.config import TrainSettings


@dataclass(frozen=True)
class PublishedFigure:
    """The mean over some runs and their standard deviation."""

    table: str
    model: str
    attention: str  # empty for a model that has only one kind
    observe: float | None  # ε; None for a model that observes no frames, or all
    data: str
    split: str
    figure: str
    mean: float
    deviation: float
    printed: str

    def is_of(self, settings: TrainSettings) -> bool:
        """Whether a run with these settings is meant to give this figure."""
        values = settings.values()
        # SSDVAE may have had a vector of the document, but no language model had any.
        vectors = (values.get("document_vector"), values.get("context_vector"))
        added = settings.model != "ssdvae" and any(vectors)
        return (
            not added
            and self.model == settings.model
            and self.attention in ("", values.get("attention"))
            and self.observe in (None, settings.observe)
        )


@dataclass(frozen=True)
class Published:
    """The figures of one publication."""

    source: str
    tables: Mapping[str, str]  # how each table is cited
    data: str  # the data on which runs are compared: the others are read beside it
    note: str  # what the figures are, and what cannot be compared with them
    figures: tuple[PublishedFigure, ...]

    def counterpart(
        self, settings: TrainSettings, figure: str, split: str, data: str | None = None
    ) -> PublishedFigure | None:
        """The figure for such a run; None where there is none."""
        wanted = (figure, data or self.data, split)
        found = (p for p in self.figures if (p.figure, p.data, p.split) == wanted and p.is_of(settings))
        return next(found, None)
