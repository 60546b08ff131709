"""Options of `explain` and `report`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ssdvae.data.options import Split
from ssdvae.options import Options


class ExplainOptions(Options):
    """Options of `explain`."""

    group: ClassVar[str] = "what is shown"

    split: Split = Field("valid", description="which split of the corpus")
    words: str | None = Field(
        None, description="words whose frames are shown, comma-separated; by default the most frequent heads"
    )
    frames: str | None = Field(
        None, description="frames whose words are shown, comma-separated; by default the most frequent frames"
    )
    slot: str | None = Field(
        None, description="slot in which words are looked at; by default the head of the event"
    )
    rows: int = Field(10, description="words, frames and transitions to show, where they are not named", ge=1)
    top: int = Field(5, description="frames per word, and words per frame", ge=1)
    min_count: float = Field(
        5.0, description="expected count below which a transition, or what is compared, is not shown", ge=0
    )
    before: str | None = Field(
        None, description="show only what usually precedes this frame, at any distance"
    )
    compare: str | None = Field(
        None,
        description="show only which frames, transitions and words differ between groups of documents: a "
        "column of the files that the corpus was prepared from, or a file (.csv, .tsv, .jsonl, .parquet) "
        "with the columns id and group",
    )
    permutations: int = Field(1000, description="shuffles of the groups behind the test of --compare", ge=19)
    seed: int = Field(1, description="random seed of these shuffles", ge=0)
    batch: int = Field(200, description="batch size", ge=1)


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
