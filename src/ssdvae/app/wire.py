"""Requests: what may be asked, how much of it, and what is said when it is too much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from ssdvae.answers.fill import with_holes
from ssdvae.config import ExploreSettings
from ssdvae.data.events import Document, Event, Slots, to_document, to_event
from ssdvae.errors import Malformed, UserError


class Asked(BaseModel):
    """What all requests have."""

    model_config = ConfigDict(extra="forbid")

    run: str | None = Field(None, description="the name of a model, by default the first")


EVENT = "an event: a text such as 'met she him at' (- for an empty slot), or a mapping of slots to words"


class Documents(Asked):
    documents: list[Any] = Field(
        description=f"documents, each a list of events or {{'id': …, 'events': […]}}; {EVENT}",
        examples=[[["arrested police suspect in", {"verb": "tried", "obj": "suspect"}]]],
    )


TOP = Field(5, ge=1, le=100, description="candidates to tell, the likeliest first")


class InferRequest(Documents):
    top: int = Field(1, ge=1, le=100, description="frames of each event to tell, the likeliest first")
    attention: bool = Field(False, description="tell how much each frame looks at each word")
    observe_frames: bool = Field(False, description="use the frames of the events as evidence")


class NextRequest(Documents):
    given: dict[str, str] = Field(
        {}, description="what is known of the next event: its frame, or words by the names of their slots"
    )
    top: int = TOP


class FillRequest(Documents):
    """As documents, but null stands for an event that is missing, and ? for a word."""

    top: int = TOP


class GenerateRequest(Asked):
    events: list[Any] = Field([], description=f"events to begin with; {EVENT}", examples=[["met she him"]])
    frames: list[str | None] = Field([], description="frames of the events after them, null for any")
    length: int = Field(4, ge=1, le=20, description="events to write")
    scripts: int = Field(3, ge=1, le=20, description="scripts to write")
    seed: int = Field(1, ge=0, description="random seed")


class Limits:
    """How much one request may ask for."""

    def __init__(self, settings: ExploreSettings) -> None:
        self.settings = settings

    def documents(self, given: Iterable[Any], slots: Slots, holes: bool = False) -> list[Document]:
        """Documents in any form that the API takes; with ``holes``, null is an event that is missing."""
        if holes:
            given = map(with_holes, given)
        try:
            found = [
                to_document(document, str(number), slots) for number, document in enumerate(given, start=1)
            ]
        except Malformed as error:
            raise UserError(str(error)) from error
        self._check(found)
        return found

    def events(self, given: Sequence[Any], slots: Slots) -> tuple[Event, ...]:
        try:
            found = tuple([to_event(event, slots) for event in given])
        except Malformed as error:
            raise UserError(str(error)) from error
        self._check([Document("", found)])
        return found

    def typed(self, lines: Iterable[str], slots: Slots) -> tuple[Event, ...]:
        """Events as a person types them."""
        return self.events([line for line in lines if line.strip()], slots)

    def _check(self, documents: Sequence[Document]) -> None:
        total, most = sum(len(document.events) for document in documents), self.settings.max_events
        if total > most:
            raise UserError(f"found {total:,} events in one request, expected {most:,} at most")
