"""Options of `report`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ssdvae.data.options import Split
from ssdvae.options import Options


class ReportOptions(Options):
    """Options of the page about runs."""

    group: ClassVar[str] = "what is shown"

    split: Split = Field("valid", description="which split of the corpus the models are shown on")
    sample: int = Field(
        1_000, description="documents behind the clusters and the transitions between frames, at most", ge=1
    )
    documents: int = Field(6, description="documents to show with their frames", ge=1)
    paper: bool = Field(
        False,
        description="show the paper's figures beside those of the runs: they were measured on other data",
    )
