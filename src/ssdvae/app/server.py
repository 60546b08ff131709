"""The server: views and REST API behind the guard."""

from __future__ import annotations

import logging
import socket
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp

from ssdvae import __version__
from ssdvae.app import rest
from ssdvae.app.connection import Connection
from ssdvae.app.explorer import ExploredModel, Explorer, Library
from ssdvae.app.guard import HEADER_BYTES, Guard, problem
from ssdvae.app.options import LOCAL, ExploreOptions
from ssdvae.app.views import TITLES, State, Views, tour_address
from ssdvae.data.corpus import Corpus
from ssdvae.io.errors import UserError, shorten
from ssdvae.io.run import Run
from ssdvae.models.base import Model
from ssdvae.models.hub import shown_file
from ssdvae.report.render import asset, style
from ssdvae.report.runs import short_names

log = logging.getLogger(__name__)

ASSETS = {
    "style.css": (style(), "text/css"),
    "script.js": (asset("script.js"), "text/javascript"),
    "app.css": (asset("app.css", __package__), "text/css"),
    "app.js": (asset("app.js", __package__), "text/javascript"),
}
"""All files that can be asked for."""


ELSEWHERE = {
    **dict.fromkeys(("index.html", "home", "infer", "score", "text"), "read"),
    **dict.fromkeys(("forecast", "generate", "scripts"), "next"),
    **dict.fromkeys(("graph", "variants", "log"), "process"),
    **dict.fromkeys(("frame", "stage", "stages", "words", "word", "search"), "frames"),
    **dict.fromkeys(("document", "corpus", "case", "cases"), "documents"),
    **dict.fromkeys(("model", "models", "about", "readme"), "card"),
    **dict.fromkeys(("api", "help", "redoc", "swagger"), "docs"),
}
"""The views by other names that one may guess."""

SHUTDOWN_SECONDS = 1
"""Seconds that requests have to end when the server stops; what is still computed is given up."""


def explored(
    models: Sequence[tuple[Path, Model]], documents: Path | None, options: ExploreOptions
) -> list[ExploredModel]:
    """Return models with the documents that they are shown on: those that are named, or their own corpora."""
    names = short_names([folder for folder, _ in models])
    found = []
    for name, (folder, model) in zip(names, models, strict=True):
        corpus, file = None, documents
        if documents is not None and documents.is_dir():
            corpus, file = Corpus(documents), None
            corpus.check_names(model.vocabulary, model.frames, model.slots)
        elif documents is None:
            corpus = _own_corpus(folder, model)
        found.append(ExploredModel(name, model, Library(model, options, corpus, file, folder)))
    return found


def _own_corpus(folder: Path, model: Model) -> Corpus | None:
    """Return the corpus that a run was trained on, if it is still there."""
    try:
        corpus = Corpus(Run(folder).config()[0])
        corpus.check_names(model.vocabulary, model.frames, model.slots)
    except UserError as error:
        if shown_file(folder) is None:
            log.info(f"{folder}: no documents are shown: {error}")
        return None
    return corpus


def create_app(explorer: Explorer, port: int) -> ASGIApp:
    """Return the application, behind its guard."""
    options = explorer.options

    app = FastAPI(
        title="ssdvae explore",
        version=__version__,
        description="What models of event sequences say of events.",
        docs_url=None,
        redoc_url=None,
    )

    @app.exception_handler(UserError)
    async def refuse(request: Request, error: UserError) -> Response:
        return problem(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return problem(422, _explain(error.errors()[0]))

    app.include_router(rest.routes(explorer))

    @app.get("/", include_in_schema=False)
    async def start() -> Response:
        return RedirectResponse(tour_address(State(), 1) if options.demo else "/read")

    @app.get("/assets/{name}", include_in_schema=False)
    async def assets(name: str) -> Response:
        if name not in ASSETS:
            return problem(404, "there is no such file")
        content, kind = ASSETS[name]
        return Response(content, media_type=kind)

    views = Views(explorer, app.openapi)
    for name in TITLES:
        route = app.get(f"/{name}", include_in_schema=False, response_class=HTMLResponse, response_model=None)
        route(_page(getattr(views, name)))

    @app.get("/{path:path}", include_in_schema=False)
    async def elsewhere(path: str) -> Response:
        place = address_of(path)
        return (
            problem(404, f"there is no page /{shorten(path)}") if place is None else RedirectResponse(place)
        )

    names = {f"[{name}]" if ":" in name else name for name in (*LOCAL, options.host)}
    hosts = frozenset(f"{name}:{port}" for name in names) | (names if port == 80 else frozenset())
    return Guard(app, hosts, options)


def address_of(path: str) -> str | None:
    """Return the view that an address that somebody guessed must mean; None if there is no such view."""
    view, _, rest = path.strip("/").partition("/")
    if view == "api" and rest:
        return None  # a program must be told
    view = ELSEWHERE.get(view.lower(), view.lower())
    if view not in TITLES:
        return None
    about = {"frames": "q", "documents": "words"}.get(view)
    return State().address(view, *([(about, rest)] if about and rest else []))


def _explain(problem: dict[str, Any]) -> str:
    """Return the message about a body that is not JSON, or not an object; its fields explain themselves."""
    if problem["type"] == "json_invalid":
        return f"the body is not JSON: {problem['ctx']['error']}"
    found = "nothing" if problem["input"] is None else shorten(problem["input"])
    return f"the body: found {found}, expected an object as application/json"


def _page(
    view: Callable[[State], Awaitable[str | Response]],
) -> Callable[[Request], Awaitable[str | Response]]:
    async def page(request: Request) -> str | Response:
        return await view(State.of(request.query_params.multi_items()))

    return page


def bind(options: ExploreOptions) -> socket.socket:
    """Return a socket at the address of the options."""
    listening = socket.socket(socket.AF_INET6 if ":" in options.host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((options.host, options.port))
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen on {options.host} port {options.port}: {error.strerror or error}\n"
            "choose another --port, or 0 for any that is free"
        ) from error
    return listening


def make_server(explorer: Explorer, port: int) -> uvicorn.Server:
    """Return a server, to be run on a socket with this port."""
    config = uvicorn.Config(
        create_app(explorer, port),
        http=Connection.limited(explorer.options),
        lifespan="off",
        ws="none",
        loop="asyncio",
        h11_max_incomplete_event_size=HEADER_BYTES,
        timeout_graceful_shutdown=SHUTDOWN_SECONDS,
        log_config=None,
        log_level="error",  # a warning for each request that is not HTTP would fill logs without end
        access_log=False,
        server_header=False,
    )
    return uvicorn.Server(config)


def serve(models: Sequence[ExploredModel], options: ExploreOptions) -> None:
    """Answer until interrupted."""
    with bind(options) as listening:
        port = listening.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        token = f"?token={quote(options.token)}" if options.token else ""
        link = f"http://{host}:{port}/{token}"
        explorer = Explorer(models, options)
        server = make_server(explorer, port)
        listening.listen(options.connections)
        log.info(f"exploring {', '.join(m.name for m in models)} at {link}  (Ctrl-C to stop)")
        if options.open:
            webbrowser.open(link)  # the socket listens: the browser waits until the server answers
        try:
            server.run(sockets=[listening])
        finally:
            explorer.close()
