"""The answers as a REST API: JSON as the commands print it with ``--json``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from fastapi import APIRouter, Response

from ssdvae.answers.unknown import Familiarity
from ssdvae.app.explorer import Continuation, Explored, Explorer
from ssdvae.app.library import Filter
from ssdvae.app.wire import Documents, FillRequest, GenerateRequest, InferRequest, Limits, NextRequest
from ssdvae.config import GenerateSettings
from ssdvae.data.events import Document
from ssdvae.errors import UserError
from ssdvae.records import to_json
from ssdvae.report.frames import neighbours

Question = Callable[[Explored, list[Document]], Awaitable[Sequence[Any]]]
"""Something that can be asked of a model about documents."""


def answer(value: Any) -> Response:
    """JSON, written once: FastAPI would look at every number again."""
    return Response(to_json(value, ensure_ascii=False), media_type="application/json")


def warning(of: Explored, documents: Sequence[Document]) -> dict[str, Any]:
    """What to say of documents of which a model knows few words."""
    said = Familiarity.of(of.model, documents).warning
    return {} if said is None else {"warning": said}


def routes(explorer: Explorer, limits: Limits) -> APIRouter:
    """One operation a question."""
    api = APIRouter(prefix="/api", responses={code: {"description": text} for code, text in PROBLEMS.items()})

    @api.get("/models", summary="The models that answer here")
    async def models() -> Response:
        return answer(
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

    async def answered(asked: Documents, ask: Question, holes: bool = False) -> Response:
        """What a model says of documents, one by one; and a warning, if it knows few of their words."""
        of = explorer.find(asked.run)
        documents = limits.documents(asked.documents, of.model.slots, holes)
        found = [one.to_record() for one in await ask(of, documents)]
        return answer({"documents": found} | warning(of, documents))

    @api.post("/infer", summary="The frame of each event, with its probability")
    async def infer(asked: InferRequest) -> Response:
        def ask(of: Explored, some: list[Document]) -> Awaitable[Sequence[Any]]:
            return explorer.infer(
                of, some, top=asked.top, attention=asked.attention, observe=asked.observe_frames
            )

        return await answered(asked, ask)

    @api.post("/score", summary="How surprising every event and word is, given what came before")
    async def score(asked: Documents) -> Response:
        return await answered(asked, explorer.score)

    @api.post("/next", summary="What comes after some events: frames, heads and whole events")
    async def next_events(asked: NextRequest) -> Response:
        return await answered(asked, lambda of, some: explorer.next(of, some, asked.given, asked.top))

    @api.post("/fill", summary="What is missing, from what comes before and after it")
    async def fill(asked: FillRequest) -> Response:
        return await answered(asked, lambda of, some: explorer.fill(of, some, asked.top), holes=True)

    @api.post("/embed", summary="A vector for each document, and for each of its events")
    async def embed(asked: Documents) -> Response:
        return await answered(asked, explorer.embed)

    @api.post("/generate", summary="Scripts that begin with some events")
    async def generate(asked: GenerateRequest) -> Response:
        of = explorer.find(asked.run)
        goal = Continuation(limits.events(asked.events, of.model.slots), tuple(asked.frames))
        settings = GenerateSettings(events=asked.length, scripts=asked.scripts, seed=asked.seed)
        scripts = await explorer.generate(of, goal, settings)
        found = {"scripts": [script.to_record() for script in scripts]}
        return answer(found | warning(of, [Document("seed", goal.events)]))

    @api.get("/frames/{frame}", summary="What comes before and after a frame, with shares")
    async def frame(frame: str, run: str | None = None, top: int = 10) -> Response:
        found = (await explorer.library(explorer.find(run))).explanation
        if found is None:
            raise UserError("this model has no documents, or infers no frames")
        around = neighbours(found.transitions, frame, min(max(top, 1), 100))
        names = ("before", around.before), ("after", around.after)
        shares = {side: [{"frame": name, "share": p} for name, p in some] for side, some in names}
        return answer({"frame": frame, "count": around.count, **shares})

    @api.get("/documents", summary="Documents with some frame and some words")
    async def documents(
        run: str | None = None,
        frame: str = "",
        words: str = "",
        unusual: bool = False,
        first: int = 0,
        count: int = 10,
    ) -> Response:
        of = explorer.find(run)
        library = await (explorer.unusual(of) if unusual else explorer.library(of))
        found = library.find(Filter(frame, words), unusual)
        first = max(0, first)
        shown = found[first : first + min(max(count, 1), 100)]
        return answer({"found": len(found), "documents": [document.to_record() for document in shown]})

    return api


PROBLEMS: dict[int | str, str] = {
    401: "A token is needed, and was not given",
    413: "The request has too many bytes",
    422: "The request cannot be understood, or asks for too much",
    503: "Too many wait for an answer, or it took too long",
}
