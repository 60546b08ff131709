"""Options of the questions that a trained model answers."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from ssdvae.options import Options


class AnswerOptions(Options):
    """Base of the options of questions."""

    group: ClassVar[str] = "answers"


class InferOptions(AnswerOptions):
    """Options of `infer`."""

    observe_frames: bool = Field(
        False,
        description="use the frames in the input as evidence, not only to compare the inferred ones with",
    )
    top: int = Field(1, description="number of frames to show for each event, most likely first", ge=1)
    attention: bool = Field(
        False, description="include the attention on each word, for documents of at most 64 events"
    )
    batch: int = Field(200, description="batch size", ge=1)


class ForecastOptions(AnswerOptions):
    """Options of the search for events."""

    top: int = Field(5, description="number of candidates to show, most likely first", ge=1)
    beam: int = Field(100, description="beam size of the search for whole events", ge=1, le=10_000)
    specificity: float | None = Field(
        None,
        description="how much lower to rank events that are likely anywhere: s in "
        "log p(event | context) - s log p(event); 0 ranks by probability, and a larger s suggests each head "
        "once; by default 0.3 for text, 0 for logs",
        ge=0,
        le=1,
    )
    batch: int = Field(100, description="batch size", ge=1)


class NextOptions(ForecastOptions):
    """Options of `next`."""

    every_prefix: bool = Field(
        False,
        description="tell what follows after every event of each document, in one pass: head, end and times, "
        "no whole events",
    )


class OpenOptions(Options):
    """Options of questions about whole cases."""

    group: ClassVar[str] = "cases"

    open: bool = Field(False, description="the cases are still running, so none has ended (models of logs)")


class FillOptions(ForecastOptions, OpenOptions):
    """Options of `fill`."""


class SurprisalOptions(AnswerOptions, OpenOptions):
    """Options of `score`."""

    frames: int = Field(1, description="number of frames to show for each event, most likely first", ge=1)
    batch: int = Field(100, description="batch size", ge=1)


class RankingOptions(OpenOptions):
    """Options of a ranking by surprisal."""

    group: ClassVar[str] = "cases"

    by: Literal["event", "case"] = Field(
        "event",
        description="rank single events, or cases by the mean of their events, each with its most "
        "surprising event",
    )


class AnomalyOptions(AnswerOptions, RankingOptions):
    """Options of `anomalies`."""

    top: int = Field(10, description="number of events or cases to show, most surprising first", ge=1)
    frames: int = Field(1, description="number of frames to show for each event, most likely first", ge=1)
    expected: int = Field(5, description="number of events to show that were expected instead", ge=1)
    beam: int = Field(100, description="beam size of the search for expected events", ge=1, le=10_000)
    batch: int = Field(100, description="batch size", ge=1)


class EmbedOptions(AnswerOptions):
    """Options of `embed` and `encode`."""

    normalize: bool = Field(True, description="scale vectors to length 1: their dot product is the cosine")
    batch: int = Field(200, description="batch size", ge=1)


class SimilarOptions(AnswerOptions):
    """Options of `similar`."""

    top: int = Field(5, description="number of events to show, nearest first", ge=1)
    batch: int = Field(200, description="batch size", ge=1)


class GenerateOptions(Options):
    """Options of `generate`."""

    group: ClassVar[str] = "decoding"

    method: Literal["sample", "greedy", "beam"] = Field(
        "sample", description="how words are decoded: sampling, greedy decoding or beam search"
    )
    events: int = Field(4, description="events to generate after the seed", ge=1, le=10_000)
    scripts: int = Field(
        5,
        description="scripts to generate; beam search gives at most --beam, greedy decoding one",
        ge=1,
        le=1_000_000,
    )
    temperature: float = Field(1.0, description="sampling: temperature of the word distribution", gt=0)
    top_p: float = Field(
        0.9,
        description="nucleus sampling: sample from the most likely words with this total probability",
        gt=0,
        le=1,
    )
    beam: int = Field(10, description="beam search: beam size", ge=1, le=10_000)
    repeat: bool = Field(True, description="let an event occur twice in a script")
    distinct_roles: bool = Field(
        False, description="no event may have the same word in two arguments, such as subject and object"
    )
    seed: int = Field(1, description="random seed", ge=0)
    batch: int = Field(100, description="batch size: scripts sampled at once", ge=1)
