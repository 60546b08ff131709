"""The REST API: the questions of the command line, with the same options, as JSON.

The body of a request is an options class with the documents beside the options, so names, defaults, bounds
and descriptions are those of the command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import ConfigDict, Field, ValidationError, model_validator

from ssdvae.app import explorer as questions
from ssdvae.app.explorer import ExploredModel, Explorer, Seed
from ssdvae.data.events import Document
from ssdvae.inference.inputs import OovStats
from ssdvae.inference.options import (
    EmbedOptions,
    FillOptions,
    GenerateOptions,
    InferOptions,
    NextOptions,
    SurprisalOptions,
)
from ssdvae.io.errors import UserError, shorten
from ssdvae.io.records import to_json
from ssdvae.options import KINDS, Options, flag, kind_of

EVENT = (
    "an event: a text such as 'met she him at' (- for an empty slot), or a mapping of slots to words; "
    "where spaCy is installed, an English sentence stands for its events"
)


class Request(Options):
    """Options of every request. A wrong value that is no number or text is explained by its description."""

    run: str | None = Field(None, description="the name of a model, by default the first")

    @model_validator(mode="before")
    @classmethod
    def _refuse_surrogates(cls, values: Any) -> Any:
        r"""Refuse half a surrogate pair, such as "\ud800", in any text: it is no character."""
        try:
            json.dumps(values if isinstance(values, dict) else "", ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise UserError(f"found {error.object[error.start]!a}, expected text that is Unicode") from error
        return values

    @classmethod
    def _explain(cls, error: ValidationError, values: Mapping[str, Any]) -> UserError:
        name = str(error.errors()[0]["loc"][0])
        field = cls.model_fields.get(name)
        if field is None or kind_of(field) in KINDS:
            return super()._explain(error, values)
        found = shorten(values[name]) if name in values else "nothing"
        return UserError(f"{flag(name)}: found {found}, expected {field.description}")


class DocumentsRequest(Request):
    """A question about documents."""

    documents: list[Any] = Field(
        description=f"documents, each a list of events or {{'id': …, 'events': […]}}; {EVENT}",
        examples=[[["arrested police suspect in", {"verb": "tried", "obj": "suspect"}]]],
    )


class InferRequest(InferOptions, DocumentsRequest):
    """Documents whose frames are inferred."""


class ScoreRequest(SurprisalOptions, DocumentsRequest):
    """Documents whose surprisal is computed."""


class NextRequest(NextOptions, DocumentsRequest):
    """Documents whose next event is predicted."""

    given: dict[str, str] = Field(
        {}, description="what is known of the next event: its frame, or words by the names of their slots"
    )


class FillRequest(FillOptions, DocumentsRequest):
    """Documents in which null stands for an event that is missing, and ? for a word."""


class EmbedRequest(EmbedOptions, DocumentsRequest):
    """Documents whose vectors are computed."""


class GenerateRequest(GenerateOptions, Request):
    """Events that scripts begin with."""

    seed_events: list[Any] = Field(
        [], description=f"events to begin with; {EVENT}", examples=[["met she him"]]
    )
    frames: list[str | None] = Field([], description="frames of the events after them, null for any")


class NeighboursQuery(Request):
    """The neighbours of a frame."""

    model_config = ConfigDict(strict=False)  # in an address, all is text

    top: int = Field(10, description="frames before and after it, at most", ge=1, le=100)


class SearchQuery(Request):
    """Documents to be found."""

    model_config = ConfigDict(strict=False)

    frame: str = Field("", description="a frame that some event has")
    words: str = Field("", description="words that events have, separated by spaces")
    anomalies: bool = Field(False, description="the highest surprisal of an event first")
    first: int = Field(0, description="documents to pass over", ge=0)
    count: int = Field(10, description="documents to tell, at most", ge=1, le=100)


PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"description": "The request is not HTTP, or its body is not JSON"},
    401: {"description": "A token is needed, and was not given"},
    403: {"description": "The request came from the page of another site"},
    408: {"description": "The body of the request did not come in time"},
    413: {"description": "The body of the request has too many bytes"},
    421: {"description": "The server does not answer to this host name"},
    422: {"description": "The request cannot be understood, or asks for too much"},
    431: {"description": "The address and the headers of the request have too many bytes"},
    503: {"description": "The answer took too long"},
}


def json_response(value: Any) -> Response:
    """Return JSON, written once: FastAPI would look at every number again."""
    return Response(to_json(value, ensure_ascii=False), media_type="application/json")


def _warning(of: ExploredModel, documents: Sequence[Document]) -> dict[str, str]:
    """Return a warning, if the model knows few words of the documents."""
    warning = OovStats.of(of.model, documents).warning
    return {} if warning is None else {"warning": warning}


def routes(explorer: Explorer) -> APIRouter:
    """Return the operations: one for each question, and some about the models."""
    api = APIRouter(prefix="/api", responses=PROBLEMS)

    @api.get("/models", summary="The models that answer here")
    async def models() -> Response:
        return json_response(
            [
                {
                    "run": of.name,
                    "model": of.model.config.model,
                    "slots": list(of.model.slots),
                    "words": len(of.model.vocabulary),
                    "frames": list(of.model.frames.names),
                    "documents": of.library.name,
                }
                for of in explorer.models.values()
            ]
        )

    async def answer(
        request: DocumentsRequest, question: Callable[..., Iterable[Any]], kind: type[Options], *more: Any
    ) -> Response:
        """Answer a question about each document; warn if the model knows few of their words."""
        of, options = explorer.find(request.run), kind.of(request.values())
        holes = question is questions.fill
        documents = await explorer.parse_documents(of, request.documents, holes)
        if holes:
            found: Sequence[Any] = await explorer.fill(of, documents, FillOptions.of(request.values()))
        else:
            found = await explorer.ask(of, question, documents, options, *more)
        return json_response({"documents": [one.to_record() for one in found]} | _warning(of, documents))

    @api.post("/infer", summary="The frame of each event, with its probability")
    async def infer(request: InferRequest) -> Response:
        return await answer(request, questions.infer, InferOptions)

    @api.post("/score", summary="How surprising every event and word is, given what came before")
    async def score(request: ScoreRequest) -> Response:
        return await answer(request, questions.score, SurprisalOptions)

    @api.post("/next", summary="What comes after some events: frames, heads and whole events")
    async def next_events(request: NextRequest) -> Response:
        return await answer(request, questions.forecast, NextOptions, tuple(request.given.items()))

    @api.post("/fill", summary="What is missing, from what comes before and after it")
    async def fill(request: FillRequest) -> Response:
        return await answer(request, questions.fill, FillOptions)

    @api.post("/embed", summary="A vector for each document, and for each of its events")
    async def embed(request: EmbedRequest) -> Response:
        return await answer(request, questions.embed, EmbedOptions)

    @api.post("/generate", summary="Scripts that begin with some events")
    async def generate(request: GenerateRequest) -> Response:
        of, options = explorer.find(request.run), GenerateOptions.of(request.values())
        seed = Seed(await explorer.parse_events(of, request.seed_events), tuple(request.frames))
        (scripts,) = await explorer.ask(of, questions.write, [seed], options)
        found = {"scripts": [script.to_record() for script in scripts]}
        return json_response(found | _warning(of, [Document("seed", seed.events)]))

    @api.get("/frames/{frame}", summary="What comes before and after a frame, with shares")
    async def neighbours(frame: str, query: Annotated[NeighboursQuery, Query()]) -> Response:
        found = await explorer.statistics(explorer.find(query.run))
        sides = ("before", found.before(frame, query.top)), ("after", found.after(frame, query.top))
        shares = {side: [{"frame": name, "share": p} for name, p in names] for side, names in sides}
        return json_response({"frame": frame, "count": found.count(frame), **shares})

    @api.get("/documents", summary="Documents with some frame and some words")
    async def documents(query: Annotated[SearchQuery, Query()]) -> Response:
        library = await explorer.library(explorer.find(query.run), query.anomalies)
        found = library.find(query.frame, query.words, query.anomalies)
        shown = found[query.first : query.first + query.count]
        return json_response({"found": len(found), "documents": [document.to_record() for document in shown]})

    return api
