"""Options of the generated corpora."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ssdvae.options import Options


class WorldOptions(Options):
    """Documents of the storyworld."""

    group: ClassVar[str] = "documents"

    documents: int = Field(10_000, description="number of documents", ge=1)
    seed: int = Field(1, description="random seed; the same seed gives the same documents", ge=0)


class TicketOptions(Options):
    """A generated log of support tickets."""

    group: ClassVar[str] = "tickets"

    documents: int = Field(3_000, description="number of tickets", ge=1)
    known: float = Field(
        0.3, description="fraction of the events whose stage is written; the rest is the same", ge=0, le=1
    )
    seed: int = Field(1, description="random seed; the same seed gives the same tickets", ge=0)
