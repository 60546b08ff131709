"""Settings of the questions that a trained model answers: what is next, unusual, missing, alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ssdvae.config.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class AnswerSettings(Settings):
    """How answers are computed."""

    batch: int = setting(100, "batch size", at_least=1, topic="computation")


@dataclass(frozen=True, kw_only=True)
class NextSettings(AnswerSettings):
    """What is told of the next event."""

    topic: ClassVar[str] = "answers"

    top: int = setting(5, "frames, heads and events to tell, the likeliest first", at_least=1)
    beam: int = setting(100, "beam size: events that are looked at, slot by slot", at_least=1, at_most=10_000)


@dataclass(frozen=True, kw_only=True)
class ScoreSettings(AnswerSettings):
    """What is told of how surprising events are."""

    topic: ClassVar[str] = "answers"

    frames: int = setting(1, "frames of each event to tell, the likeliest first", at_least=1)


@dataclass(frozen=True, kw_only=True)
class FillSettings(NextSettings):
    """What is told of something that is missing."""


@dataclass(frozen=True, kw_only=True)
class EmbedSettings(Settings):
    """Vectors of events and documents."""

    topic: ClassVar[str] = "vectors"

    normalize: bool = setting(True, "vectors of length 1, so that their product is the cosine")
    batch: int = setting(200, "batch size", at_least=1, topic="computation")


@dataclass(frozen=True, kw_only=True)
class SimilarSettings(Settings):
    """Which events are near."""

    topic: ClassVar[str] = "answers"

    top: int = setting(5, "events to tell, the nearest first", at_least=1)
    batch: int = setting(200, "batch size", at_least=1, topic="computation")
