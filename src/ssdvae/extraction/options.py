"""Options of extraction: from text to events, and from events to frames."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ssdvae.data.options import StreamOptions


class ExtractOptions(StreamOptions):
    """From text, or parsed text, to documents of events."""

    group: ClassVar[str] = "events"

    spacy_model: str = Field(
        "en_core_web_sm", description="spaCy model that parses plain text: a name or a folder"
    )
    text_column: str = Field("text", description="column (or key) of a table that has the text")
    lemmas: bool = Field(False, description="write lemmas (move) instead of the words of the text (moved)")
    negation: Literal["keep", "mark", "drop"] = Field(
        "keep", description="negated events: keep them like any other, mark the verb (not_left), or drop them"
    )
    keep_text: bool = Field(
        False, description="store the sentence with each event, for annotators that read sentences"
    )


class AnnotateOptions(StreamOptions):
    """Frames for events."""

    group: ClassVar[str] = "frames"

    # Nine of ten frames that this lets through are right in full texts of FrameNet (docs/extraction.md).
    threshold: float = Field(
        0.7,
        description="lowest probability of a frame that is written; below it, the event stays latent",
        ge=0,
        le=1,
    )
    replace: bool = Field(False, description="annotate events that already have a frame, too")
